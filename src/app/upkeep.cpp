#include "upkeep.hpp"

#include "recibo/app/look.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/process/limits.hpp"
#include "recibo/process/parked_age.hpp"
#include "recibo/process/rematch.hpp"
#include "recibo/process/silence.hpp"
#include "recibo/process/sweep.hpp"
#include "recibo/storage/activity.hpp"
#include "recibo/storage/look_ups.hpp"
#include "recibo/storage/strays.hpp"

#include <algorithm>

namespace recibo::app {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
namespace oid = postgres::oid;

constexpr auto look_every = 1s, look_limit = 2s, rematch_every = 10s, sweep_every = 5s, review_every = 15s, clock_every = 1s,
               remind_every = 1s, repair_every = 1s, repair_limit = 5s, measure_every = 15s, measure_limit = 5s;
// How often partitions are made ahead; the function makes what is missing, and asks nothing more when nothing is.
constexpr auto partitions_every = 1h;
// Above so many operations their states are not counted: it would read the whole table.
constexpr std::int64_t countable_operations_max = 1'000'000;
// The same for timers and the ages by state that hang on them.
constexpr std::int64_t countable_timers_max = 200'000;

const postgres::statement ensure_partitions{"ensure_partitions", "SELECT recibo.ensure_partitions()", {}};
// By the first of each index, however much waits: IDs are made when a callback fails.
const postgres::statement ages{
    "ages",
    "WITH RECURSIVE first AS ((SELECT p.provider, p.parked_at FROM recibo.parked p ORDER BY p.provider, p.parked_at LIMIT 1) "
    "UNION ALL SELECT n.provider, n.parked_at FROM first f CROSS JOIN LATERAL (SELECT p.provider, p.parked_at FROM recibo.parked "
    "p "
    "WHERE p.provider > f.provider ORDER BY p.provider, p.parked_at LIMIT 1) n) "
    "SELECT 'parked', extract(epoch FROM now() - (SELECT min(parked_at) FROM first))::text UNION ALL "
    "SELECT 'review', extract(epoch FROM now() - (SELECT v.opened_at FROM recibo.reviews v WHERE v.status = 'open' ORDER BY "
    "v.opened_at "
    "LIMIT 1))::text UNION ALL "
    "SELECT 'failed', extract(epoch FROM now() - (SELECT f.first_seen_at FROM recibo.failed_callbacks f ORDER BY f.id LIMIT "
    "1))::text",
    {}};
// timers: of those that have run out and wait for the clock; overdue: of those that have run out at all.
const postgres::statement timer_ages{
    "timer_ages",
    "SELECT 'timers', extract(epoch FROM now() - min(due_at))::text FROM recibo.timers WHERE fired_at IS NULL AND due_at <= "
    "now() "
    "UNION ALL SELECT 'overdue', extract(epoch FROM now() - least((SELECT min(due_at) FROM recibo.timers WHERE fired_at IS NULL "
    "AND due_at <= now()), (SELECT min(due_at) FROM recibo.timers WHERE fired_at IS NOT NULL)))::text",
    {}};
// All timers once, whatever the number of states.
const postgres::statement state_ages{
    "state_ages",
    "WITH oldest AS MATERIALIZED (SELECT o.state, min(o.state_at) AS at FROM recibo.timers t JOIN recibo.operations o "
    "ON o.id = t.operation WHERE t.kind = 'limit' AND (SELECT reltuples FROM pg_class WHERE oid = 'recibo.timers'::regclass) <= "
    "$2 GROUP BY o.state) SELECT 'operations:' || s.state, extract(epoch FROM now() - (SELECT x.at FROM oldest x WHERE x.state = "
    "s.state))::text FROM unnest($1) AS s(state) WHERE (SELECT reltuples FROM pg_class WHERE oid = 'recibo.timers'::regclass) <= "
    "$2",
    {oid::text_array, oid::int8}};
// Made by the services' clocks, which may be a little ahead. The oldest is the one that is due first, unless it was put off.
const postgres::statement outbox_ages{
    "outbox_ages",
    "SELECT d.name, extract(epoch FROM now() - least((SELECT coalesce(n.next_attempt_at, n.created_at) FROM recibo.notifications "
    "n "
    "WHERE n.destination = d.name AND n.status = 'pending' ORDER BY coalesce(n.next_attempt_at, n.created_at) LIMIT 1), "
    "(SELECT n.created_at FROM recibo.notifications n WHERE n.destination = d.name AND n.status = 'pending' "
    "AND n.next_attempt_at IS NOT NULL ORDER BY n.created_at LIMIT 1)))::text FROM unnest($1) AS d(name)",
    {oid::text_array}};
const postgres::statement states{"states",
                                 "SELECT provider, state, count(*) FROM recibo.operations WHERE "
                                 "(SELECT reltuples FROM pg_class WHERE oid = 'recibo.operations'::regclass) <= $1 GROUP BY 1, 2",
                                 {oid::int8}};

}  // namespace

std::set<std::string> limited_states(const config::settings& s) {
  std::set<std::string> out;
  for (const auto& [name, table] : s.workflows)
    for (const auto& state : table->states())
      if (state.limit) out.insert(state.name);
  return out;
}

upkeep::upkeep(boost::asio::any_io_executor executor, parts p)
    : parts_(p),
      looking_(executor, "look at the database", look_every, [this] { return look(); }),
      rematching_(executor, "re-match", rematch_every, [this] { return rematch(); }),
      sweeping_(executor, "sweep", sweep_every, [this] { return sweep(); }),
      reviewing_(executor, "age of parked callbacks", review_every, [this] { return review(); }),
      clocking_(executor, "clock", clock_every, [this] { return clock(); }),
      reminding_(executor, "reminders", remind_every, [this] { return remind(); }),
      repairing_(executor, "missing timers", repair_every, [this] { return repair(); }),
      measuring_(executor, "gauges", measure_every, [this] { return measure(); }) {}

void upkeep::start() {
  looking_.start();
  rematching_.start();
  sweeping_.start();
  reviewing_.start();
  clocking_.start();
  reminding_.start();
  repairing_.start();
  measuring_.start();
}

boost::asio::awaitable<void> upkeep::stop(steady_clock::time_point until) {
  co_await looking_.stop(until);
  co_await rematching_.stop(until);
  co_await sweeping_.stop(until);
  co_await reviewing_.stop(until);
  co_await clocking_.stop(until);
  co_await reminding_.stop(until);
  co_await repairing_.stop(until);
  co_await measuring_.stop(until);
}

boost::asio::awaitable<bool> upkeep::look() {
  const auto settings = parts_.settings.get();
  auto seen = co_await look_at(parts_.pool, *settings, schema_fits_, steady_clock::now() + look_limit);
  schema_fits_ = schema_fits_ || (seen.reached && seen.schema_fits);
  if (seen.reached && schema_fits_ && !seen.read_only && steady_clock::now() - partitions_checked_ > partitions_every) {
    auto making = parts_.pool.query(ensure_partitions, {}, steady_clock::now() + measure_limit);
    const auto made = co_await std::move(making);
    if (made) {
      partitions_checked_ = steady_clock::now();
      if (made->int4(0, 0) > 0) log::info("partitions made ahead", {{"count", made->int4(0, 0)}});
    } else {
      log::warn("partitions could not be made ahead", {{"code", code_word(made.error().code)}});
    }
  }
  parts_.health.saw(std::move(seen));
  // Nothing runs out while no callback could be taken (R44): only a replica that is ready gives a sign of life. Here, where
  // nothing else is waited for that may take longer than it lasts.
  if (schema_fits_ && parts_.health.reasons().empty())
    co_await process::beat(parts_.pool, *settings, steady_clock::now() + look_limit);
  const auto pool = parts_.pool.state();
  parts_.metrics.db_connections("idle", pool.idle);
  parts_.metrics.db_connections("busy", pool.busy);
  parts_.metrics.db_connections("connecting", pool.connecting);
  parts_.metrics.db_connections("waiting", pool.waiting);
  parts_.metrics.db_connections("writer", parts_.recorder.state().writers_connected);
  co_return false;
}

boost::asio::awaitable<bool> upkeep::rematch() {
  if (!schema_fits_) co_return false;
  const process::record_function record = [this](record::work what, steady_clock::time_point until) {
    return parts_.recorder.record(std::move(what), until);
  };
  const int done = co_await process::rematch_once(parts_.pool, parts_.settings, record, rematched_);
  co_return done > 0;  // a long row of parked callbacks comes in pieces
}

boost::asio::awaitable<bool> upkeep::sweep() {
  if (!schema_fits_) co_return false;
  const auto done = co_await process::sweep_once(parts_.pool, parts_.settings);
  co_return done.keys > 0 || done.parked > 0;  // what is much comes in pieces
}

boost::asio::awaitable<bool> upkeep::review() {
  if (!schema_fits_) co_return false;
  const process::record_function record = [this](record::work what, steady_clock::time_point until) {
    return parts_.recorder.record(std::move(what), until);
  };
  const int done = co_await process::review_old_parked(parts_.pool, parts_.settings, record);
  co_return done > 0;
}

boost::asio::awaitable<bool> upkeep::clock() {
  if (!schema_fits_ || !parts_.health.reasons().empty()) co_return false;
  co_await process::listen_once(parts_.pool, parts_.settings, parts_.ears);
  const process::record_function record = [this](record::work what, steady_clock::time_point until) {
    return parts_.recorder.record(std::move(what), until);
  };
  co_await process::fire_due(parts_.pool, parts_.settings, record);
  co_return false;  // what an outage has dammed up comes down a piece each second
}

boost::asio::awaitable<bool> upkeep::remind() {
  if (!schema_fits_ || !parts_.health.reasons().empty()) co_return false;
  const process::record_function record = [this](record::work what, steady_clock::time_point until) {
    return parts_.recorder.record(std::move(what), until);
  };
  co_await process::remind_due(parts_.pool, parts_.settings, record);
  co_return false;
}

// However many operations there are, the database has a step of it each second.
boost::asio::awaitable<bool> upkeep::repair() {
  if (!schema_fits_ || !parts_.health.reasons().empty()) co_return false;
  const auto settings = parts_.settings.get();
  const auto done = co_await process::repair_timers(parts_.pool, *settings, steady_clock::now() + repair_limit);
  if (!done) log::warn("timers that are missing could not be looked for", {{"code", code_word(done.error().code)}});
  co_return false;
}

constexpr steady_clock::duration failed_pause = 2min;
// What reads all timers, or all operations, has a hundredth of the time at most: meanwhile the figures stay. What failed says
// nothing of how long it takes, and is not tried at each pass.
boost::asio::awaitable<std::optional<postgres::rows>> upkeep::query_rarely(const postgres::statement& what,
                                                                           postgres::parameters with,
                                                                           steady_clock::time_point& next) {
  const auto began = steady_clock::now();
  if (began < next) co_return std::nullopt;
  auto found = co_await parts_.pool.query(what, std::move(with), began + measure_limit);
  next = steady_clock::now() + (found ? (steady_clock::now() - began) * 100 : failed_pause);
  if (!found) co_return std::nullopt;
  co_return std::move(*found);
}

// Limits that are set tell since when the oldest operation is in each state.
boost::asio::awaitable<void> upkeep::measure_timers() {
  const auto settings = parts_.settings.get();
  const auto tell = [&](const postgres::rows& found) {
    for (int i = 0; i < found.size(); ++i)
      parts_.metrics.oldest_age(found.text(i, 0), found.is_null(i, 1) ? 0.0 : std::max(0.0, std::stod(found.string(i, 1))));
  };
  auto asking = parts_.pool.query(timer_ages, {}, steady_clock::now() + measure_limit);
  const auto timers = co_await std::move(asking);
  if (timers) tell(*timers);
  postgres::binary_array states(oid::text);
  for (const auto& state : limited_states(*settings)) states.add(state);
  postgres::parameters with;
  with.array(std::move(states)).int8(countable_timers_max);
  const auto ages_of_states = co_await query_rarely(state_ages, std::move(with), state_ages_next_);
  if (ages_of_states) tell(*ages_of_states);
  const auto heard = co_await storage::read_provider_activity(parts_.pool, steady_clock::now() + measure_limit);
  if (heard)
    for (const auto& one : *heard) {
      const auto known = settings->providers.find(one.provider);
      const bool listens = known != settings->providers.end() && (known->second.silence_alert || known->second.expected_rate);
      parts_.metrics.provider_silence(one.provider, one.quiet_s, listens && one.silent_at);
    }
}

// Told once, by whoever starts or loads a configuration without it.
boost::asio::awaitable<void> upkeep::look_for_strays(std::shared_ptr<const config::settings> settings) {
  std::vector<std::string> configured;
  for (const auto& [name, to] : settings->destinations) configured.push_back(name);
  const auto found = co_await storage::find_strays(parts_.pool, std::move(configured), steady_clock::now() + measure_limit);
  if (!found) co_return;
  std::map<std::string, std::chrono::seconds> strays;
  for (const auto& one : *found) {
    if (one.waiting == 0) continue;
    strays.emplace(one.name, one.held_for);
    if (!strays_.contains(one.name)) log::warn(storage::told(one), {{"destination", one.name}, {"count", one.waiting}});
  }
  strays_ = std::move(strays);
}

boost::asio::awaitable<bool> upkeep::measure() {
  if (!schema_fits_) co_return false;
  auto asking = parts_.pool.query(ages, {}, steady_clock::now() + measure_limit);
  const auto found = co_await std::move(asking);
  if (found)
    for (int i = 0; i < found->size(); ++i)
      parts_.metrics.oldest_age(found->text(i, 0), found->is_null(i, 1) ? 0.0 : std::stod(found->string(i, 1)));
  co_await measure_timers();
  const auto settings = parts_.settings.get();
  const auto asked = co_await storage::oldest_look_ups(parts_.pool, steady_clock::now() + measure_limit);
  if (asked)
    for (const auto& of : settings->providers) {
      const auto waits = std::find_if(asked->begin(), asked->end(), [&](const auto& one) { return one.first == of.first; });
      if (of.second.status) parts_.metrics.oldest_age("look_ups:" + of.first, waits == asked->end() ? 0.0 : waits->second);
    }
  const auto unread = co_await storage::unread_event_lists(parts_.pool, steady_clock::now() + measure_limit);
  if (unread)
    for (const auto& of : settings->providers) {
      const auto waits = std::find_if(unread->begin(), unread->end(), [&](const auto& one) { return one.first == of.first; });
      if (of.second.list) parts_.metrics.oldest_age("event_list:" + of.first, waits == unread->end() ? 0.0 : waits->second);
    }
  co_await look_for_strays(settings);
  // Those that were configured are measured on; what this process has never known has no gauge of its own.
  for (const auto& [name, to] : settings->destinations) outboxes_.insert(name);
  for (const auto& [name, held_for] : strays_) outboxes_.insert(name);
  postgres::binary_array destinations(oid::text);
  for (const auto& name : outboxes_) destinations.add(name);
  postgres::parameters to_each;
  to_each.array(std::move(destinations));
  const auto waiting = co_await parts_.pool.query(outbox_ages, std::move(to_each), steady_clock::now() + measure_limit);
  double stranded = 0;
  if (waiting)
    for (int i = 0; i < waiting->size(); ++i) {
      const auto name = waiting->string(i, 0);
      const double age = waiting->is_null(i, 1) ? 0.0 : std::max(0.0, std::stod(waiting->string(i, 1)));
      parts_.metrics.oldest_age("outbox:" + name, age);
      if (const auto stray = strays_.find(name); stray != strays_.end())
        stranded = std::max({stranded, age, static_cast<double>(stray->second.count())});
    }
  if (waiting) parts_.metrics.oldest_age("stranded", stranded);
  postgres::parameters with;
  with.int8(countable_operations_max);
  const auto counted = co_await query_rarely(states, std::move(with), states_next_);
  if (counted)
    for (int i = 0; i < counted->size(); ++i)
      parts_.metrics.operations(counted->text(i, 0), counted->text(i, 1), static_cast<double>(counted->int8(i, 2)));
  co_return false;
}

}  // namespace recibo::app
