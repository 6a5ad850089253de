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
  int fired = 0, reviewed = 0, put_off = 0;
  int failed = 0;  // tried again in the next round
};
struct reminder_round {
  int reminded = 0;
  int failed = 0;  // tried again in the next round
};

// One round: at most two hundred timers, the oldest among them in no order, so that replicas meet seldom and
// what an outage has dammed up comes down in pieces. All outlive it. Stops quietly when the database is away.
boost::asio::awaitable<clock_round> fire_due(postgres::pool& pool, const config::snapshot& settings,
                                             const record_function& record);

// One round of reminders of reviews whose age limit has passed (R25): at most a hundred. As fire_due, and apart from it: what
// waits for a review that somebody holds keeps no timer waiting.
boost::asio::awaitable<reminder_round> remind_due(postgres::pool& pool, const config::snapshot& settings,
                                                  const record_function& record);

struct repaired {
  std::int64_t timers = 0;
  bool more = false;  // operations that this pass has not seen
};
// One step of a pass over all operations, a thousand of them; a pass begins an hour after the last. One replica at a time: for
// the others there is nothing to do. Errors of the pool.
boost::asio::awaitable<result<repaired>> repair_timers(postgres::pool& pool, const config::settings& settings,
                                                       postgres::deadline until);

}  // namespace recibo::process
