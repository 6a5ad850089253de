// What a batch decides about failed callbacks that somebody replays or gives up (R17, R37). The failed row is locked: whoever
// closes it first is the only one.
#include "batch.hpp"

#include "recibo/config/answers.hpp"

#include <utility>

namespace recibo::record {
namespace {

using transition::disposition;

void refuse_closed(verdict& v) {
  v.is = verdict::kind::refused;
  v.why = error(permanent::already_resolved, "this failed callback is done: replayed, sent again or discarded");
}

}  // namespace

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
  const auto failed = found_.failed.find({c.provider->name, c.body_digest});
  if (failed == found_.failed.end() || failed->second.closed || failed->second.row.id != c.replay->failed)
    return refuse_closed(v);

  const bool fails = !c.understood();
  if (fails || c.event == "ignore") {
    const auto word = c.unprocessable ? disposition::unprocessable : fails ? disposition::unmapped : disposition::ignored;
    v.is = verdict::kind::decided;
    v.outcome.disposition = word;
    v.outcome.request_id = c.request_id;
    if (c.unprocessable) v.outcome.detail = std::string(code_word(c.unprocessable->code)) + ": " + c.unprocessable->detail;
    if (word == disposition::unmapped) v.outcome.detail = "the event is not in the provider's map";
  } else {
    decide_understood(c, v);
    if (v.is == verdict::kind::absent && c.replay->dry_run) {
      v.is = verdict::kind::decided;
      v.outcome.disposition = disposition::parked;
      v.outcome.request_id = c.request_id;
    }
    if (v.is != verdict::kind::decided) return;
  }
  v.outcome.delivery = c.id;
  v.outcome.at = at_;

  const bool stays = fails || v.outcome.disposition == disposition::unknown_operation;
  const auto word = to_string(v.outcome.disposition);
  // What became part of an operation has its row beside the audit row.
  if (stays || v.outcome.disposition == disposition::ignored) {
    auto r = replay_of(c, at_);
    r.disposition = word;
    r.closes = !stays;
    writes_.new_replays.add(r);
  }
  if (!stays) {
    failed->second.closed = true;
    writes_.closed_failed.add(c.replay->failed);
    return;
  }
  // The row keeps one of the two words that failed callbacks have.
  const auto& row = failed->second.row;
  const auto kept = fails ? word : std::string_view(row.disposition);
  const auto reason = c.unprocessable ? code_word(c.unprocessable->code) : word;
  writes_.tried_failed.add(row.id, at_, kept, reason, v.outcome.detail);
}

void batch::record_replay(const callback& c, operation_in_hand& o, std::string_view disposition, const transition::move* taken) {
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
  if (taken) fact.move = moved_by(c, o, *taken);
  append_audit(o, evidence::replay_fact(fact), c.id);

  auto r = replay_of(c, at_);
  r.disposition = disposition;
  r.operation = o.row.id;
  r.sequence = o.row.sequence;
  r.key = c.key;
  writes_.new_replays.add(r);
  if (taken) record_move(c, o, *taken);
}

void batch::decide_discard(const discard& d, verdict& v) {
  const auto failed = found_.failed.find({d.provider, d.body_digest});
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
