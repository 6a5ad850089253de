#include "recibo/app/look.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/migrator.hpp"
#include "recibo/verify/verifier.hpp"

#include <algorithm>

namespace recibo::app {
namespace {

const postgres::statement look_at_database{"look_at_database",
                                           "SELECT clock_timestamp(), pg_is_in_recovery() OR "
                                           "current_setting('transaction_read_only')::boolean, recibo.partition_horizon()",
                                           {}};

// A quarter of the smallest tolerance that a provider asks for (decision 11).
std::chrono::microseconds skew_max(const config::settings& s) {
  std::chrono::microseconds smallest = verify::tolerance_default;
  for (const auto& [name, p] : s.providers)
    if (p.verify.timestamp && p.verify.timestamp->tolerance)
      smallest = std::min<std::chrono::microseconds>(smallest, *p.verify.timestamp->tolerance);
  return smallest / 4;
}

}  // namespace

boost::asio::awaitable<look> look_at(postgres::pool& pool, const config::settings& settings, bool schema_known,
                                     std::chrono::steady_clock::time_point until) {
  look seen;
  seen.clock_skew_max = skew_max(settings);
  seen.schema_fits = schema_known;
  if (!schema_known) {
    const auto state = co_await storage::schema_state(pool, until);
    if (!state) {
      seen.why_not = state.error();
      co_return seen;
    }
    seen.reached = true;
    seen.schema_fits = state->fits;
    seen.schema_why = state->why;
    if (!state->fits) co_return seen;
  }
  const auto before = now();
  auto asking = pool.query(look_at_database, {}, until);
  const auto found = co_await std::move(asking);
  const auto after = now();
  seen.reached = found.has_value();
  if (!found) {
    seen.why_not = found.error();
    co_return seen;
  }
  // Half the round trip is the best guess of when the server looked at its clock.
  seen.clock_skew = before + (after - before) / 2 - found->time(0, 0);
  seen.read_only = found->boolean(0, 1);
  if (const auto horizon = found->time_or_null(0, 2))
    seen.partitions_ahead = std::chrono::duration_cast<std::chrono::seconds>(*horizon - found->time(0, 0));
  co_return seen;
}

}  // namespace recibo::app
