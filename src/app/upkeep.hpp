// What a replica does for itself at intervals: looks at the database, keeps partitions ahead, re-matches parked
// callbacks, sweeps what has expired, hands old callbacks to a person, lets run out what is due, refreshes gauges.
#pragma once

#include "readiness.hpp"
#include "recibo/async/worker.hpp"
#include "recibo/config/snapshot.hpp"
#include "recibo/observe/metrics.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/process/rematch.hpp"
#include "recibo/process/silence.hpp"
#include "recibo/record/recorder.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

namespace recibo::app {

// States that may not last for ever, of any workflow: the oldest operation in each is a gauge.
std::set<std::string> limited_states(const config::settings& s);

// Lives on one thread; everything it is given outlives it.
class upkeep {
 public:
  struct parts {
    const config::snapshot& settings;
    postgres::pool& pool;
    record::recorder& recorder;
    readiness& health;
    observe::metrics& metrics;
    process::hearing& ears;
  };
  upkeep(boost::asio::any_io_executor executor, parts p);

  void start();
  // Whether the database has been seen with a schema that this binary serves.
  bool schema_fits() const noexcept { return schema_fits_; }
  boost::asio::awaitable<void> stop(std::chrono::steady_clock::time_point until);

 private:
  boost::asio::awaitable<bool> look();
  boost::asio::awaitable<bool> rematch();
  boost::asio::awaitable<bool> sweep();
  boost::asio::awaitable<bool> review();
  boost::asio::awaitable<bool> clock();
  boost::asio::awaitable<bool> remind();
  boost::asio::awaitable<bool> repair();
  boost::asio::awaitable<bool> measure();
  boost::asio::awaitable<void> measure_timers();
  boost::asio::awaitable<std::optional<postgres::rows>> query_rarely(const postgres::statement& what, postgres::parameters with,
                                                                     std::chrono::steady_clock::time_point& next);
  boost::asio::awaitable<void> look_for_strays(std::shared_ptr<const config::settings> settings);

  parts parts_;
  // Destinations whose oldest notification is a gauge; and those that nobody sends to although something waits.
  std::set<std::string> outboxes_;
  std::map<std::string, std::chrono::seconds> strays_;  // that is not configured -> since when it holds one
  bool schema_fits_ = false;
  process::rematch_place rematched_;
  std::chrono::steady_clock::time_point partitions_checked_{}, states_next_{}, state_ages_next_{};
  async::worker looking_, rematching_, sweeping_, reviewing_, clocking_, reminding_, repairing_, measuring_;
};

}  // namespace recibo::app
