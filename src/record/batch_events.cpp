// What a batch decides about registrations, events and payload accesses (R1-R5, R9, R29).
#include "batch.hpp"

#include "recibo/evidence/facts.hpp"

#include <algorithm>

namespace recibo::record {
namespace {

void refuse(verdict& v, error why) {
  v.is = verdict::kind::refused;
  v.why = std::move(why);
}

}  // namespace

void batch::decide_registration(const registration& r, verdict& v) {
  if (r.idempotency_key) {
    if (const auto* used = found_.find_client_key(r.client, *r.idempotency_key)) {
      if (used->fingerprint != r.intent)
        return refuse(v, error(permanent::idempotency_key_reused, "this Idempotency-Key was used before for another request"));
      v.is = verdict::kind::decided;
      if (auto* o = found_.find(used->request_id)) v.outcome = outcome_of(*o);
      v.outcome.request_id = used->request_id;
      v.outcome.replayed = true;
      return;
    }
  }
  if (auto* o = found_.find(r.request_id)) {
    if (o->row.made_by && o->row.client.empty() && o->row.provider == r.provider) return decide_adoption(r, *o, v);
    if (o->row.client != r.client || o->row.provider != r.provider || o->row.intent != r.intent)
      return refuse(v,
                    error(permanent::intent_conflict, "this request_id is registered with another intent; nothing was changed"));
    v.is = verdict::kind::decided;
    v.outcome = outcome_of(*o);
    v.outcome.replayed = true;
    return;
  }
  if (found_.exists(r.request_id)) {
    v.is = verdict::kind::busy;
    return;
  }
  for (const auto& reference : r.references) {
    const auto* known = found_.find_alias(r.provider, reference);
    if (!known) continue;
    if (known->request_id == r.request_id) {
      // Registered before, and locked by somebody else just now.
      v.is = verdict::kind::busy;
      return;
    }
    return refuse(v, error(permanent::alias_taken, "this reference belongs to another operation of the provider"));
  }
  const auto names = names_of(r);
  if (!found_.may_meet(names) || !found_.may_apply(r.provider, r.request_id, names)) {
    v.is = verdict::kind::busy;
    return;
  }
  auto& o = create(r);
  if (r.idempotency_key) {
    writes_.new_client_keys.add(r.client, *r.idempotency_key, r.id, r.intent, at_);
    found_.add_client_key({r.client, *r.idempotency_key, r.request_id, r.id, r.intent});
  }
  apply_parked(o, r.settings, names);
  v.is = verdict::kind::decided;
  v.outcome = outcome_of(o);
}

operation_in_hand& batch::create(const registration& r) {
  storage::operation_row row;
  row.id = r.id;
  row.request_id = r.request_id;
  row.provider = r.provider;
  row.client = r.client;
  row.workflow = r.workflow->version_key();
  row.state = r.workflow->initial();
  row.state_at = at_;
  row.chain_hash = evidence::chain_genesis(r.id);
  if (r.amount) row.amount = r.amount->text;
  row.currency = r.currency;
  row.account = r.account;
  row.intent = r.intent;
  row.made_by = r.delivery;
  auto& o = found_.add_operation(std::move(row));
  o.table = r.workflow.get();
  o.settings = r.settings.get();
  if (r.deadline) o.deadline.emplace(r.deadline);
  workflows_.add(r.workflow);
  if (!workflows_.stored(o.row.workflow)) writes_.new_workflows.emplace(o.row.workflow, r.workflow.get());

  evidence::accepted fact;
  fact.sequence = 1;
  fact.at = at_;
  fact.request_id = r.request_id;
  fact.provider = r.provider;
  fact.client = r.client;
  fact.workflow = o.row.workflow;
  fact.intent = r.intent;
  fact.state = o.row.state;
  append_audit(o, evidence::accept_fact(fact), std::nullopt);
  const auto reference = r.references.empty() ? std::nullopt : std::optional(r.references.front());
  writes_.new_registrations.add(r.id, r.client, r.action, reference, o.row.amount, r.currency, r.deadline, r.metadata, r.intent,
                                r.accepted_at, r.trace_id, r.account, r.delivery);
  if (r.delivery) {
    // Its client may register it in this very batch.
    o.intent.emplace();
    o.intent->operation = r.id;
    o.intent->metadata = r.metadata;
    o.intent->reference = reference;
    o.intent->amount = o.row.amount;
    o.intent->currency = r.currency;
    o.intent->account = r.account;
    o.intent->intent = r.intent;
  }
  learn(r.references, o);
  for (const auto& item : r.items) add_item(o, item.item_id);
  notify(*r.settings, o, "operation.accepted");
  look_up_in_state(*r.settings, o);
  return o;
}

operation_in_hand& batch::create_for(const callback& c, const std::string& request_id) {
  registration r;
  r.settings = c.settings;
  r.id = make_id<operation_id>(at_);
  r.accepted_at = at_;
  r.request_id = request_id;
  r.provider = c.provider->name;
  r.workflow = c.settings->workflows.at(c.provider->workflow);
  r.references = c.references;
  r.delivery = c.id;
  r.amount = c.amount;
  r.currency = c.currency;
  r.account = c.account;
  r.trace_id = c.trace_id;
  r.intent = evidence::callback_intent_digest(r.provider, r.request_id);
  return create(r);
}

void batch::decide_rematch(const rematch& r, verdict& v) {
  auto* o = found_.find(r.request_id);
  if (!o) {
    v.is = found_.exists(r.request_id) ? verdict::kind::busy : verdict::kind::refused;
    v.why = error(permanent::not_found, "no such operation");
    return;
  }
  if (!found_.may_apply(o->row.provider, o->row.request_id, {})) {
    v.is = verdict::kind::busy;
    return;
  }
  apply_parked(*o, r.settings, {});
  v.is = verdict::kind::decided;
  v.outcome = outcome_of(*o);
}

void batch::decide_event(const event& e, verdict& v) {
  auto* o = found_.find(e.request_id);
  if (!o) {
    if (found_.exists(e.request_id)) {
      v.is = verdict::kind::busy;
      return;
    }
    return refuse(v, error(permanent::not_found, "no such operation"));
  }
  if (o->blocked) {
    v.is = verdict::kind::busy;
    return;
  }
  if (e.client && o->row.client != *e.client) return refuse(v, error(permanent::not_found, "no such operation"));
  if (e.idempotency_key) {
    if (const auto* used = found_.find_client_key(e.actor, *e.idempotency_key)) {
      if (used->fingerprint != e.fingerprint || used->operation != o->row.id)
        return refuse(v, error(permanent::idempotency_key_reused, "this Idempotency-Key was used before for another request"));
      v.is = verdict::kind::decided;
      v.outcome = outcome_of(*o);
      v.outcome.replayed = true;
      return;
    }
  }
  if (e.if_revisions && std::find(e.if_revisions->begin(), e.if_revisions->end(), o->row.revision) == e.if_revisions->end())
    return refuse(v, error(permanent::precondition_failed, "the operation has changed since the ETag that If-Match names"));

  auto* const item = e.item_id ? found_.find_item(*o, *e.item_id) : nullptr;
  if (e.item_id && !item) return refuse(v, error(permanent::not_found, "the operation has no such item"));
  const bool has_asked = e.who == transition::actor_kind::operator_ && !e.evidence.empty();
  const bool asks = asks_first(*e.settings, *o, e.name, has_asked);
  // Whatever it has moved to: what was wanted was wanted of another state.
  if (asks && e.asked_at && !may_retry(e, *o, v)) return;
  auto move = permitted_move(*o, *e.settings, item, e.name, e.who, !e.evidence.empty());
  if (!move) return refuse(v, move.error());
  if (const auto foreign = taken_reference(e.references, *o))
    return refuse(v, error(permanent::alias_taken, "a reference belongs to another operation of the provider"));
  if (asks && !e.asked_at && !may_retry(e, *o, v)) return;

  const auto learned = found_.unknown_references(o->row.provider, e.references);
  if (!found_.may_meet(learned) || (!learned.empty() && !found_.may_apply(o->row.provider, o->row.request_id, learned))) {
    o->blocked = true;
    v.is = verdict::kind::busy;
    return;
  }
  std::optional<storage::intent_row> changed;
  if (e.changes) {
    // Made in this very batch: it is read when this comes back.
    if (!o->intent) {
      v.is = verdict::kind::busy;
      return;
    }
    auto made = edited(*o, *e.changes);
    if (!made) return refuse(v, made.error());
    changed = std::move(*made);
  }
  learn(e.references, *o);
  evidence::raised said;
  said.who = e.who;
  said.actor = e.actor;
  said.reason = e.reason;
  said.evidence = e.evidence;
  raise(*o, *e.settings, item, **move, said);
  if (changed) correct(*o, std::move(*changed), evidence::edited_intent, e.actor);
  if (item) move_by_items(*o, *e.settings, {e.who, e.actor, std::nullopt});
  remember_key(e.actor, e.idempotency_key, *o, e.fingerprint);
  if (!learned.empty()) apply_parked(*o, e.settings, learned);
  v.is = verdict::kind::decided;
  v.outcome = outcome_of(*o);
}

result<const transition::move*> batch::permitted_move(operation_in_hand& o, const config::settings& settings,
                                                      const item_in_hand* item, std::string_view event,
                                                      transition::actor_kind who, bool has_evidence) {
  const auto& table = table_of(o, settings);
  const auto& state = item ? item->row.state : o.row.state;
  auto move = transition::decide_event(table, state, event, who, has_evidence);
  if (!move && who == transition::actor_kind::operator_)
    if (auto as_client = transition::decide_event(table, state, event, transition::actor_kind::client, has_evidence))
      move = as_client;
  return move;
}

void batch::raise(operation_in_hand& o, const config::settings& settings, item_in_hand* item, const transition::move& taken,
                  evidence::raised said) {
  if (item) {
    move_item(o, *item, taken);
  } else {
    o.row.state = taken.to;
    o.row.state_at = at_;
    ++o.row.version;
    look_up_in_state(settings, o);
  }
  const auto version = item ? item->row.version : o.row.version;

  said.sequence = o.row.sequence + 1;
  said.at = at_;
  said.move.event = taken.event;
  said.move.from = taken.from;
  said.move.to = taken.to;
  said.move.version = version;
  if (item) said.move.item_id = item->row.item_id;
  append_audit(o, evidence::event_fact(said), std::nullopt);

  storage::transition_row t;
  t.operation = o.row.id;
  t.sequence = o.row.sequence;
  t.version = version;
  if (item) t.item_id = item->row.item_id;
  t.event = taken.event;
  t.from = taken.from;
  t.to = taken.to;
  t.at = at_;
  t.actor_kind = to_string(said.who);
  t.actor = said.actor;
  t.reason = said.reason;
  t.evidence = said.evidence;
  t.notifications = notify(settings, o, (item ? "item." : "operation.") + taken.to);
  writes_.new_transitions.add(t);
}

void batch::remember_key(const std::string& client, const std::optional<std::string>& key, const operation_in_hand& o,
                         const sha256_digest& fingerprint) {
  if (!key) return;
  writes_.new_client_keys.add(client, *key, o.row.id, fingerprint, at_);
  found_.add_client_key({client, *key, o.row.request_id, o.row.id, fingerprint});
}

void batch::decide_payload_access(const payload_access& p, verdict& v) {
  std::optional<operation_id> operation;
  std::optional<std::int32_t> sequence;
  if (!p.request_id.empty()) {
    auto* o = found_.find(p.request_id);
    if (!o && found_.exists(p.request_id)) {
      v.is = verdict::kind::busy;
      return;
    }
    if (o) {
      evidence::payload_seen fact;
      fact.sequence = o->row.sequence + 1;
      fact.at = at_;
      fact.actor = p.actor;
      fact.delivery = p.delivery;
      append_audit(*o, evidence::payload_access_fact(fact), p.delivery);
      operation = o->row.id;
      sequence = o->row.sequence;
    }
  }
  writes_.new_payload_accesses.add(uuid_v7_bytes(at_), p.delivery, at_, p.actor, operation, sequence);
  v.is = verdict::kind::decided;
}

}  // namespace recibo::record
