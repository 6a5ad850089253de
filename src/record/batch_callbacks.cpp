// What a batch decides about callbacks (contract section 4, R10, R15-R17).
#include "batch.hpp"

#include "recibo/config/answers.hpp"
#include "recibo/evidence/facts.hpp"
#include "recibo/record/listed.hpp"

#include <algorithm>
#include <cassert>

namespace recibo::record {

using transition::disposition;

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
}

storage::key_row* batch::claim_of(const callback& c, operation_in_hand& o) {
  // What was signed comes first: the key beside it is anybody's to write, and may be that of another callback.
  if (c.signed_digest) {
    const auto same = [&](const auto& one) { return one.second.signed_digest == c.signed_digest; };
    const auto by_content = std::find_if(o.keys.begin(), o.keys.end(), same);
    if (by_content != o.keys.end()) return &by_content->second;
    const auto seen = o.signed_as.find(*c.signed_digest);
    const auto by_seen = seen == o.signed_as.end() ? o.keys.end() : o.keys.find(seen->second);
    if (by_seen != o.keys.end()) return &by_seen->second;
  }
  const auto by_key = o.keys.find(c.key);
  return by_key == o.keys.end() ? nullptr : &by_key->second;
}

const std::string* batch::earlier_key(const callback& c, const operation_in_hand& o, const storage::key_row* claim) {
  if (claim != nullptr && claim->key != c.key) return &claim->key;
  // Where a key means one thing for all operations, the claim may be another one's.
  const auto seen = c.signed_digest ? o.signed_as.find(*c.signed_digest) : o.signed_as.end();
  return seen == o.signed_as.end() || seen->second == c.key ? nullptr : &seen->second;
}

void batch::remember_signed(const sha256_digest& digest, operation_in_hand& o, const std::string& key) {
  const auto claim = o.keys.find(key);
  if (claim != o.keys.end() && claim->second.signed_digest == digest) return;
  if (o.signed_as.emplace(digest, key).second) writes_.new_signed_contents.add(o.row.id, digest, key, at_);
}

// What was signed was refused as a conflict before, under whatever key: that nobody has used this one changes nothing.
review_in_hand* batch::conflict_of(const callback& c, operation_in_hand& o) {
  if (!c.signed_digest) return nullptr;
  const std::string kind(transition::to_string(transition::review_kind::conflict));
  for (auto at = found_.reviews.lower_bound({o.row.id, kind, sha256_digest{}, std::string()}); at != found_.reviews.end(); ++at) {
    if (std::get<0>(at->first) != o.row.id || std::get<1>(at->first) != kind) break;
    if (at->second.row.signed_digest == c.signed_digest) return &at->second;
  }
  return nullptr;
}

transition::decision batch::judge(const callback& c, operation_in_hand& o) {
  std::optional<transition::claim> earlier;
  const auto* const claim = claim_of(c, o);
  const bool refused_before = claim == nullptr && c.signed_digest && o.signed_as.contains(*c.signed_digest);
  const bool conflicted =
      refused_before || ((claim == nullptr || claim->signed_digest != c.signed_digest) && conflict_of(c, o) != nullptr);
  // Another operation's answer is never given, whatever the contents are.
  if (conflicted || (claim == nullptr && found_.foreign_claim(c, o.row.id) != nullptr)) {
    transition::decision again;
    again.outcome = disposition::conflict;
    return again;
  }
  if (claim != nullptr) earlier = transition::claim{claim->content_digest};
  return transition::decide(table_of(o, *c.settings), subject_of(o), earlier, news_of(c), c.provider->order);
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
  const bool all_understood = group_ ? !any_part_failed_ : !has_failed_items(c.items);
  if (claim != nullptr && claim->content_digest != c.content_digest &&
      same_content(claim->content_digest, c.content_digest, claim->key)) {
    // One of the two came from a list of events: what is on record under the key is what it speaks of.
    callback same = c;
    same.content_digest = claim->content_digest;
    return decide_known(same, known, v, waited);
  }
  if (found_.any_failed && !waited && !c.replay && !c.looked_up && !c.listed && all_understood) {
    // The same bytes may have failed before: they are understood now.
    auto& failed = found_.failed[{c.provider->name, c.body_digest}];
    if (!std::exchange(failed.closed, true))
      writes_.resent_failed.add(c.provider->name, c.body_digest, c.id, at_, claim != nullptr);
  }

  if (const auto* const key = waited ? nullptr : earlier_key(c, *o, claim)) {
    // What was signed is on record under another key, which anybody could write: it is that callback again.
    callback again = c;
    again.key = *key;
    return decide_known(again, known, v, nullptr);
  }
  if (c.is_hint() && !c.named_instead && !found_.foreign_claim(c, o->row.id)) return decide_hint(c, *o, v, waited);
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
    detail = "a callback about items, in state '" + o->row.state + "'";
  } else if (contradicts_ && !waited) {
    outcome_word = disposition::review;
    review_word = transition::to_string(transition::review_kind::contradiction);
    taken = nullptr;
    detail = "the events of one request contradict each other, in state '" + o->row.state + "'";
  } else if (!c.items.empty()) {
    return decide_items(c, *o, v, waited);
  } else if (outcome_word == disposition::review) {
    detail = "event '" + c.event + "' in state '" + o->row.state + "'";
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
    if (c.listed) d.look_up = *c.listed;
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

void batch::claim_key(const callback& c, operation_in_hand& o, disposition d, int status, const std::optional<std::string>& body,
                      const storage::parked_row* waited, std::string items) {
  assert(transition::claims_key(d));
  storage::key_row k;
  k.operation = o.row.id;
  k.key = c.key;
  k.delivery = c.id;
  k.content_digest = c.content_digest;
  k.body_digest = c.body_digest;
  k.signed_digest = c.signed_digest;
  if (waited) {
    k.payload = waited->payload;
  } else if (c.replay && c.replay->part) {
    k.payload = c.replay->payload;
  } else if (group_payload_ && group_ && *group_payload_ != c.id) {
    k.payload = group_payload_;
  }
  k.disposition = to_string(d);
  k.state = o.row.state;
  k.answer_status = status;
  k.answer_body = body;
  if (c.provider->scope == config::key_scope::provider) k.provider = c.provider->name;
  if (c.provider->keep_keys) k.expires_at = at_ + *c.provider->keep_keys;
  if (!items.empty()) k.answer_items = std::move(items);
  writes_.new_keys.add(k);
  if (k.provider) found_.provider_claims.emplace(std::pair{*k.provider, k.key}, k);
  o.keys.emplace(c.key, std::move(k));
}

void batch::apply_parked(operation_in_hand& o, const std::shared_ptr<const config::settings>& settings,
                         std::vector<storage::identity_name> names) {
  const bool all = names.empty();
  for (bool again = true; again;) {
    again = false;
    for (auto& [order, p] : found_.parked) {
      if (p.applied || !found_.waits_for(p.row, o.row.provider, o.row.request_id)) continue;
      const auto meant = [&](const auto& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
      if (!o.created && !p.keys_read) continue;  // the re-match brings it
      if (!all && std::none_of(p.matched.begin(), p.matched.end(), meant)) continue;
      const auto provider = settings->providers.find(p.row.provider);
      if (provider == settings->providers.end()) continue;
      p.applied = true;
      writes_.applied_parked.add(p.row.id);
      writes_.outgrown_reviews.add(p.row.id, at_);

      auto& c = parked_callbacks_.emplace_back();
      c.settings = settings;
      c.provider = &provider->second;
      c.id = p.row.id;
      c.received_at = p.row.parked_at;
      c.secret_name = p.row.secret;
      c.body_digest = p.row.body_digest;
      c.request_id = p.row.request_id.value_or("");
      c.references = p.row.references;
      c.key = p.row.key;
      c.event = p.row.event;
      c.event_raw = p.row.event_raw;
      c.occurred_at = p.row.occurred_at;
      c.sequence = p.row.provider_sequence;
      c.items = p.items;
      if (p.row.amount) c.amount = decimal{*p.row.amount};
      c.currency = p.row.currency;
      c.account = p.row.account;
      c.result = p.row.result;
      c.content_digest = p.row.content_digest;
      c.signed_digest = p.row.signed_digest;
      if (const auto& by = p.row.replay) {
        replay met;
        met.failed = by->failed;
        met.actor = by->actor;
        met.reason = by->reason;
        met.met = true;
        c.replay = std::make_shared<const replay>(std::move(met));
      }
      if (auto learned = found_.unknown_references(o.row.provider, c.references);
          !learned.empty() && found_.may_meet(learned) && teaches(c, o)) {
        learn(c.references, o);
        names.insert(names.end(), std::make_move_iterator(learned.begin()), std::make_move_iterator(learned.end()));
        again = true;
      }
      verdict ignored;
      decide_known(c, o, ignored, &p.row);
      for (const auto& digest : p.row.signed_again) remember_signed(digest, o, c.key);
      // From the start again: what came under the learned reference may stand before what is next here.
      if (again) break;
    }
  }
}

}  // namespace recibo::record
