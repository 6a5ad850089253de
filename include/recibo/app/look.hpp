// One look at the database: what /readyz and `recibo doctor` judge by (contract section 3).
#pragma once

#include "recibo/core/error.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>

namespace recibo::config {
struct settings;
}

namespace recibo::postgres {
class pool;
}

namespace recibo::app {

struct look {
  bool reached = false;
  // Set when it was not reached.
  std::optional<error> why_not;
  bool read_only = false;
  bool schema_fits = false;
  std::string schema_why;
  // Ours minus the database's, and what is borne.
  std::chrono::microseconds clock_skew{};
  std::chrono::microseconds clock_skew_max{};
  // Rows can be written for so long.
  std::chrono::seconds partitions_ahead{};
};

// Less than this ahead, and an insert may fail before anybody has noticed.
inline constexpr std::chrono::hours partitions_ahead_min{24};

// `schema_known`: an earlier look found that the schema fits; it is not asked again. Never throws; both outlive it.
boost::asio::awaitable<look> look_at(postgres::pool& pool, const config::settings& settings, bool schema_known,
                                     std::chrono::steady_clock::time_point until);

}  // namespace recibo::app
