// What a batch decides about what runs out: limits of states, deadlines, the age of reviews (R22, R25); and the timers that every
// move sets or ends. Whether something is due is asked of the database's clock under the lock, never of this one (decision 29).
#include "batch.hpp"

#include "recibo/config/state_limit.hpp"
#include "recibo/evidence/facts.hpp"

#include <algorithm>
#include <vector>

namespace recibo::record {
namespace {

using transition::timer_kind;

constexpr std::string_view overdue_kind = "overdue";
// How long the clock waits for what a provider says before a retry, until it looks again.
constexpr std::chrono::seconds retry_look_every{5};
// What it has not said is asked again after so long, or after the longest wait of its schedule: what it did not answer is not
// held for an answer by then.
constexpr std::chrono::seconds retry_again_after{31};

bool has_moved(const operation_in_hand& o) {
  return o.created || o.row.version != o.locked_version || o.row.workflow != o.locked_workflow;
}

// `due_at`: when it ran out in the end.
std::string reason_of(timer_kind kind, std::string_view state, const std::optional<sys_micros>& was_due_at, sys_micros due_at) {
  const auto at = to_rfc3339(was_due_at.value_or(due_at));
  auto out = kind == timer_kind::limit ? "the limit of state '" + std::string(state) + "' ran out at " + at
                                       : "the deadline passed at " + at;
  if (was_due_at) out += ", put off until " + to_rfc3339(due_at) + " by outages";
  return out;
}

}  // namespace

sha256_digest overdue_digest(const storage::operation_row& o) {
  canonical c;
  c.add(overdue_kind).add(o.state).add_number(o.version);
  return sha256(c.bytes());
}

void batch::decide_timer(const timer_due& t, verdict& v) {
  auto* o = found_.find(t.request_id);
  if (!o && !found_.exists(t.request_id)) {
    v.is = verdict::kind::refused;
    v.why = error(permanent::not_found, "no such operation");
    return;
  }
  if (!o || o->blocked) {
    v.is = verdict::kind::busy;
    return;
  }
  v.is = verdict::kind::decided;
  v.outcome = outcome_of(*o);
  const auto found = found_.timers.find({o->row.id, t.kind});
  // Whoever was faster has acted on it, or the state was left, in this very batch too.
  if (found == found_.timers.end() || found->second.fired || !found->second.due || has_moved(*o)) return;
  auto& timer = found->second;
  const auto& table = table_of(*o, *t.settings);
  const auto* const state = table.find_state(o->row.state);
  if (!state || state->terminal) {
    writes_.ended_timers.add(o->row.id, t.kind);
    return;
  }

  if (t.kind == timer_kind::limit && (!timer.event || timer.version != o->row.version)) {
    // Set by the migration, or left from an earlier state by a binary that knew no timers: judged as if it were set now.
    const auto* const limit = config::limit_of(table, o->row.state, o->row.provider, *t.settings);
    if (!limit) {
      writes_.ended_timers.add(o->row.id, t.kind);
      return;
    }
    timer.event = limit->event;
    timer.due_at = o->row.state_at + limit->after;
    timer.was_due_at.reset();
  }
  const auto event = timer.event.value_or(std::string(transition::deadline_event));
  std::vector<transition::downtime> downtimes;
  for (const auto& one : found_.downtimes)
    if (one.provider.empty() || one.provider == o->row.provider) downtimes.push_back(one.when);
  // From when it was due at first, with all outages since it was set: those that are close to each other are one pause.
  const auto first_due_at = timer.was_due_at.value_or(timer.due_at);
  const auto due_at =
      transition::put_off(t.kind, timer.set_at, first_due_at, downtimes, config::resend_gap_of(o->row.provider, *t.settings));
  if (due_at > timer.read_at) {
    o->put_off_timers[t.kind] = {due_at, event, timer.set_at, first_due_at};
    v.outcome.detail = timer_put_off;
    timer.fired = true;
    return;
  }

  auto reason = reason_of(t.kind, o->row.state, timer.was_due_at, timer.due_at);
  auto move = transition::decide_event(table, o->row.state, event, transition::actor_kind::clock, false);
  if (move && asks_first(*t.settings, *o, event, false)) {
    // Something was recorded of it in this batch; what was read of its moves is from before that.
    if (o->changed) return;
    const auto word = ask_before_retry(*t.settings, *o, {}, std::string(evidence::clock_actor), std::nullopt, true).first;
    if (word == retry_asks || word == retry_unknown) {
      // Who was to answer and did not has a review of the look-up already: that is told once, and asked again in time.
      const auto max = t.settings->providers.at(o->row.provider).status->retry.max;
      o->put_off_timers[t.kind] = {timer.read_at + (word == retry_asks ? retry_look_every : std::max(retry_again_after, max)),
                                   event, std::nullopt, std::nullopt};
      v.outcome.detail = timer_put_off;
      timer.fired = true;
      return;
    }
    if (!word.empty()) {
      reason += ", and what the provider says has to be looked at before it is retried";
      move = error(permanent::illegal_transition);
    }
  }
  timer.fired = true;
  // A limit is over with its state. A deadline that has passed stays passed, so that it is not raised again.
  if (!move || t.kind == timer_kind::deadline) writes_.fired_timers.add(o->row.id, t.kind);
  if (move) {
    evidence::raised said;
    said.who = transition::actor_kind::clock;
    said.actor = evidence::clock_actor;
    said.reason = reason;
    raise(*o, *t.settings, nullptr, **move, said);
  } else {
    open_overdue(*o, *t.settings, event, reason);
  }
  v.outcome = outcome_of(*o);
  v.outcome.detail = move ? timer_fired : timer_reviewed;
}

void batch::open_overdue(operation_in_hand& o, const config::settings& settings, std::string_view event,
                         std::string_view reason) {
  const auto digest = overdue_digest(o.row);
  const std::tuple name{o.row.id, std::string(overdue_kind), digest, std::string()};
  if (const auto known = found_.reviews.find(name); known != found_.reviews.end()) {
    // The deadline has passed in a state whose limit has run out, or the other way round.
    ++known->second.times;
    return;
  }
  const bool asked = event == retry_event && asks_first(settings, o, event, false);
  const std::string detail =
      asked ? std::string(reason) : std::string(reason) + ", and no transition answers to '" + std::string(event) + "' there";
  const auto* const state = table_of(o, settings).find_state(o.row.state);
  storage::review_row r;
  r.id = make_id<review_id>(at_);
  r.operation = o.row.id;
  r.kind = overdue_kind;
  r.digest = digest;
  r.detail = detail;
  r.state = o.row.state;
  r.owner = state && !state->owner.empty() ? state->owner : settings.reviews.owner;
  r.at = at_;
  r.due_at = at_ + settings.reviews.due;
  writes_.new_reviews.add(r);
  storage::known_review known;
  known.id = r.id;
  known.operation = o.row.id;
  known.kind = overdue_kind;
  known.digest = digest;
  found_.reviews.emplace(name, review_in_hand{std::move(known), 0});
  o.row.review_open = true;
  ++o.reviews_open;
  record_by_clock(settings, &o, r.id, "opened", reason, "operation.review_opened");
}

void batch::record_by_clock(const config::settings& settings, operation_in_hand* o, review_id review, std::string_view action,
                            std::string_view reason, std::string_view told) {
  storage::review_action_row row;
  row.review = review;
  row.action = action;
  row.at = at_;
  row.actor = evidence::clock_actor;
  row.reason = reason;
  if (o) {
    evidence::reviewed fact;
    fact.sequence = o->row.sequence + 1;
    fact.at = at_;
    fact.actor = evidence::clock_actor;
    fact.review = review;
    fact.action = action;
    fact.reason = reason;
    append_audit(*o, evidence::review_fact(fact), std::nullopt);
    row.operation = o->row.id;
    row.sequence = o->row.sequence;
    row.notifications = notify(settings, *o, told);
  }
  writes_.new_review_actions.add(row);
}

void batch::decide_review_due(const review_due& late, verdict& v) {
  operation_in_hand* o = nullptr;
  if (!late.request_id.empty()) {
    o = found_.find(late.request_id);
    const bool gone = !o && !found_.exists(late.request_id);
    if (!gone && (!o || o->blocked)) {
      v.is = verdict::kind::busy;
      return;
    }
  }
  v.is = verdict::kind::decided;
  if (o) v.outcome = outcome_of(*o);
  auto* const r = found_.find_review(late.review);
  if (!r || !r->open || !r->untold || r->operation.has_value() != (o != nullptr)) return;
  r->untold = false;
  writes_.reminded_reviews.add(r->id);
  record_by_clock(*late.settings, o, r->id, "reminded", "its age limit has passed", "operation.review_overdue");
  if (o) v.outcome = outcome_of(*o);
  v.outcome.detail = review_reminded;
}

void batch::plan_timers() {
  for (auto& o : found_.operations) {
    const bool moved = has_moved(o);
    if ((!moved && !o.deadline && o.put_off_timers.empty()) || !o.table || !o.settings) continue;
    const auto* const state = o.table->find_state(o.row.state);
    if (!state || state->terminal) {
      if (o.created) continue;
      writes_.ended_timers.add(o.row.id, timer_kind::limit);
      writes_.ended_timers.add(o.row.id, timer_kind::deadline);
      continue;
    }
    for (const auto& [kind, later] : o.put_off_timers) {
      if (kind == timer_kind::limit ? moved : o.deadline.has_value()) continue;
      writes_.set_timers.add(o.row.id, kind, later.to, std::nullopt, later.event, o.row.version, later.since, later.was_due_at);
    }
    if (moved) {
      const auto* const limit = config::limit_of(*o.table, o.row.state, o.row.provider, *o.settings);
      // Where only the table was changed, the state has lasted for a while already, and so may outages have.
      const bool entered = o.row.state_at == at_;
      if (limit) {
        writes_.set_timers.add(o.row.id, timer_kind::limit, entered ? std::nullopt : std::optional(o.row.state_at + limit->after),
                               entered ? std::optional(limit->after) : std::nullopt, limit->event, o.row.version,
                               entered ? std::nullopt : std::optional(o.row.state_at));
      } else if (!o.created) {
        writes_.ended_timers.add(o.row.id, timer_kind::limit);
      }
    }
    if (o.deadline && *o.deadline) {
      writes_.set_timers.add(o.row.id, timer_kind::deadline, **o.deadline, std::nullopt, transition::deadline_event,
                             o.row.version);
    } else if (o.deadline && !o.created) {
      writes_.ended_timers.add(o.row.id, timer_kind::deadline);
    } else if (moved && !o.created) {
      const auto* const left = o.table->find_state(o.locked_state);
      if (left && left->terminal) writes_.resumed_deadlines.add(o.row.id, o.row.corrected, o.row.version);
    }
  }
}

}  // namespace recibo::record
