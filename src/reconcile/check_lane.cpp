#include "check_lane.hpp"

#include "recibo/observe/log.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <utility>

namespace recibo::reconcile {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using next = storage::look_up_outcome::next;

constexpr milliseconds round_every = 300ms, database_limit = 5s, record_limit = 10s;
// Beyond its deadline an attempt needs the recorder; then its holder has gone.
constexpr milliseconds lease_beyond = 20s;
// Attempts beyond the schedule's: each is one whose holder never settled it.
constexpr int lost_most = 3;
// Look-ups of a catch-up that wait at once: what people ask for is not to stand behind all of them.
constexpr int backlog_most = 1000;

const config::provider* provider_of(const config::settings& settings, const std::string& name) {
  const auto found = settings.providers.find(name);
  return found == settings.providers.end() || !found->second.status ? nullptr : &found->second;
}

http::request as_request(const http::outbound_answer& answer) {
  http::request out;
  out.method = "POST";
  out.headers = answer.headers;
  out.body = answer.body;
  return out;
}

}  // namespace

// Counts an attempt in flight; one that does not end goes back.
class check_lane::asking {
 public:
  asking(check_lane& in, const storage::claimed_look_up& what) : in_(in), what_(what) {}
  ~asking() {
    --in_.in_flight_;
    in_.worker_.wake();
    if (ended_) return;
    storage::look_up_outcome back;
    back.id = what_.id;
    back.attempt = what_.attempts;
    back.what = next::returned;
    back.reason = what_.reason;
    in_.returned_.push_back(std::move(back));
  }
  void end() { ended_ = true; }

 private:
  check_lane& in_;
  const storage::claimed_look_up& what_;
  bool ended_ = false;
};

check_lane::check_lane(boost::asio::any_io_executor executor, status_checks::parts p, storage::look_up_holder by,
                       std::string name)
    : parts_(std::move(p)),
      by_(by),
      name_(std::move(name)),
      tasks_(executor),
      worker_(executor, "look-ups", round_every, [this] { return round(); }),
      random_(std::random_device{}()) {}

awaitable<void> check_lane::stop(time_point until) {
  stopping_ = true;
  co_await worker_.stop(until);
  const bool gone = co_await tasks_.wait_empty(until);
  if (!gone) co_await tasks_.end();
  // All within one limit, beyond what the drain has left.
  const auto last = std::max(until, steady_clock::now() + database_limit);
  async::task_group giving_back(co_await boost::asio::this_coro::executor);
  for (auto& one : std::exchange(returned_, {})) giving_back.spawn("look-up given back", settle(std::move(one)));
  const bool all = co_await giving_back.wait_empty(last);
  if (!all) co_await giving_back.end();
}

awaitable<bool> check_lane::round() {
  const auto settings = parts_.settings.get();
  const auto* of = provider_of(*settings, name_);
  if (stopping_ || of == nullptr) co_return false;
  for (auto& one : std::exchange(returned_, {})) co_await settle(std::move(one));
  const auto waiting = co_await storage::peek_look_ups(parts_.pool, name_, steady_clock::now() + database_limit);
  if (!waiting) co_return false;
  parts_.counts.state(name_, waiting->breaker);
  if (waiting->listing) co_await catch_up();
  if ((!waiting->due && !waiting->listing) || in_flight_ >= of->status->concurrency) co_return false;
  co_return co_await claim(settings);
}

awaitable<void> check_lane::catch_up() {
  const auto more = co_await storage::advance_catch_up(parts_.pool, name_, backlog_most, steady_clock::now() + database_limit);
  if (!more) {
    log::warn("a catch-up could not go on", {{"provider", name_}, {"code", code_word(more.error().code)}});
  } else if (*more && !**more) {
    log::info("a catch-up has asked for all its look-ups", {{"provider", name_}});
  }
}

awaitable<bool> check_lane::claim(settings_ptr settings) {
  const auto& rule = *provider_of(*settings, name_)->status;
  storage::look_up_claim what;
  what.provider = name_;
  what.by = by_;
  what.lease = rule.timeout + lease_beyond;
  what.per_second = rule.rate.per_second;
  what.burst = rule.rate.burst;
  what.concurrency = rule.concurrency;
  what.limit = rule.concurrency - in_flight_;
  auto claimed = co_await storage::claim_look_ups(parts_.pool, std::move(what), steady_clock::now() + database_limit);
  if (!claimed) {
    log::warn("look-ups could not be claimed", {{"provider", name_}, {"code", code_word(claimed.error().code)}});
    co_return false;
  }
  openings_ = claimed->openings;
  parts_.counts.state(name_, claimed->breaker);
  const bool probe = claimed->breaker == "half_open";
  for (auto& one : claimed->all) {
    ++in_flight_;
    tasks_.spawn("look-up", ask(settings, std::move(one), probe));
  }
  co_return false;
}

awaitable<void> check_lane::ask(settings_ptr settings, storage::claimed_look_up one, bool probe) {
  asking attempt(*this, one);
  const auto& rule = *provider_of(*settings, name_)->status;
  storage::look_up_outcome outcome;
  outcome.id = one.id;
  outcome.attempt = one.attempts;
  outcome.host = rule.url.base().host;
  auto request = status_request(rule, one.request_id, one.reference);
  result<http::outbound_answer> answer = error(permanent::malformed_field);
  const auto began = steady_clock::now();
  judged_attempt judged;
  // Beyond the attempts of the schedule nothing is asked any more where what was asked could not be recorded.
  const bool in_vain = one.reason == not_recorded && one.attempts > rule.retry.attempts;
  const bool lost = in_vain || one.attempts > rule.retry.attempts + lost_most;
  if (lost) {
    judged.what = next_step::give_up;
    judged.reason = in_vain ? not_recorded : lost_attempts;
    judged.theirs = false;
  } else if (request) {
    auto pending = parts_.client.send(std::move(*request), status_rules(rule));
    answer = co_await std::move(pending);
    if (!answer && stopping_) co_return;  // cut off by the drain: it goes back
    judged = judge_attempt(answer, one.reason, recibo::now());
  } else {
    judged.what = next_step::give_up;
    judged.reason = request.error().code == permanent::missing_field ? "no_reference" : "reference_refused";
    judged.theirs = false;
  }
  outcome.duration = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
  outcome.reason = judged.reason;
  if (answer) outcome.answer_status = answer->status;
  parts_.counts.attempt(name_, judged.reason);
  if (request && !lost) co_await heed(judged, probe);

  std::optional<milliseconds> wait;
  if (judged.what == next_step::again) {
    notify::judgement asked;
    if (answer) asked = notify::judge(answer->status, judged.retry_after, recibo::now());
    if (asked.retry_after) co_await leave_alone(rule, *asked.retry_after);
    wait = notify::next_wait(rule.retry, one.attempts, asked, random());
  }
  if (wait) {
    outcome.wait = *wait;
    attempt.end();
    co_await settle(std::move(outcome));
    co_return;
  }
  // Nothing was asked, and who wanted it asked sees why: nothing is in doubt. Nor is it where a retry is all that hangs on it,
  // and the provider does not know the operation.
  const bool told = !request && one.cause != "hint" && one.cause != "state";
  const bool unknown_before_retry = one.cause == record::retry_event && one.times == 1 && judged.reason == "not_found";
  if (told || unknown_before_retry) {
    outcome.what = next::failed;
    attempt.end();
    parts_.counts.settled(name_, "failed");
    co_await settle(std::move(outcome));
    co_return;
  }

  auto c = callback_of(settings, one, outcome);
  if (judged.what == next_step::read) {
    auto whole = as_request(*answer);
    parts_.read(*rule.reads, whole, c);
    make_answer(c, one.id, rule.by_reference ? one.reference : std::string());
    c.body = std::move(whole.body);
  } else {
    c.unprocessable =
        error(permanent::check_failed, request ? detail_of(judged.reason, one.attempts) : "look-up: " + request.error().detail);
    make_trouble(c, one.id, judged.reason, answer ? std::move(answer->body) : std::string());
  }
  auto recorded = co_await record(std::move(c), one);
  if (!recorded && recorded.error().code == transient::shutting_down) co_return;  // it goes back
  attempt.end();
  if (recorded) co_return;
  co_await settle_unrecorded(settings, one, std::move(outcome), recorded.error(), lost);
}

// It is asked again: what it said is not known to be recorded, and what it says then counts. But not for ever: then a person is
// told, and if even that cannot be recorded it is given up.
awaitable<void> check_lane::settle_unrecorded(settings_ptr settings, const storage::claimed_look_up& one,
                                              storage::look_up_outcome outcome, error why, bool lost) {
  const auto& rule = *provider_of(*settings, name_)->status;
  outcome.reason = not_recorded;
  auto wait = notify::next_wait(rule.retry, one.attempts, {}, random());
  if (why.code == permanent::not_found) {
    // There is no operation any more that it could be about.
    wait.reset();
  } else if (!wait && !lost) {
    auto c = callback_of(settings, one, outcome);
    c.unprocessable = error(permanent::check_failed, detail_of(not_recorded, one.attempts));
    make_trouble(c, one.id, not_recorded, {});
    const auto told = co_await record(std::move(c), one);
    if (told) co_return;
    wait = rule.retry.max;
  }
  if (wait) {
    outcome.wait = *wait;
  } else {
    outcome.what = next::failed;
    parts_.counts.settled(name_, "failed");
    log::error(
        "a look-up is given up, and not even that can be recorded",
        {{"provider", name_}, {"look_up_id", to_string(one.id)}, {"request_id", one.request_id}, {"code", code_word(why.code)}});
  }
  co_await settle(std::move(outcome));
}

record::callback check_lane::callback_of(const settings_ptr& settings, const storage::claimed_look_up& one,
                                         const storage::look_up_outcome& outcome) const {
  record::look_up_attempt made;
  made.id = one.id;
  made.holder = by_.bytes;
  made.number = one.attempts;
  made.host = outcome.host;
  made.answer_status = outcome.answer_status;
  made.duration = outcome.duration;
  made.outcome = outcome.reason;
  record::callback c;
  c.settings = settings;
  c.provider = provider_of(*settings, name_)->status->reads.get();
  c.received_at = recibo::now();
  c.id = make_id<delivery_id>(c.received_at);
  c.peer = outcome.host;
  c.request_id = one.request_id;
  c.looked_up = std::make_shared<const record::look_up_attempt>(std::move(made));
  return c;
}

awaitable<result<void>> check_lane::record(record::callback c, const storage::claimed_look_up& one) {
  const bool given_up = c.looked_up->outcome != "answered";
  record::work work(std::move(c));
  auto pending = parts_.record(std::move(work), steady_clock::now() + record_limit);
  const auto recorded = co_await std::move(pending);
  if (!recorded) {
    log::warn("what a look-up brought could not be recorded", {{"provider", name_},
                                                               {"look_up_id", to_string(one.id)},
                                                               {"request_id", one.request_id},
                                                               {"code", code_word(recorded.error().code)}});
    co_return recorded.error();
  }
  const auto word = recorded->replayed ? transition::disposition::duplicate : recorded->disposition;
  parts_.counts.settled(name_, given_up ? "failed" : transition::to_string(word));
  const auto at = word == transition::disposition::review ? log::level::warn : log::level::info;
  log::write(at, given_up ? "a look-up is given up" : "looked up",
             {{"provider", name_},
              {"look_up_id", to_string(one.id)},
              {"request_id", one.request_id},
              {"cause", one.cause},
              {"attempts", one.attempts},
              {"disposition", transition::to_string(word)},
              {"state", recorded->state},
              {"delivery_id", to_string(recorded->delivery)}});
  co_return result<void>();
}

// For all that is asked of this provider, by whatever replica: it asked for time, not for another question.
awaitable<void> check_lane::leave_alone(const config::status_rule& rule, std::chrono::seconds wanted) {
  // In seconds: what a header may say is more than milliseconds can hold.
  const milliseconds wait = std::min(wanted, rule.retry.max);
  if (wait <= milliseconds(0)) co_return;
  co_await storage::hold_look_ups(parts_.pool, name_, wait, steady_clock::now() + database_limit);
}

awaitable<void> check_lane::settle(storage::look_up_outcome what) {
  const auto id = what.id;
  const auto done = co_await storage::settle_look_up(parts_.pool, by_, std::move(what), steady_clock::now() + database_limit);
  if (!done)
    log::warn("the outcome of a look-up is left to its lease",
              {{"provider", name_}, {"look_up_id", to_string(id)}, {"code", code_word(done.error().code)}});
}

awaitable<void> check_lane::heed(const judged_attempt& judged, bool probe) {
  const auto now = steady_clock::now();
  // A refusal of this one says nothing about the provider: it answered.
  const bool passed = judged.what == next_step::read || (!judged.theirs && !judged.unauthorized);
  recent_.add(passed, now);
  if (judged.unauthorized) log::error("a provider refuses the credentials of look-ups: it needs a person", {{"provider", name_}});
  if (probe && passed) {
    const auto settings = parts_.settings.get();
    const auto* const of = provider_of(*settings, name_);
    const storage::missed_by ask{of != nullptr && !(of->list && of->list->instead), of != nullptr && of->list.has_value()};
    const auto closed = co_await storage::close_look_up_breaker(parts_.pool, name_, ask, now + database_limit);
    heeded(closed, log::level::info, "the breaker of look-ups closed");
  } else if (!opening_ && (probe || judged.unauthorized || recent_.out_of_order(now))) {
    opening_ = true;
    const auto wait = notify::breaker_wait(openings_ + 1, random());
    const auto opened =
        co_await storage::open_look_up_breaker(parts_.pool, name_, wait, !judged.unauthorized, now + database_limit);
    opening_ = false;
    heeded(opened, log::level::warn, "the breaker of look-ups opened");
  }
}

// What the database has not taken has not happened: the attempts count on, and of a probe there is another one.
void check_lane::heeded(const result<void>& done, log::level at, std::string_view what) {
  if (!done) {
    log::warn("the breaker of look-ups could not be moved", {{"provider", name_}, {"code", code_word(done.error().code)}});
    return;
  }
  recent_.clear();
  log::write(at, what, {{"provider", name_}});
}

}  // namespace recibo::reconcile
