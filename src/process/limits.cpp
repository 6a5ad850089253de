#include "recibo/process/limits.hpp"

#include "recibo/async/task_group.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/postgres/sqlstate.hpp"
#include "recibo/storage/look_ups.hpp"
#include "recibo/storage/timers.hpp"

#include <boost/asio/this_coro.hpp>

#include <algorithm>
#include <memory>
#include <random>

namespace recibo::process {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds clock_limit{5};
// Looked at, taken in a round, and under way at once: a share of the recorder's queue that callbacks do not miss.
constexpr std::int64_t timers_seen = 1'000, late_reviews_seen = 500;
constexpr std::size_t timers_max = 200, timers_at_once = 50, reviews_max = 100, reviews_at_once = 20;
// Of a pass that looks for timers which are missing: operations in a step, and from the end of one to the next.
constexpr std::int64_t repair_step = 1'000, repair_every_s = 3'600;

struct due_timer {
  std::string request_id;
  transition::timer_kind kind = transition::timer_kind::limit;
};

void tell(const due_timer& what, const record::outcome& done, clock_round& counts) {
  if (done.detail == record::timer_fired) {
    ++counts.fired;
    log::info("a timer ran out", {{"request_id", what.request_id}, {"timer", to_string(what.kind)}, {"state", done.state}});
  } else if (done.detail == record::timer_reviewed) {
    ++counts.reviewed;
    log::warn("a timer ran out, and a person has to look",
              {{"request_id", what.request_id}, {"timer", to_string(what.kind)}, {"state", done.state}});
  } else if (done.detail == record::timer_put_off) {
    ++counts.put_off;
  }
}

// Parameters by value: it may outlive the round.
awaitable<void> fire(record_function record, std::shared_ptr<const config::settings> settings, due_timer what,
                     std::shared_ptr<clock_round> counts) {
  record::timer_due due;
  due.settings = std::move(settings);
  due.request_id = what.request_id;
  due.kind = what.kind;
  record::work work(std::move(due));
  const auto done = co_await record(std::move(work), steady_clock::now() + clock_limit);
  if (done) {
    tell(what, *done, *counts);
  } else {
    ++counts->failed;
  }
}

struct late_review {
  review_id id;
  std::string request_id, kind, owner;
};

// Parameters by value: it may outlive the round.
awaitable<void> remind(record_function record, std::shared_ptr<const config::settings> settings, late_review what,
                       std::shared_ptr<reminder_round> counts) {
  record::review_due due;
  due.settings = std::move(settings);
  due.review = what.id;
  due.request_id = what.request_id;
  record::work work(std::move(due));
  const auto done = co_await record(std::move(work), steady_clock::now() + clock_limit);
  if (!done) {
    ++counts->failed;
  } else if (done->detail == record::review_reminded) {
    ++counts->reminded;
    log::warn("the age limit of a review has passed",
              {{"review_id", to_string(what.id)}, {"kind", what.kind}, {"owner", what.owner}});
  }
}

// Some of the oldest in no order, so that replicas meet seldom and none stands in the way of the others.
template <class T>
void choose(std::vector<T>& from, std::size_t most) {
  if (from.size() <= most) return;
  std::shuffle(from.begin(), from.end(), std::minstd_rand(std::random_device{}()));
  from.resize(most);
}

}  // namespace

awaitable<result<std::optional<transition::downtime>>> beat(postgres::pool& pool, const config::settings& settings,
                                                            postgres::deadline until) {
  postgres::binary_array askable(postgres::oid::text), ids(postgres::oid::uuid), listing(postgres::oid::text),
      list_ids(postgres::oid::uuid);
  for (const auto& [name, of] : settings.providers) {
    if (of.list) {
      listing.add(name);
      list_ids.add(make_id<look_up_id>(now()).binary());
    }
    if (!of.status || (of.list && of.list->instead)) continue;
    askable.add(name);
    ids.add(make_id<storage::catch_up_id>(now()).binary());
  }
  postgres::parameters with;
  with.int8(storage::intake_alive_for.count()).array(std::move(askable)).array(std::move(ids));
  with.array(std::move(listing)).array(std::move(list_ids));
  postgres::pipeline work;
  work.add(storage::beat_intake, std::move(with));
  const auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  const auto& noted = done.answers.front();
  if (noted.empty() || noted.is_null(0, 0)) co_return std::optional<transition::downtime>();
  const transition::downtime ended{noted.time(0, 0), noted.time(0, 1)};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(ended.ended - ended.began).count();
  log::warn("no replica was ready to take callbacks; limits stood still",
            {{"from", to_rfc3339(ended.began)}, {"until", to_rfc3339(ended.ended)}, {"seconds", seconds}});
  co_return std::optional(ended);
}

awaitable<clock_round> fire_due(postgres::pool& pool, const config::snapshot& settings, const record_function& record) {
  auto counts = std::make_shared<clock_round>();
  postgres::parameters with;
  with.int8(timers_seen);
  const auto found = co_await pool.query(storage::select_due_timers, std::move(with), steady_clock::now() + clock_limit);
  if (!found) co_return *counts;
  std::vector<due_timer> due;
  for (int i = 0; i < found->size(); ++i) {
    if (const auto kind = transition::parse_timer_kind(found->text(i, 1))) due.push_back({found->string(i, 0), *kind});
  }
  choose(due, timers_max);
  const auto executor = co_await boost::asio::this_coro::executor;
  for (std::size_t at = 0; at < due.size(); at += timers_at_once) {
    const auto end = std::min(at + timers_at_once, due.size());
    const int failed_before = counts->failed;
    async::task_group under_way(executor);
    for (std::size_t i = at; i < end; ++i) under_way.spawn("clock", fire(record, settings.get(), due[i], counts));
    co_await under_way.wait_empty(steady_clock::now() + 2 * clock_limit);
    // One that is held by somebody waits for the next round; when most fail, the database has trouble.
    if (counts->failed - failed_before > static_cast<int>(end - at) / 2) break;
  }
  if (counts->failed > 0) log::warn("timers that ran out wait for the next round", {{"count", counts->failed}});
  co_return *counts;
}

awaitable<reminder_round> remind_due(postgres::pool& pool, const config::snapshot& settings, const record_function& record) {
  auto counts = std::make_shared<reminder_round>();
  postgres::parameters with;
  with.int8(late_reviews_seen);
  const auto found = co_await pool.query(storage::select_due_reviews, std::move(with), steady_clock::now() + clock_limit);
  if (!found) co_return *counts;
  std::vector<late_review> late;
  for (int i = 0; i < found->size(); ++i) {
    auto& one = late.emplace_back();
    one.id = found->id<review_id>(i, 0);
    one.request_id = found->text_or_null(i, 1).value_or("");
    one.kind = found->string(i, 2);
    one.owner = found->string(i, 3);
  }
  choose(late, reviews_max);
  const auto executor = co_await boost::asio::this_coro::executor;
  for (std::size_t at = 0; at < late.size(); at += reviews_at_once) {
    const auto end = std::min(at + reviews_at_once, late.size());
    const int failed_before = counts->failed;
    async::task_group under_way(executor);
    for (std::size_t i = at; i < end; ++i) under_way.spawn("reminder", remind(record, settings.get(), late[i], counts));
    co_await under_way.wait_empty(steady_clock::now() + 2 * clock_limit);
    if (counts->failed - failed_before > static_cast<int>(end - at) / 2) break;
  }
  if (counts->failed > 0) log::warn("reminders of reviews wait for the next round", {{"count", counts->failed}});
  co_return *counts;
}

awaitable<result<repaired>> repair_timers(postgres::pool& pool, const config::settings& settings, postgres::deadline until) {
  postgres::binary_array providers(postgres::oid::text), states(postgres::oid::text), limits(postgres::oid::int8);
  for (const auto& [name, of] : settings.providers) {
    for (const auto& [state, limit] : of.limits) {
      providers.add(name);
      states.add(state);
      limits.add_int8(limit ? std::optional<std::int64_t>(limit->after.count()) : std::nullopt);
    }
  }
  postgres::parameters with;
  with.int8(repair_step).int8(repair_every_s).array(std::move(providers)).array(std::move(states)).array(std::move(limits));
  postgres::pipeline work;
  work.add(storage::repair_timers, std::move(with));
  const auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  repaired out;
  out.timers = done.answers.front().int8(0, 0);
  out.more = done.answers.front().boolean(0, 1);
  if (out.timers > 0) log::info("operations without their timers got them", {{"count", out.timers}});
  co_return out;
}

}  // namespace recibo::process
