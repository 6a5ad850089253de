// The history half of case_view.hpp: what happened, in order.
#include "recibo/evidence/case_view.hpp"

#include "recibo/evidence/facts.hpp"

#include <algorithm>
#include <utility>

namespace recibo::evidence {
namespace {

using kind = timeline_entry::kind;

// Reviews of this kind have no delivery.
constexpr std::string_view opened_by_clock = "overdue";

timeline_entry entry(kind what, sys_micros at, std::string actor, std::int64_t sequence) {
  timeline_entry e;
  e.what = what;
  e.at = at;
  e.actor = std::move(actor);
  e.sequence = sequence;
  return e;
}

void add_fact(std::vector<timeline_entry>& to, const storage::fact_view& f) {
  if (f.kind == kind_accept) {
    to.push_back(entry(kind::accepted, f.at, f.actor, f.sequence));
  } else if (f.kind == kind_payload_access) {
    to.push_back(entry(kind::payload_access, f.at, f.actor, f.sequence));
    to.back().delivery = f.delivery;
  } else if (f.kind == kind_workflow) {
    to.push_back(entry(kind::correction, f.at, f.actor, f.sequence));
    auto& e = to.back();
    e.change = f.change;
    e.from = f.from;
    e.to = f.to;
    e.reason = f.reason;
  } else if (f.kind == kind_correction) {
    to.push_back(entry(kind::correction, f.at, f.actor, f.sequence));
    auto& e = to.back();
    e.change = f.change;
    e.action = f.action;
    e.amount = f.amount;
    e.currency = f.currency;
    e.account = f.account;
    e.deadline = f.deadline;
  } else if (f.kind == kind_review) {
    to.push_back(entry(kind::review, f.at, f.actor, f.sequence));
    auto& e = to.back();
    e.id = f.review;
    e.type = f.review_kind;
    e.status = f.review_action;
    e.detail = f.resolution;
    e.assignee = f.assignee;
    e.reason = f.review_reason;
    e.caused = f.caused;
  } else if (f.kind == kind_replay) {
    to.push_back(entry(kind::replay, f.at, f.actor, f.sequence));
    auto& e = to.back();
    e.delivery = f.delivery;
    e.failed = f.failed;
    e.disposition = f.replay_disposition;
    e.key = key_text(f.replay_key);
    e.provider_event = f.provider_event;
    e.secret = f.secret;
    e.reason = f.replay_reason;
  } else if (f.kind == kind_delivery) {
    // A parked callback came before it was recorded for the operation: the list tells when it came.
    to.push_back(entry(kind::delivery, f.received_at.value_or(f.at), f.actor, f.sequence));
    auto& e = to.back();
    e.delivery = f.delivery;
    e.disposition = f.disposition;
    e.secret = f.secret;
    e.key = key_text(f.key);
    e.provider_event = f.provider_event;
    e.answer_status = f.answer_status;
    e.look_up = f.look_up;
  }
  if (f.event.empty()) return;
  // A replay is a person's, and what it moved is the provider's.
  to.push_back(entry(kind::transition, f.at, f.transition_actor.empty() ? f.actor : f.transition_actor, f.sequence));
  auto& e = to.back();
  e.delivery = f.delivery;
  e.event = f.event;
  e.from = f.from;
  e.to = f.to;
  e.item_id = f.item_id;
  e.actor_kind = f.actor_kind;
  e.reason = f.reason;
  e.evidence = f.evidence;
  e.result = f.result;
  e.version = f.version;
}

timeline_entry entry_of(const storage::notification_view& n) {
  auto e = entry(kind::notification, n.created_at, "recibo", n.sequence);
  e.id = n.id;
  e.destination = n.destination;
  e.type = n.type;
  e.status = n.status;
  e.attempts = n.attempts;
  e.delivered_at = n.delivered_at;
  e.next_attempt_at = n.next_attempt_at;
  return e;
}

// That it was opened; what was done about it since has audit rows.
timeline_entry entry_of(const storage::review_view& v) {
  auto e = entry(kind::review, v.opened_at, v.provider, 0);
  e.id = to_string(v.id);
  e.type = v.kind;
  e.status = "opened";
  e.detail = v.detail;
  e.owner = v.owner;
  e.due_at = v.due_at;
  e.delivery = v.delivery;
  return e;
}

timeline_entry entry_of(const storage::look_up_view& l) {
  auto e = entry(kind::status_check, l.asked_at, l.asked_by, 0);
  e.id = l.id;
  e.cause = l.cause;
  e.status = l.status;
  e.reason = l.reason;
  e.disposition = l.disposition;
  e.delivery = l.delivery;
  e.times = l.times;
  e.attempts = l.attempts;
  e.settled_at = l.settled_at;
  e.next_attempt_at = l.next_attempt_at;
  e.requests = l.requests;
  return e;
}

}  // namespace

std::string_view to_string(kind k) noexcept {
  switch (k) {
    case kind::accepted: return "accepted";
    case kind::delivery: return "delivery";
    case kind::transition: return "transition";
    case kind::notification: return "notification";
    case kind::review: return "review";
    case kind::replay: return "replay";
    case kind::payload_access: return "payload_access";
    case kind::correction: return "correction";
    case kind::status_check: return "status_check";
  }
  return "";
}

std::vector<timeline_entry> make_timeline(const storage::operation_view& o, const storage::case_facts& facts, bool first) {
  std::vector<timeline_entry> out;
  for (const auto& f : facts.facts) add_fact(out, f);
  for (const auto& n : facts.notifications) out.push_back(entry_of(n));

  // What has no audit row of its own falls into the page that covers its time.
  const bool any = !facts.facts.empty();
  const auto in_page = [&](sys_micros at) {
    const bool late_enough = first || (any && at >= facts.facts.front().at);
    const bool early_enough = !facts.more || (any && at < facts.facts.back().at);
    return late_enough && early_enough;
  };
  for (const auto& v : facts.reviews) {
    // What the clock opened has a fact of its own, which the review tells more about.
    const auto told = std::find_if(out.begin(), out.end(), [&](const timeline_entry& e) {
      return e.what == kind::review && e.status == "opened" && e.id == recibo::to_string(v.id);
    });
    if (told != out.end()) {
      told->detail = v.detail;
      told->owner = v.owner;
      told->due_at = v.due_at;
      told->reason.clear();
    } else if (v.kind != opened_by_clock && in_page(v.opened_at)) {
      out.push_back(entry_of(v));
    }
  }
  for (const auto& l : facts.look_ups) {
    if (in_page(l.asked_at)) out.push_back(entry_of(l));
  }
  for (const auto& r : facts.repeated) {
    const auto at = r.last_at.value_or(o.updated_at);
    if (!in_page(at)) continue;
    auto e = entry(kind::delivery, at, o.provider, 0);
    e.delivery = r.delivery;
    e.disposition = "duplicate";
    e.key = key_text(r.key);
    e.count = r.beyond;
    out.push_back(std::move(e));
  }
  // Facts without a sequence of their own come after those of the same instant.
  constexpr auto last = std::numeric_limits<std::int64_t>::max();
  const auto place = [](const timeline_entry& e) { return e.sequence == 0 ? last : e.sequence; };
  std::stable_sort(out.begin(), out.end(), [&](const timeline_entry& a, const timeline_entry& b) {
    return std::pair(a.at, place(a)) < std::pair(b.at, place(b));
  });
  return out;
}

void write_timeline_entry(json_writer& out, const timeline_entry& e) {
  out.begin_object().time("at", e.at).text("kind", to_string(e.what)).text("actor", e.actor);
  if (e.sequence > 0) out.number("sequence", e.sequence);
  if (e.delivery) out.text("delivery_id", recibo::to_string(*e.delivery));
  switch (e.what) {
    case kind::accepted:
    case kind::payload_access: break;
    case kind::correction:
      out.text("change", e.change);
      if (!e.from.empty()) {
        out.text("from", e.from).text("to", e.to).text("reason", e.reason);
        break;
      }
      out.text("action", e.action).text("amount", e.amount).text("currency", e.currency);
      out.text("account", e.account).time("deadline", e.deadline);
      break;
    case kind::delivery:
      out.text_or_null("disposition", e.disposition).text_or_null("secret", e.secret).text_or_null("key", e.key);
      out.text_or_null("event", e.provider_event).number("answer_status", e.answer_status);
      if (e.count > 0) out.number("count", e.count);
      if (!e.look_up.empty()) out.text("look_up_id", e.look_up);
      break;
    case kind::replay:
      out.text("failed_callback_id", e.failed).text("disposition", e.disposition).text_or_null("secret", e.secret);
      out.text_or_null("key", e.key).text_or_null("event", e.provider_event);
      if (!e.reason.empty()) out.text("reason", e.reason);
      break;
    case kind::transition:
      out.text("event", e.event)
          .text("from", e.from)
          .text("to", e.to)
          .number("version", e.version)
          .text("actor_kind", e.actor_kind);
      if (!e.item_id.empty()) out.text("item_id", e.item_id);
      if (!e.reason.empty()) out.text("reason", e.reason);
      if (!e.evidence.empty()) out.raw("evidence", e.evidence);
      if (!e.result.empty()) out.raw("result", e.result);
      break;
    case kind::notification:
      out.text("notification_id", e.id).text("destination", e.destination).text("type", e.type).text("status", e.status);
      out.number("attempts", e.attempts).time("delivered_at", e.delivered_at).time("next_attempt_at", e.next_attempt_at);
      break;
    case kind::status_check:
      out.text("look_up_id", e.id).text("cause", e.cause).text("status", e.status).number("times", e.times);
      out.number("attempts", e.attempts).time("settled_at", e.settled_at).time("next_attempt_at", e.next_attempt_at);
      out.text_or_null("disposition", e.disposition);
      if (!e.reason.empty()) out.text("reason", e.reason);
      out.raw("requests", e.requests);
      break;
    case kind::review:
      out.text("review_id", e.id).text("review_kind", e.type).text("status", e.status).text("detail", e.detail);
      if (!e.owner.empty()) out.text("owner", e.owner);
      if (e.due_at) out.time("due_at", *e.due_at);
      if (!e.assignee.empty()) out.text("assignee", e.assignee);
      if (!e.reason.empty()) out.text("reason", e.reason);
      if (e.caused) out.number("transition", *e.caused);
      break;
  }
  out.end_object();
}

}  // namespace recibo::evidence
