// What a batch decides about callbacks (contract section 4, R10, R15-R17).
#include "batch.hpp"

#include "recibo/config/answers.hpp"
#include "recibo/evidence/facts.hpp"
#include "recibo/record/listed.hpp"

#include <algorithm>
#include <cassert>

namespace recibo::record {

using transition::disposition;

namespace {

// What it says otherwise than was registered; empty: nothing. Whose account it is stays with the payload.
std::string difference(const transition::subject& registered, const callback& c) {
  const auto money = [](const std::optional<decimal>& amount, const std::optional<std::string>& currency) {
    return (amount ? amount->text : std::string("an amount")) + (currency ? " " + *currency : std::string());
  };
  transition::news said;
  said.amount = c.amount;
  said.currency = c.currency;
  said.account = c.account;
  switch (transition::against_intent(registered, said)) {
    case transition::review_kind::amount_mismatch:
    case transition::review_kind::currency_mismatch:
      return ": " + money(c.amount, c.currency) + " came, " + money(registered.amount, registered.currency) + " was registered";
    case transition::review_kind::account_mismatch: return ": another account came than was registered";
    default: return {};
  }
}

}  // namespace

transition::subject batch::subject_of(const operation_in_hand& o) {
  transition::subject now;
  now.state = o.row.state;
  now.watermark_at = o.row.watermark_at;
  now.watermark_sequence = o.row.watermark_sequence;
  if (o.row.amount) now.amount = decimal{*o.row.amount};
  now.currency = o.row.currency;
  now.account = o.row.account;
  return now;
}

transition::news news_of(const callback& c) {
  transition::news said;
  said.event = c.event;
  said.occurred_at = transition::believable(c.occurred_at, c.received_at);
  said.sequence = c.sequence;
  said.amount = c.amount;
  said.currency = c.currency;
  said.account = c.account;
  said.content_digest = c.content_digest;
  return said;
}

storage::delivery_row delivery_of(const callback& c) {
  storage::delivery_row d;
  d.id = c.id;
  d.provider = c.provider->name;
  d.received_at = c.received_at;
  if (!c.key.empty()) d.key = c.key;
  if (!c.event_raw.empty()) d.event = c.event_raw;
  d.occurred_at = c.occurred_at;
  d.provider_sequence = c.sequence;
  d.body_digest = c.body_digest;
  d.secret = c.secret_name;
  d.peer = c.peer;
  d.trace_id = c.trace_id;
  if (c.looked_up) d.look_up = c.looked_up->id;
  if (c.listed) d.look_up = *c.listed;
  return d;
}

evidence::moved moved_by(const callback& c, const operation_in_hand& o, const transition::move& taken) {
  evidence::moved move;
  move.event = taken.event;
  move.from = taken.from;
  move.to = taken.to;
  move.version = o.row.version;
  move.result = c.result;
  return move;
}

void batch::decide_callback(const callback& c, verdict& v) {
  if (c.replay) return decide_replay(c, v);
  if (c.looked_up) return decide_looked_up(c, v);
  if (!c.understood()) return decide_failed(c, v);
  decide_understood(c, v);
}

void batch::decide_understood(const callback& c, verdict& v) {
  if (const auto before = found_.failed.find(failed_key_of(c)); before != found_.failed.end() && !c.replay) {
    if (auto first = first_key_of(c, before->second.row)) {
      callback again = c;
      again.key = std::move(*first);
      return decide_understood(again, v);
    }
  }
  auto* o = found_.find_for(c);
  if (!o) return decide_unmatched(c, v);

  if (o->blocked) {
    v.is = verdict::kind::busy;
    return;
  }
  // It teaches nothing: what it names is looked up.
  if (c.is_hint()) return decide_known(c, *o, v, nullptr);
  const auto learned = found_.unknown_references(o->row.provider, c.references);
  if (!found_.may_meet(learned) || (!learned.empty() && !found_.may_apply(o->row.provider, o->row.request_id, learned))) {
    o->blocked = true;
    v.is = verdict::kind::busy;
    return;
  }
  if (!learned.empty() && teaches(c, *o)) {
    learn(c.references, *o);
    // What came earlier under a reference that is only now known to be this operation's goes first.
    apply_parked(*o, c.settings, learned);
  }
  decide_known(c, *o, v, nullptr);
  remember_failed(c, *o);
}

bool batch::teaches(const callback& c, operation_in_hand& o) {
  if (c.named_instead || c.is_hint() || c.unprocessable) return false;
  if (taken_reference(c.references, o)) return false;
  const auto outcome = judge(c, o).outcome;
  return outcome != disposition::duplicate && outcome != disposition::conflict;
}

void batch::decide_known(const callback& c, operation_in_hand& known, verdict& v, const storage::parked_row* waited) {
  auto* o = &known;
  v.is = verdict::kind::decided;
  auto* const claim = claim_of(c, *o);
  if (claim != nullptr && claim->content_digest != c.content_digest &&
      same_content(claim->content_digest, c.content_digest, claim->key)) {
    // One of the two came from a list of events: what is on record under the key is what it speaks of.
    callback same = c;
    same.content_digest = claim->content_digest;
    return decide_known(same, known, v, waited);
  }
  // The same bytes may have failed before: they are understood now.
  if (found_.any_failed && !group_ && !waited && !c.replay && !c.looked_up && !c.listed && !has_failed_items(c.items))
    close_resent(c, c.id, claim != nullptr);

  if (const auto* const key = waited ? nullptr : earlier_key(c, *o, claim)) {
    // What was signed is on record under another key, which anybody could write: it is that callback again.
    callback again = c;
    again.key = *key;
    return decide_known(again, known, v, nullptr);
  }
  if (c.is_hint() && !c.named_instead && !found_.foreign_claim(c, o->row.id)) return decide_hint(c, *o, v, waited);
  // It was refused beside another that waits, and is no more than that when it meets its operation alone.
  if (waited && claim == nullptr && waited->disposition == to_string(disposition::conflict))
    return decide_conflict(c, *o, nullptr, v, waited);
  const auto decided = judge(c, *o);

  if (decided.outcome == disposition::duplicate) return decide_duplicate(c, *o, *claim, v, waited);
  if (decided.outcome == disposition::conflict)
    return decide_conflict(c, *o, claim ? claim : found_.foreign_claim(c, o->row.id), v, waited);

  auto outcome_word = decided.outcome;
  std::string review_word(transition::to_string(decided.why_review));
  const transition::move* taken = decided.taken;
  std::string detail;
  const auto doubt = c.items.empty() ? transition::review_kind::none : transition::against_intent(subject_of(*o), news_of(c));
  if (c.looked_up && !c.understood()) {
    outcome_word = disposition::review;
    review_word = "look_up";
    taken = nullptr;
    detail = c.unprocessable ? c.unprocessable->detail : "the provider's answer to a look-up has a word that is not in the map";
  } else if (c.looked_up && c.event == "ignore" && !c.named_instead) {
    // The provider has no news; that is no callback that could be left out.
    outcome_word = disposition::redundant;
    taken = nullptr;
  } else if (c.named_instead && c.looked_up) {
    outcome_word = disposition::review;
    review_word = "identity_mismatch";
    taken = nullptr;
    detail = "the provider's answer to a look-up is about another operation than the one that was asked for";
  } else if (c.named_instead) {
    // Whoever has the URL of one operation speaks of it alone; what he says of another is nothing that either may be moved by.
    outcome_word = disposition::review;
    review_word = "identity_mismatch";
    taken = nullptr;
    detail = "the callback names another operation than the one whose callback URL it came to";
  } else if (taken_reference(c.references, *o) || taken_reference(c.unproven_references, *o)) {
    // A second claim of a reference on a callback is for a person to untangle (R34): nothing is applied.
    outcome_word = disposition::review;
    // Without a request ID nothing says which of the two is meant.
    review_word = c.request_id.empty() ? "ambiguity" : "alias_taken";
    taken = nullptr;
    detail = c.request_id.empty() ? "the references in the callback belong to different operations of this provider"
                                  : "a reference in the callback belongs to another operation of this provider";
  } else if (doubt != transition::review_kind::none) {
    // What cannot be believed of the operation is not believed of its items.
    outcome_word = disposition::review;
    review_word = transition::to_string(doubt);
    taken = nullptr;
    detail = "a callback about items, in state '" + o->row.state + "'" + difference(subject_of(*o), c);
  } else if (contradicts_ && !waited) {
    outcome_word = disposition::review;
    review_word = transition::to_string(transition::review_kind::contradiction);
    taken = nullptr;
    detail = "the events of one request contradict each other, in state '" + o->row.state + "'";
  } else if (!c.items.empty()) {
    return decide_items(c, *o, v, waited);
  } else if (outcome_word == disposition::review) {
    detail = "event '" + c.event + "' in state '" + o->row.state + "'" + difference(subject_of(*o), c);
  }
  note(c, decided);

  const auto shape = config::shape_of(c.provider->answers, outcome_word);
  if (taken) take_own_move(c, *o, *taken);
  record_delivery(c, *o, to_string(outcome_word), shape.status, std::nullopt, taken, waited);
  if (outcome_word == disposition::review) open_review(c, *o, review_word, nullptr, detail);
  claim_key(c, *o, outcome_word, shape.status, shape.body, waited);

  v.outcome = outcome_of(*o);
  v.outcome.disposition = outcome_word;
  v.outcome.delivery = c.id;
  v.outcome.status = shape.status;
  v.outcome.body = shape.body;
}

void batch::take_own_move(const callback& c, operation_in_hand& o, const transition::move& taken) {
  o.row.state = taken.to;
  o.row.state_at = at_;
  ++o.row.version;
  const auto at = transition::believable(c.occurred_at, c.received_at);
  if (at && (!o.row.watermark_at || *o.row.watermark_at < *at)) o.row.watermark_at = at;
  o.row.watermark_sequence = transition::watermark_after(o.row.watermark_sequence, c.sequence);
  look_up_in_state(*c.settings, o);
}

void batch::note(const callback& c, const transition::decision& d) {
  if (d.table_would_allow) sequence_decisions_.emplace_back(c.provider->name, "overruled");
  if (d.sequence_doubted) sequence_decisions_.emplace_back(c.provider->name, "doubted");
}

void batch::decide_duplicate(const callback& c, operation_in_hand& o, storage::key_row& claim, verdict& v,
                             const storage::parked_row* waited) {
  if (c.signed_digest) remember_signed(*c.signed_digest, o, claim.key);
  // A replay is no repetition by the sender.
  if (!c.replay) {
    ++claim.duplicates;
    ++writes_.repeated_keys[{o.row.id, claim.key}];
  }
  if (waited || c.replay || claim.duplicates <= duplicates_recorded_max) {
    std::optional<delivery_id> payload;
    if (claim.body_digest == c.body_digest) payload = claim.payload.value_or(claim.delivery);
    record_delivery(c, o, to_string(disposition::duplicate), claim.answer_status, payload, nullptr, waited);
  }
  v.outcome.disposition = transition::parse_disposition(claim.disposition).value_or(disposition::duplicate);
  v.outcome.replayed = true;
  v.outcome.delivery = claim.delivery;
  v.outcome.request_id = o.row.request_id;
  v.outcome.state = claim.state;
  v.outcome.status = claim.answer_status;
  v.outcome.body = claim.answer_body;
  v.outcome.items = claim.answer_items.value_or("");
}

void batch::decide_conflict(const callback& c, operation_in_hand& o, const storage::key_row* claim, verdict& v,
                            const storage::parked_row* waited) {
  const auto shape = config::shape_of(c.provider->answers, disposition::conflict);
  const std::string kind(transition::to_string(transition::review_kind::conflict));
  v.outcome = outcome_of(o);
  v.outcome.disposition = disposition::conflict;
  v.outcome.status = shape.status;
  v.outcome.body = shape.body;
  v.outcome.detail = "the key was used before with other content; the first stands";
  // The same content again is the same conflict: a count, and the same answer (matrix of contract section 4).
  const auto by_key = found_.reviews.find({o.row.id, kind, c.content_digest, c.key});
  auto* known = by_key == found_.reviews.end() ? nullptr : &by_key->second;
  auto* const by_content = conflict_of(c, o);
  if (by_content != nullptr) known = by_content;
  // The first of equal conflicts is remembered with its review.
  if (c.signed_digest && known != nullptr && by_content == nullptr)
    remember_signed(*c.signed_digest, o, claim ? claim->key : c.key);
  if (known != nullptr) {
    if (!c.replay) ++known->times;
    v.outcome.delivery = known->row.delivery;
    if (waited || c.replay) record_delivery(c, o, to_string(disposition::conflict), shape.status, std::nullopt, nullptr, waited);
    return;
  }
  record_delivery(c, o, to_string(disposition::conflict), shape.status, std::nullopt, nullptr, waited);
  open_review(c, o, kind, claim, v.outcome.detail);
  v.outcome.delivery = c.id;
}

void batch::record_delivery(const callback& c, operation_in_hand& o, std::string_view disposition, int status,
                            std::optional<delivery_id> payload, const transition::move* taken, const storage::parked_row* waited,
                            std::string_view items) {
  if (c.replay) return record_replay(c, o, disposition, taken, items);
  if (waited) {
    // Its delivery is on record as it was answered then, and never changes.
    disposition = waited->disposition;
    status = waited->answer_status;
    items = {};
  } else {
    auto d = delivery_of(c);
    d.operation = o.row.id;
    d.disposition = disposition;
    d.payload = payload ? *payload : keep_payload(c);
    d.answer_status = status;
    d.items = items;
    writes_.new_deliveries.add(d);
  }

  evidence::delivered fact;
  fact.sequence = o.row.sequence + 1;
  fact.at = at_;
  fact.provider = c.provider->name;
  fact.delivery = c.id;
  fact.disposition = disposition;
  fact.key = c.key;
  fact.body_digest = c.body_digest;
  fact.secret = c.secret_name;
  fact.answer_status = status;
  fact.items = items;
  if (c.looked_up) fact.look_up = c.looked_up->id;
  if (c.listed) fact.look_up = *c.listed;
  if (taken) fact.move = moved_by(c, o, *taken);
  append_audit(o, evidence::delivery_fact(fact), c.id);

  if (taken) record_move(c, o, *taken);
}

void batch::record_move(const callback& c, operation_in_hand& o, const transition::move& taken) {
  storage::transition_row t;
  t.operation = o.row.id;
  t.sequence = o.row.sequence;
  t.version = o.row.version;
  t.event = taken.event;
  t.from = taken.from;
  t.to = taken.to;
  t.at = at_;
  t.actor_kind = to_string(transition::actor_kind::provider);
  t.actor = c.provider->name;
  t.delivery = c.id;
  t.result = c.result;
  t.notifications = notify(*c.settings, o, "operation." + taken.to);
  writes_.new_transitions.add(t);
}

}  // namespace recibo::record
