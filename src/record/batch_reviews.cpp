// What a batch decides about reviews: opening them, and what people do about them (R25).
#include "batch.hpp"

#include "recibo/evidence/facts.hpp"

#include <algorithm>

namespace recibo::record {
namespace {

void refuse(verdict& v, permanent why, std::string detail) {
  v.is = verdict::kind::refused;
  v.why = error(why, std::move(detail));
}

bool same_text(const std::optional<std::string>& stored, const std::string& said) { return stored.value_or("") == said; }

}  // namespace

void batch::open_review(const callback& c, operation_in_hand& o, std::string_view kind, const storage::key_row* first,
                        std::string detail, const item_result* item) {
  const auto digest = item ? item_digest(item->item_id, c.content_digest) : c.content_digest;
  storage::review_row r;
  r.id = make_id<review_id>(at_);
  r.operation = o.row.id;
  r.kind = kind;
  r.digest = digest;
  if (item) r.item_id = item->item_id;
  // Two keys in conflict are two conflicts, whatever their contents; a contradiction is one under any key.
  if (first) r.key = c.key;
  r.delivery = c.id;
  if (first) {
    r.first_delivery = first->delivery;
    r.first_digest = first->content_digest;
    r.signed_digest = c.signed_digest;
  }
  r.detail = detail;
  // An item that does not exist has no state of its own.
  r.state = item && !item->state.empty() ? item->state : o.row.state;
  const auto* state = table_of(o, *c.settings).find_state(r.state);
  r.owner = state && !state->owner.empty() ? state->owner : c.settings->reviews.owner;
  r.at = at_;
  r.due_at = at_ + c.settings->reviews.due;
  storage::known_review known;
  known.id = r.id;
  known.operation = o.row.id;
  known.kind = kind;
  known.digest = digest;
  known.key = r.key;
  known.delivery = c.id;
  known.signed_digest = r.signed_digest;
  // The same content may have opened the same review under another key: then it is the same exception, seen again.
  const auto [it, fresh] = found_.reviews.emplace(std::tuple{o.row.id, std::string(kind), digest, std::string(r.key)},
                                                  review_in_hand{std::move(known), 0});
  if (!fresh) {
    ++it->second.times;
    return;
  }
  writes_.new_reviews.add(r);
  o.row.review_open = true;
  ++o.reviews_open;
  const std::pair fact(o.row.id, o.row.sequence);
  if (review_notified_ == fact) return;
  review_notified_ = fact;
  notify(*c.settings, o, "operation.review_opened");
}

bool batch::is_done(const review_action& a, operation_in_hand* o, const storage::acted_review& r, verdict& v) {
  const auto again = [&] {
    v.is = verdict::kind::decided;
    if (o) v.outcome = outcome_of(*o);
    v.outcome.replayed = true;
    return true;
  };
  const auto no = [&](permanent why, std::string detail) {
    refuse(v, why, std::move(detail));
    return true;
  };
  if (a.idempotency_key && o) {
    if (const auto* used = found_.find_client_key(a.actor, *a.idempotency_key)) {
      if (used->fingerprint == a.fingerprint && used->operation == o->row.id) return again();
      return no(permanent::idempotency_key_reused, "this Idempotency-Key was used before for another request");
    }
  }
  // A person's repetition is harmless without a key too: the same said by the same is what is on record already.
  const bool same = a.resolves ? !r.open && r.resolved_by == a.actor && r.resolution == a.resolution &&
                                     same_text(r.reason, a.reason) && same_text(r.event, a.event)
                               : r.open && r.assigned_to == a.assignee;
  if (same) return again();
  if (!r.open) return no(permanent::already_resolved, "this review is resolved; what was decided stands");
  if (a.if_revisions) {
    const auto& fits = *a.if_revisions;
    if (!o || std::find(fits.begin(), fits.end(), o->row.revision) == fits.end())
      return no(permanent::precondition_failed, "the operation has changed since the ETag that If-Match names");
  }
  return false;
}

void batch::decide_review_action(const review_action& a, verdict& v) {
  operation_in_hand* o = nullptr;
  if (!a.request_id.empty()) {
    o = found_.find(a.request_id);
    if (!o && !found_.exists(a.request_id)) return refuse(v, permanent::not_found, "no such review");
    if (!o || o->blocked) {
      v.is = verdict::kind::busy;
      return;
    }
  }
  auto* r = found_.find_review(a.review);
  if (!r || r->operation.has_value() != (o != nullptr)) return refuse(v, permanent::not_found, "no such review");
  if (is_done(a, o, *r, v)) return;

  std::optional<std::int32_t> transition;
  if (!a.event.empty()) {
    if (!o) return refuse(v, permanent::illegal_transition, "there is no operation yet that an event could move");
    // An event moves the operation: raised here it would move what the review is not about.
    if (r->of_item)
      return refuse(v, permanent::illegal_transition,
                    "this review is about an item: raise the item's event by its item_id, and resolve the review without one");
    if (asks_first(*a.settings, *o, a.event, !a.evidence.empty()))
      return refuse(v, permanent::illegal_transition,
                    "the provider is asked before a retry: raise it as an event and resolve the review without one, or say by "
                    "which evidence nothing has happened");
    const auto move = permitted_move(*o, *a.settings, nullptr, a.event, transition::actor_kind::operator_, !a.evidence.empty());
    if (!move) {
      v.is = verdict::kind::refused;
      v.why = move.error();
      return;
    }
    evidence::raised said;
    said.who = transition::actor_kind::operator_;
    said.actor = a.actor;
    said.reason = a.reason;
    said.evidence = a.evidence;
    raise(*o, *a.settings, nullptr, **move, said);
    transition = o->row.sequence;
  }
  record_action(a, o, *r, transition);
  if (o) remember_key(a.actor, a.idempotency_key, *o, a.fingerprint);
  v.is = verdict::kind::decided;
  if (o) v.outcome = outcome_of(*o);
}

void batch::record_action(const review_action& a, operation_in_hand* o, storage::acted_review& r,
                          std::optional<std::int32_t> transition) {
  storage::review_action_row row;
  row.review = r.id;
  row.action = a.resolves ? "resolved" : "assigned";
  row.at = at_;
  row.actor = a.actor;
  row.assignee = a.assignee;
  row.resolution = a.resolution;
  row.reason = a.reason;
  row.transition = transition;
  if (o) {
    evidence::reviewed fact;
    fact.sequence = o->row.sequence + 1;
    fact.at = at_;
    fact.actor = a.actor;
    fact.review = r.id;
    fact.action = row.action;
    fact.assignee = a.assignee;
    fact.resolution = a.resolution;
    fact.reason = a.reason;
    fact.transition = transition;
    append_audit(*o, evidence::review_fact(fact), std::nullopt);
    row.operation = o->row.id;
    row.sequence = o->row.sequence;
    if (a.resolves) {
      row.notifications = notify(*a.settings, *o, "operation.review_resolved");
      o->row.review_open = --o->reviews_open > 0;
    }
  }
  writes_.new_review_actions.add(row);
  if (!a.resolves) {
    writes_.assigned_reviews.add(r.id, a.assignee);
    r.assigned_to = a.assignee;
    return;
  }
  writes_.resolved_reviews.add(r.id, at_, a.actor, a.resolution, a.reason);
  r.open = false;
  r.resolved_by = a.actor;
  r.resolution = a.resolution;
  r.reason = a.reason;
  if (!a.event.empty()) r.event = a.event;
  if (!o || r.kind == transition::to_string(transition::review_kind::conflict)) return;
  // The same again later in this batch opens a new one; a conflict is kept once, whatever became of it.
  const auto known = found_.reviews.find({o->row.id, r.kind, r.digest, r.key});
  if (known == found_.reviews.end()) return;
  if (known->second.times > 0) writes_.repeated_reviews[r.id] += known->second.times;
  found_.reviews.erase(known);
}

void batch::decide_parked_review(const parked_review& p, verdict& v) {
  v.is = verdict::kind::decided;
  const auto old = found_.old_parked.find(p.parked);
  // Applied meanwhile, or in the hands of another replica: then there is nothing to say.
  if (old == found_.old_parked.end() || old->second.reviewed) return;
  old->second.reviewed = true;
  const auto& waits = old->second;
  storage::review_row r;
  r.id = make_id<review_id>(at_);
  r.kind = "parked_age";
  r.digest = waits.content_digest;
  r.delivery = waits.id;
  r.detail = "the callback waits for an operation that nobody has registered";
  r.owner = p.settings->reviews.owner;
  r.at = at_;
  r.due_at = at_ + p.settings->reviews.due;
  r.provider = waits.provider;
  if (waits.request_id) r.request_id = *waits.request_id;
  writes_.new_reviews.add(r);
  v.outcome.delivery = waits.id;
  // Tells the sweeper that it opened one.
  v.outcome.disposition = transition::disposition::review;
}

}  // namespace recibo::record
