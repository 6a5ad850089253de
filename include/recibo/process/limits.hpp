// What runs out by itself: limits of states, deadlines, the age of reviews (R22, R25), and the sign of life without which nothing
// does (R44). Any number of replicas may do it at once: each timer is decided under the lock of its operation, by one of them.
#pragma once

#include "recibo/process/rematch.hpp"
#include "recibo/transition/timer.hpp"

#include <optional>

namespace recibo::process {

// Says that this replica is ready to take callbacks; call it only while that is so, and more often than
// storage::intake_alive_for. Returns the downtime that it ends, on the one replica that noticed it; in the same
// transaction catch-ups begin for the providers that can be asked (R44). Errors of the pool.
boost::asio::awaitable<result<std::optional<transition::downtime>>> beat(postgres::pool& pool, const config::settings& settings,
                                                                         postgres::deadline until);

struct clock_round {
  int fired = 0, reviewed = 0, put_off = 0, reminded = 0;
  int failed = 0;  // tried again in the next round
};

// One round: at most two hundred timers, the oldest among them in no order, so that replicas meet seldom and
// what an outage has dammed up comes down in pieces; then at most a hundred reviews. All outlive it. Stops quietly when the
// database is away.
boost::asio::awaitable<clock_round> fire_due(postgres::pool& pool, const config::snapshot& settings,
                                             const record_function& record);

}  // namespace recibo::process
