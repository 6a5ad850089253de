#include "recibo/evidence/facts.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace recibo::evidence {
namespace {

// Room for the longest fact, so that each takes one allocation for its list.
constexpr std::size_t fields_max = 16;

audit_fact start(std::int64_t sequence, std::string_view kind, sys_micros at, std::string_view actor) {
  audit_fact fact;
  fact.sequence = static_cast<decltype(fact.sequence)>(sequence);
  fact.kind = kind;
  fact.at = at;
  fact.actor = actor;
  fact.fields.reserve(fields_max);
  return fact;
}

void add(audit_fact& fact, const char* name, std::string_view value) {
  if (value.empty()) {
    fact.fields.emplace_back(name, std::nullopt);
  } else {
    fact.fields.emplace_back(name, std::string(value));
  }
}

void add(audit_fact& fact, const char* name, std::int64_t value) { fact.fields.emplace_back(name, std::to_string(value)); }

void add(audit_fact& fact, const moved& move) {
  add(fact, "event", move.event);
  add(fact, "from", move.from);
  add(fact, "to", move.to);
  add(fact, "version", move.version);
  add(fact, "item_id", move.item_id);
  add(fact, "result", move.result);
}

// The same number in one spelling: no zeros before the first or behind the last digit that counts, no "-0".
std::string plain_amount(std::string_view text) {
  const bool negative = !text.empty() && text.front() == '-';
  if (negative) text.remove_prefix(1);
  const auto point = text.find('.');
  auto whole = text.substr(0, point);
  auto fraction = point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  fraction = fraction.substr(0, fraction.find_last_not_of('0') + 1);
  std::string out;
  if (negative && !(whole.empty() && fraction.empty())) out += '-';
  out += whole.empty() ? std::string_view("0") : whole;
  if (!fraction.empty()) out.append(1, '.').append(fraction);
  return out;
}

void add_sorted(canonical& to, std::vector<std::string>& values) {
  std::sort(values.begin(), values.end());
  to.add_number(static_cast<std::int64_t>(values.size()));
  for (const auto& v : values) to.add(v);
}

void add_if_any(canonical& to, std::string_view value) {
  if (value.empty()) {
    to.add_absent();
  } else {
    to.add(value);
  }
}

}  // namespace

sha256_digest intent_digest(intent what) {
  canonical to;
  to.reserve(512);
  to.add("recibo.intent.1").add(what.provider).add(what.workflow).add(what.action);
  add_sorted(to, what.references);
  add_if_any(to, what.amount.empty() ? std::string() : plain_amount(what.amount));
  add_if_any(to, what.currency);
  if (what.deadline) {
    to.add_number(what.deadline->time_since_epoch().count());
  } else {
    to.add_absent();
  }
  add_sorted(to, what.items);
  to.add(what.metadata);
  // Only where there is one: what was registered before accounts were has the digest that it had.
  if (!what.account.empty()) to.add(what.account);
  return sha256(to.bytes());
}

sha256_digest callback_intent_digest(std::string_view provider, std::string_view request_id) {
  canonical to;
  to.add("registered by callback").add(provider).add(request_id);
  return sha256(to.bytes());
}

audit_fact accept_fact(const accepted& what) {
  auto fact = start(what.sequence, kind_accept, what.at, what.client);
  add(fact, "request_id", what.request_id);
  add(fact, "provider", what.provider);
  add(fact, "workflow", what.workflow);
  add(fact, "intent", binary(what.intent));
  add(fact, "state", what.state);
  return fact;
}

audit_fact delivery_fact(const delivered& what) {
  auto fact = start(what.sequence, kind_delivery, what.at, what.provider);
  add(fact, "delivery", what.delivery.binary());
  add(fact, "disposition", what.disposition);
  add(fact, "key", what.key);
  add(fact, "body_digest", binary(what.body_digest));
  add(fact, "secret", what.secret);
  add(fact, "answer_status", what.answer_status);
  if (what.move) add(fact, *what.move);
  if (!what.items.empty()) add(fact, "items", what.items);
  if (what.look_up) add(fact, "look_up", what.look_up->binary());
  return fact;
}

audit_fact item_fact(const item_moved& what) {
  auto fact = start(what.sequence, kind_item, what.at, what.provider);
  add(fact, "delivery", what.delivery.binary());
  add(fact, what.move);
  return fact;
}

audit_fact items_fact(const items_moved& what) {
  auto fact = start(what.sequence, kind_items, what.at, what.actor);
  add(fact, "actor_kind", transition::to_string(what.who));
  add(fact, "delivery", what.delivery ? what.delivery->binary() : std::string_view());
  add(fact, what.move);
  return fact;
}

audit_fact event_fact(const raised& what) {
  auto fact = start(what.sequence, kind_event, what.at, what.actor);
  add(fact, "actor_kind", transition::to_string(what.who));
  add(fact, what.move);
  add(fact, "reason", what.reason);
  add(fact, "evidence", what.evidence);
  return fact;
}

audit_fact correction_fact(const corrected& what) {
  auto fact = start(what.sequence, kind_correction, what.at, what.actor);
  add(fact, "kind", what.kind);
  add(fact, "client", what.client);
  add(fact, "action", what.action);
  add(fact, "reference", what.reference);
  add(fact, "amount", what.amount);
  add(fact, "currency", what.currency);
  add(fact, "account", what.account);
  if (what.deadline) {
    add(fact, "deadline", what.deadline->time_since_epoch().count());
  } else {
    add(fact, "deadline", std::string_view());
  }
  add(fact, "metadata", what.metadata);
  add(fact, "intent", binary(what.intent));
  return fact;
}

audit_fact workflow_fact(const workflow_changed& what) {
  auto fact = start(what.sequence, kind_workflow, what.at, what.actor);
  add(fact, "from_workflow", what.from_workflow);
  add(fact, "to_workflow", what.to_workflow);
  add(fact, "from", what.from);
  add(fact, "to", what.to);
  add(fact, "reason", what.reason);
  if (!what.item_states.empty()) add(fact, "item_states", what.item_states);
  return fact;
}

audit_fact payload_access_fact(const payload_seen& what) {
  auto fact = start(what.sequence, kind_payload_access, what.at, what.actor);
  add(fact, "delivery", what.delivery.binary());
  return fact;
}

audit_fact review_fact(const reviewed& what) {
  auto fact = start(what.sequence, kind_review, what.at, what.actor);
  add(fact, "review", what.review.binary());
  add(fact, "action", what.action);
  add(fact, "assignee", what.assignee);
  add(fact, "resolution", what.resolution);
  add(fact, "reason", what.reason);
  add(fact, "transition", what.transition ? std::to_string(*what.transition) : std::string());
  return fact;
}

audit_fact replay_fact(const replayed& what) {
  auto fact = start(what.sequence, kind_replay, what.at, what.actor);
  add(fact, "failed_callback", what.failed.binary());
  add(fact, "delivery", what.delivery.binary());
  add(fact, "disposition", what.disposition);
  add(fact, "key", what.key);
  add(fact, "body_digest", binary(what.body_digest));
  add(fact, "reason", what.reason);
  if (!what.items.empty()) add(fact, "items", what.items);
  if (what.move) add(fact, *what.move);
  return fact;
}

}  // namespace recibo::evidence
