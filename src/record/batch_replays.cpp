// What a batch decides about failed callbacks that somebody replays or gives up (R17, R37). The failed row is locked: whoever
// closes it first is the only one.
#include "batch.hpp"

#include "items_text.hpp"
#include "recibo/config/answers.hpp"
#include "recibo/record/left_out.hpp"

#include <algorithm>
#include <utility>

namespace recibo::record {
namespace {

using transition::disposition;

void refuse_closed(verdict& v) {
  v.is = verdict::kind::refused;
  v.why = error(permanent::already_resolved, "this failed callback is done: replayed, sent again or discarded");
}

}  // namespace

storage::delivery_row failed_delivery_of(const callback& c, const storage::failed_row& failed) {
  auto d = delivery_of(c);
  d.disposition = failed.disposition;
  d.key = {};
  if (!c.request_id.empty()) d.request_id = c.request_id;
  d.payload = c.replay->payload;
  d.answer_status = failed.answer_status;
  return d;
}

storage::replay_row replay_of(const callback& c, sys_micros at) {
  storage::replay_row r;
  r.id = make_id<storage::replay_id>(at);
  r.failed = c.replay->failed;
  r.provider = c.provider->name;
  r.delivery = c.id;
  r.action = c.replay->met ? "met" : "replayed";
  r.at = at;
  r.actor = c.replay->actor;
  r.reason = c.replay->reason;
  // What is parked is closed by the replay, not by the meeting.
  r.closes = !c.replay->met;
  return r;
}

void batch::decide_replay(const callback& c, verdict& v) {
  const auto failed = found_.failed.find(failed_key_of(c));
  if (failed == found_.failed.end() || failed->second.closed || failed->second.row.id != c.replay->failed)
    return refuse_closed(v);
  // Of one failed callback one thing at a time: what is left of it is written once.
  if (failed->second.tried) {
    v.is = verdict::kind::busy;
    return;
  }
  auto left = left_of(failed->second.row.left_out, *c.replay);
  const auto mine = replayed_part(left, *c.replay, place_of(*c.provider));
  // Somebody has decided a part of it since it was read: who replays reads it again.
  if (mine == left.end() || mine->items != c.replay->items) return refuse_closed(v);
  replay_closes_ = left.size() == 1;
  still_left_.clear();

  const auto& only = c.replay->items;
  const bool fails = !c.understood() || (!only.empty() && std::none_of(only.begin(), only.end(),
                                                                       [&](const auto i) { return c.items[i].understood(); }));
  if (fails || c.event == "ignore") {
    const auto word = c.unprocessable ? disposition::unprocessable : fails ? disposition::unmapped : disposition::ignored;
    v.is = verdict::kind::decided;
    v.outcome.disposition = word;
    v.outcome.request_id = c.request_id;
    if (c.unprocessable) v.outcome.detail = std::string(code_word(c.unprocessable->code)) + ": " + c.unprocessable->detail;
    if (word == disposition::unmapped) v.outcome.detail = "the event is not in the provider's map";
  } else {
    if (c.replay->items.empty()) {
      decide_understood(c, v);
    } else {
      decide_left_items(c, v);
    }
    if (v.is == verdict::kind::absent && c.replay->dry_run) {
      v.is = verdict::kind::decided;
      v.outcome.disposition = disposition::parked;
      v.outcome.request_id = c.request_id;
    }
    if (v.is != verdict::kind::decided) return;
  }
  v.outcome.delivery = c.id;
  v.outcome.at = at_;

  // What became part of an operation has its row beside the audit row.
  const bool recorded = !only.empty() && !fails && c.event != "ignore";
  const bool stays = fails || v.outcome.disposition == disposition::unknown_operation;
  const auto word = to_string(v.outcome.disposition);
  if (!stays && c.replay->new_delivery) writes_.new_deliveries.add(failed_delivery_of(c, failed->second.row));
  if (stays || (v.outcome.disposition == disposition::ignored && !recorded)) {
    auto r = replay_of(c, at_);
    if (stays) r.delivery = failed->second.row.delivery;
    r.disposition = word;
    r.closes = !stays && replay_closes_;
    writes_.new_replays.add(r);
  }
  if (!stays && still_left_.empty()) left.erase(mine);
  if (left.empty()) {
    failed->second.closed = true;
    writes_.closed_failed.add(c.replay->failed);
    return;
  }
  if (!still_left_.empty()) *mine = {c.replay->part, c.id, still_left_, place_of(*c.provider)};
  auto& row = failed->second.row;
  failed->second.tried = true;
  // As long as all is left, that stays unsaid: extraction may read other events from it next time.
  if (!stays || !row.left_out.empty()) row.left_out = write_left_out(left);
  if (!stays) {
    const auto reason = row.reason.starts_with("item_") ? row.reason : "item_" + row.disposition;
    writes_.tried_failed.add(row.id, at_, row.disposition, still_left_.empty() ? row.reason : reason, row.detail, row.left_out);
    return;
  }
  // The row keeps one of the two words that failed callbacks have.
  const auto kept = fails ? word : std::string_view(row.disposition);
  const auto reason = c.unprocessable ? code_word(c.unprocessable->code) : word;
  writes_.tried_failed.add(row.id, at_, kept, reason, v.outcome.detail, row.left_out);
}

void batch::decide_left_items(const callback& c, verdict& v) {
  auto* const o = found_.find_for(c);
  if (!o && found_.meaning_of(c) != found::stranger::busy) {
    v.is = verdict::kind::refused;
    v.why =
        error(permanent::illegal_transition, "its operation is not there any more, or this configuration reads another identity");
    return;
  }
  if (!o || o->blocked) {
    v.is = verdict::kind::busy;
    return;
  }
  auto* const claim = claim_of(c, *o);
  if (claim == nullptr || claim->delivery != c.id) {
    v.is = verdict::kind::refused;
    v.why = error(permanent::illegal_transition,
                  "its key is not the one that it came with: it has expired, or this configuration reads another one");
    return;
  }
  table_of(*o, *c.settings);
  callback known = c;
  known.key = claim->key;
  const auto items = decide_each_item(c, *o);
  still_left_ = items.left_out;
  replay_closes_ = replay_closes_ && still_left_.empty();
  std::vector<disposition> words;
  for (const auto& r : items.results) words.push_back(r.outcome);
  const auto word = transition::combined(words);
  auto text = write_item_results(items.results);
  record_replay(known, *o, to_string(word), nullptr, text);
  review_items(c, *o, items);
  record_items(c, *o, items);
  remember_failed(known, *o);
  v.is = verdict::kind::decided;
  v.outcome = outcome_of(*o);
  v.outcome.disposition = word;
  v.outcome.items = std::move(text);
}

void batch::record_replay(const callback& c, operation_in_hand& o, std::string_view disposition, const transition::move* taken,
                          std::string_view items) {
  evidence::replayed fact;
  fact.sequence = o.row.sequence + 1;
  fact.at = at_;
  fact.actor = c.replay->actor;
  fact.failed = c.replay->failed;
  fact.delivery = c.id;
  fact.disposition = disposition;
  fact.key = c.key;
  fact.body_digest = c.body_digest;
  fact.reason = c.replay->reason;
  fact.items = items;
  if (taken) fact.move = moved_by(c, o, *taken);
  append_audit(o, evidence::replay_fact(fact), c.id);

  auto r = replay_of(c, at_);
  r.disposition = disposition;
  r.operation = o.row.id;
  r.sequence = o.row.sequence;
  r.key = c.key;
  r.items = items;
  r.closes = r.closes && replay_closes_;
  writes_.new_replays.add(r);
  if (taken) record_move(c, o, *taken);
}

void batch::decide_discard(const discard& d, verdict& v) {
  const auto failed = found_.failed.find({d.provider, d.body_digest, d.key_beside});
  if (failed == found_.failed.end() || failed->second.closed || failed->second.row.id != d.failed) return refuse_closed(v);
  failed->second.closed = true;
  storage::replay_row r;
  r.id = make_id<storage::replay_id>(at_);
  r.failed = d.failed;
  r.provider = d.provider;
  r.delivery = failed->second.row.delivery;
  r.action = "discarded";
  r.at = at_;
  r.actor = d.actor;
  r.reason = d.reason;
  r.closes = true;
  writes_.new_replays.add(r);
  writes_.closed_failed.add(d.failed);
  v.is = verdict::kind::decided;
  v.outcome.delivery = failed->second.row.delivery;
  v.outcome.at = at_;
}

}  // namespace recibo::record
