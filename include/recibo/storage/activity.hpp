// Named SQL and row mapping of what is known of each provider's activity (R30): when it was last heard, and whether it is silent.
// One row each, which all replicas keep; what is told is told by the one whose statement made it so.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace recibo::storage {

// Not looked at for so long, it was not in the configuration, or nobody was ready: what was missed then is waited for first.
// Where intake says that nobody was ready, less will do (intake_alive_for).
inline constexpr std::chrono::seconds watch_gap{30};

// What a replica knows of a provider in its configuration.
struct provider_watch {
  std::string provider;
  std::optional<std::chrono::seconds> alert;             // silence_alert
  std::chrono::seconds resend_gap{};                     // until what was missed has come again
  std::optional<std::chrono::milliseconds> heard_since;  // heard so long ago, since it was last told; nullopt: not
  std::int64_t callbacks = 0;                            // how many, since then
  // expected_rate: so many, within so long.
  std::optional<std::int64_t> at_least;
  std::chrono::seconds within{};
  // What it may have missed is asked about when it speaks again: of all open operations, and in its list of events.
  bool look_ups = false, event_list = false;
};
// A destination that wants to hear of a change of this type: "provider.silent" or "provider.resumed".
struct silence_listener {
  std::string destination, type;
};
// What that changed, in the eyes of all replicas.
struct provider_change {
  std::string provider;
  bool silent = false;  // else it speaks again
  std::chrono::seconds quiet_for{};
  std::string reason;  // why it is, or was, silent: "quiet" or "below_rate"
};
// What is heard, what that changes, and the outbox rows that tell of it: one transaction, so that each change is told once, by
// whoever makes it. `all` sorted by provider, so that replicas wait for one another in one order. Errors of the pool; where the
// outcome is not known, callbacks may be counted twice when they are told again.
boost::asio::awaitable<result<std::vector<provider_change>>> watch_providers(postgres::pool& pool,
                                                                             std::vector<provider_watch> all,
                                                                             std::vector<silence_listener> listeners,
                                                                             postgres::deadline until);

struct provider_activity {
  std::string provider;
  std::optional<sys_micros> heard_at;   // nullopt: never
  std::optional<sys_micros> silent_at;  // nullopt: it is not silent
  std::optional<sys_micros> spoke_at;   // nullopt: it was never silent
  double quiet_s = 0;                   // since it was heard, or first configured
  std::optional<std::string> silent_reason;
};
boost::asio::awaitable<result<std::vector<provider_activity>>> read_provider_activity(postgres::pool& pool,
                                                                                      postgres::deadline until);

}  // namespace recibo::storage
