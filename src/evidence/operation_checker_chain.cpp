// The chain of an operation's facts: each fact's digest computed again from the rows that it speaks of (decision 5).
#include "operation_checker.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/evidence/facts.hpp"

#include <utility>

namespace recibo::evidence {
namespace {

using storage::verify_fact;

moved move_of(const verify_fact& f) {
  moved m;
  m.event = f.event;
  m.from = f.from;
  m.to = f.to;
  m.version = f.version;
  m.item_id = f.item_id;
  m.result = f.result;
  return m;
}

}  // namespace

// nullopt: the rows that it is about are not there any more.
std::optional<sha256_digest> operation_checker::recompute(const verify_fact& f) {
  if (f.kind == kind_accept) {
    if (!operation_.registered) return std::nullopt;
    accepted a;
    a.sequence = f.sequence;
    a.at = f.at;
    a.request_id = operation_.request_id;
    a.provider = operation_.provider;
    a.client = operation_.client;
    a.workflow = operation_.first_workflow;
    a.intent = operation_.intent;
    a.state = initial_;
    return fact_digest(f.operation, accept_fact(a));
  }
  if (f.kind == kind_delivery) {
    if (!f.delivery || !f.has_delivery) return std::nullopt;
    delivered d;
    d.sequence = f.sequence;
    d.at = f.at;
    d.provider = f.provider;
    d.delivery = *f.delivery;
    d.disposition = f.disposition;
    d.key = f.key;
    d.body_digest = f.body_digest;
    d.secret = f.secret;
    d.answer_status = static_cast<int>(f.answer_status);
    if (f.has_transition) d.move = move_of(f);
    // A parked delivery tells what was decided when it was parked, and then nothing was of its items.
    if (f.delivery_operation) d.items = f.delivery_items;
    d.look_up = f.delivery_look_up;
    return fact_digest(f.operation, delivery_fact(d));
  }
  if (f.kind == kind_workflow) {
    if (!f.workflow_changed) return std::nullopt;
    workflow_changed w;
    w.sequence = f.sequence;
    w.at = f.at;
    w.actor = f.actor;
    w.reason = f.workflow_changed->reason;
    w.from_workflow = f.workflow_changed->from_workflow;
    w.to_workflow = f.workflow_changed->to_workflow;
    w.from = f.workflow_changed->from;
    w.to = f.workflow_changed->to;
    w.item_states = f.workflow_changed->item_states;
    return fact_digest(f.operation, workflow_fact(w));
  }
  if (f.kind == kind_correction) {
    if (!f.corrected) return std::nullopt;
    const auto& y = *f.corrected;
    const auto metadata = canonical_json(y.metadata);
    corrected c;
    c.sequence = f.sequence;
    c.at = f.at;
    c.actor = f.actor;
    c.kind = y.kind;
    c.client = y.client;
    c.action = y.action;
    c.reference = y.reference;
    c.amount = y.amount;
    c.currency = y.currency;
    c.account = y.account;
    c.deadline = y.deadline;
    c.metadata = metadata ? std::string_view(*metadata) : std::string_view(y.metadata);
    c.intent = y.intent;
    return fact_digest(f.operation, correction_fact(c));
  }
  if (f.kind == kind_item) {
    if (!f.delivery) return std::nullopt;
    item_moved i;
    i.sequence = f.sequence;
    i.at = f.at;
    i.provider = f.actor;
    i.delivery = *f.delivery;
    i.move = move_of(f);
    return fact_digest(f.operation, item_fact(i));
  }
  if (f.kind == kind_items) {
    items_moved i;
    i.sequence = f.sequence;
    i.at = f.at;
    i.who = transition::parse_actor_kind(f.actor_kind).value_or(transition::actor_kind::provider);
    i.actor = f.actor;
    i.delivery = f.delivery;
    i.move = move_of(f);
    return fact_digest(f.operation, items_fact(i));
  }
  if (f.kind == kind_payload_access) {
    payload_seen p;
    p.sequence = f.sequence;
    p.at = f.at;
    p.actor = f.actor;
    if (f.delivery) p.delivery = *f.delivery;
    return fact_digest(f.operation, payload_access_fact(p));
  }
  if (f.kind == kind_review) {
    if (!f.review) return std::nullopt;
    reviewed v;
    v.sequence = f.sequence;
    v.at = f.at;
    v.actor = f.actor;
    v.review = *f.review;
    v.action = f.action;
    v.assignee = f.assignee;
    v.resolution = f.resolution;
    v.reason = f.review_reason;
    v.transition = f.caused;
    return fact_digest(f.operation, review_fact(v));
  }
  if (f.kind == kind_replay) {
    if (!f.failed || !f.delivery || !f.has_delivery) return std::nullopt;
    replayed r;
    r.sequence = f.sequence;
    r.at = f.at;
    r.actor = f.actor;
    r.failed = *f.failed;
    r.delivery = *f.delivery;
    r.disposition = f.replay_disposition;
    r.key = f.replay_key;
    r.body_digest = f.body_digest;
    r.reason = f.replay_reason;
    r.items = f.replay_items;
    if (f.has_transition) r.move = move_of(f);
    return fact_digest(f.operation, replay_fact(r));
  }
  raised r;
  r.sequence = f.sequence;
  r.at = f.at;
  r.who = transition::parse_actor_kind(f.actor_kind).value_or(transition::actor_kind::client);
  r.actor = f.actor;
  r.move = move_of(f);
  r.reason = f.reason;
  const auto evidence = f.evidence.empty() ? result<std::string>(std::string()) : canonical_json(f.evidence);
  if (evidence) r.evidence = *evidence;
  return fact_digest(f.operation, event_fact(r));
}

// Invariant 5.
void operation_checker::follow_chain(const verify_fact& f, const std::optional<sha256_digest>& recomputed) {
  if (chain_broken_) return;
  if (const auto why = chain_.next(f.sequence, recomputed.value_or(f.digest), f.digest, f.hash)) {
    chain_broken_ = true;
    tell_("chain", *why);
  }
}

}  // namespace recibo::evidence
