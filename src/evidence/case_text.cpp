// The terminal's half of case_view.hpp.
#include "recibo/evidence/case_view.hpp"

#include "recibo/core/utf8.hpp"

#include <utility>

namespace recibo::evidence {
namespace {

using kind = timeline_entry::kind;

// Foreign text as one line of data: control characters and broken bytes become a mark (K30).
std::string shown(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    char32_t point = 0;
    const auto length = utf8_character(text.substr(i), point);
    const bool control = length == 0 || point < 0x20 || (point >= 0x7f && point < 0xa0) || (point >= 0x200b && point <= 0x200f) ||
                         (point >= 0x2028 && point <= 0x202e) || (point >= 0x2066 && point <= 0x2069);
    if (control) {
      out += "\xef\xbf\xbd";
    } else {
      out.append(text, i, length);
    }
    i += length == 0 ? 1 : length;
  }
  return out;
}

void line(std::string& out, std::string_view name, std::string_view value) {
  constexpr std::size_t width = 14;
  out += name;
  out.append(name.size() < width ? width - name.size() : 1, ' ').append(value).append(1, '\n');
}

std::string joined(const std::vector<std::string_view>& words) {
  std::string out;
  for (const auto w : words) {
    if (!out.empty()) out += ", ";
    out += w;
  }
  return out;
}

std::string review_sentence(const timeline_entry& e) {
  std::string out = e.status + " (" + e.type + ")";
  if (e.status == "assigned") {
    out += " to " + shown(e.assignee) + " by " + shown(e.actor);
  } else {
    if (e.status != "opened") out += " by " + shown(e.actor);
    if (!e.detail.empty()) out += ": " + shown(e.detail);
  }
  if (!e.reason.empty()) out += ", because: " + shown(e.reason);
  if (e.caused) out += ", with the transition of fact " + std::to_string(*e.caused);
  return out;
}

// The reviews that are open, each with its ID, owner and age limit.
std::vector<std::string> open_reviews(const std::vector<timeline_entry>& timeline) {
  std::vector<std::string> out;
  for (const auto& e : timeline) {
    if (e.what != kind::review || e.status != "opened") continue;
    std::string taken_by;
    bool open = true;
    for (const auto& later : timeline) {
      if (later.what != kind::review || later.id != e.id) continue;
      if (later.status == "resolved") open = false;
      if (later.status == "assigned") taken_by = later.assignee;
    }
    if (!open) continue;
    std::string one = e.type + " " + e.id;
    if (!e.owner.empty()) one += ", owner " + shown(e.owner);
    if (!taken_by.empty()) one += ", taken by " + shown(taken_by);
    if (e.due_at) one += ", due " + to_rfc3339(*e.due_at);
    out.push_back(std::move(one));
  }
  return out;
}

std::string sentence(const timeline_entry& e) {
  switch (e.what) {
    case kind::accepted: return "from " + shown(e.actor);
    case kind::payload_access:
      return shown(e.actor) + " looked at the payload of " + (e.delivery ? recibo::to_string(*e.delivery) : "");
    case kind::correction: {
      if (e.change == "workflow")
        return shown(e.actor) + " put it under another version of its workflow: " + e.from + " -> " + e.to;
      std::string out =
          shown(e.actor) + (e.change == "edited" ? " edited what is registered" : " registered what a callback had begun");
      if (e.amount) out += ": " + *e.amount + ' ' + e.currency.value_or("");
      return out;
    }
    case kind::delivery: {
      std::string out = e.disposition.empty() ? std::string("(retired)") : e.disposition;
      if (e.count > 0) return out + ", " + std::to_string(e.count) + " more times, key " + shown(e.key);
      if (!e.provider_event.empty()) out += " '" + shown(e.provider_event) + "'";
      if (!e.key.empty()) out += ", key " + shown(e.key);
      if (!e.secret.empty()) out += ", secret " + shown(e.secret);
      if (!e.look_up.empty()) out += ", fetched by look-up " + e.look_up;
      if (e.delivery) out += ", " + recibo::to_string(*e.delivery);
      return out;
    }
    case kind::replay: {
      std::string out = shown(e.actor) + " replayed";
      if (!e.provider_event.empty()) out += " '" + shown(e.provider_event) + "'";
      out += ": " + e.disposition;
      if (!e.key.empty()) out += ", key " + shown(e.key);
      if (!e.reason.empty()) out += ", because: " + shown(e.reason);
      return out;
    }
    case kind::transition: {
      std::string out = e.from + " -> " + e.to + " by " + e.event + " (" + e.actor_kind + " " + shown(e.actor) + ")";
      if (!e.item_id.empty()) out = "item " + shown(e.item_id) + ": " + out;
      if (!e.reason.empty()) out += ", because: " + shown(e.reason);
      return out;
    }
    case kind::notification: {
      std::string out = e.type + " to " + e.destination + ": " + e.status;
      if (e.attempts > 0) out += " after " + std::to_string(e.attempts) + (e.attempts == 1 ? " attempt" : " attempts");
      return out;
    }
    case kind::review: return review_sentence(e);
    case kind::status_check: {
      std::string out = "look-up (" + e.cause + ") for " + shown(e.actor) + ": " + e.status;
      if (!e.reason.empty()) out += ", " + e.reason;
      if (!e.disposition.empty()) out += ", " + e.disposition;
      if (e.attempts > 0) out += " after " + std::to_string(e.attempts) + (e.attempts == 1 ? " attempt" : " attempts");
      if (e.delivery) out += ", " + recibo::to_string(*e.delivery);
      return out;
    }
  }
  return "";
}

// Which items somebody has to look at, and why.
void draw_attention(std::string& out, const storage::operation_view& o) {
  constexpr std::int64_t shown_max = 20;
  std::int64_t told = 0;
  for (const auto& i : o.items) {
    if (i.attention.empty() || told == shown_max) continue;
    ++told;
    line(out, "needs somebody",
         "item " + shown(i.item_id) + " (" + i.state + "): " + i.attention + ", " + shown(i.attention_detail));
  }
  if (o.items_attention.value_or(0) > told)
    line(out, "needs somebody",
         std::to_string(*o.items_attention - told) + " more: GET " + operation_path(o.request_id) + "/items?attention=true");
}

}  // namespace

std::string draw_case(const storage::operation_view& o, const judged_by& by, const std::vector<timeline_entry>& timeline,
                      bool complete) {
  const auto* state = by.table.find_state(o.state);
  std::string out;
  line(out, "request_id", o.request_id);
  line(out, "provider", o.provider + (o.action.empty() ? "" : ", action " + shown(o.action)));
  line(out, "workflow", by.table.name());
  std::string now = o.state;
  if (state && !state->label.empty()) now += " - " + shown(state->label);
  if (state && state->terminal) now += " (final)";
  if (is_overdue(o, by)) now += " (OVERDUE)";
  if (o.review_open) now += " (REVIEW OPEN)";
  line(out, "state", now);
  line(out, "accepted", to_rfc3339(o.accepted_at) + " from " + shown(o.client));
  line(out, "in state since", to_rfc3339(o.state_at));
  if (o.deadline) line(out, "deadline", to_rfc3339(*o.deadline));
  if (o.due_at && state && !state->terminal) line(out, is_overdue(o, by) ? "overdue since" : "runs out", to_rfc3339(*o.due_at));
  if (o.amount) line(out, "amount", *o.amount + " " + o.currency.value_or(""));
  for (const auto& r : o.references) line(out, "reference", shown(r));
  for (const auto& s : o.items_by_state) line(out, "items", std::to_string(s.count) + " " + s.state);
  if (o.items_attention.value_or(0) > 0) draw_attention(out, o);
  if (!o.result.empty()) line(out, "result", shown(o.result));
  line(out, "last stage", last_stage(o));

  out += "\nwhat happened\n";
  std::size_t pending = 0;
  for (const auto& e : timeline) {
    if (e.what == kind::notification && e.status != "delivered" && e.status != "discarded") ++pending;
    out += "  " + to_rfc3339(e.at) + "  ";
    line(out, to_string(e.what), sentence(e));
  }
  if (!complete) out += "  … and more: GET " + operation_path(o.request_id) + "/timeline pages through all of it\n";

  out += "\nnow\n";
  const auto advice = retry_safe(o, by.table);
  const auto events = allowed_events(o, by.table, audience::operators);
  line(out, "  may be done", events.empty() ? "nothing by hand in this state" : joined(events));
  for (const auto& r : open_reviews(timeline)) line(out, "  to review", r);
  line(out, "  retry", std::string(advice.safe ? "safe: " : "not safe: ") + std::string(advice.why));
  line(out, "  to notify", pending == 0 ? "nothing is waiting" : std::to_string(pending) + " not delivered yet");
  return out;
}

}  // namespace recibo::evidence
