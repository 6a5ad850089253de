// Named SQL of what the replicas agree on about a destination: its breaker, its pause, and how long it has been failing (R21,
// decision 26). Times are judged by the database's clock. Everything that writes is one transaction and may be repeated.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace recibo::storage {

// What all replicas hold of a destination.
struct destination_row {
  std::string name;
  std::optional<sys_micros> paused_at, breaker_since, retry_at;
  std::string paused_by, paused_reason;
  std::string breaker = "closed";
  int openings = 0;
  bool retry_due = false;  // by the database's clock
  // How long nothing was taken; nullopt: the last attempt was.
  std::optional<std::chrono::seconds> failing_for;
};
boost::asio::awaitable<result<destination_row>> read_destination(postgres::pool& pool, std::string name,
                                                                 postgres::deadline until);

// Opens a breaker that is closed or whose probe failed, for `wait`.
boost::asio::awaitable<result<void>> open_breaker(postgres::pool& pool, std::string name, std::chrono::milliseconds wait,
                                                  postgres::deadline until);
// It asked for that: nothing is sent for `wait` from now on, or for as long as was decided already where that is longer. False: a
// probe is out, whose outcome comes first.
boost::asio::awaitable<result<bool>> leave_alone(postgres::pool& pool, std::string name, std::chrono::milliseconds wait,
                                                 postgres::deadline until);
// Nothing was sent with it: whoever has something to send may take it, at once. `taken` as claims::probe_until said.
boost::asio::awaitable<result<void>> give_back_probe(postgres::pool& pool, std::string name, sys_micros taken,
                                                     postgres::deadline until);
// Its probe was taken. Whatever waits, this is one row.
boost::asio::awaitable<result<void>> close_breaker(postgres::pool& pool, std::string name, postgres::deadline until);

// Before that, in steps: what was tried since a minute before the breaker opened, and became due meanwhile, gets a place of its
// own in the time that the breaker was open, a minute at most, and in no more than its interval, so that it does not come in one
// moment (S37). A step is up to `limit` of those that are put off, behind the one that was recorded at `after`; where no more
// than `few` of them would come, they may (0 once a step has spread some). What failed before the trouble stays where it is: it
// is put off by no flapping.
struct spread_rule {
  std::chrono::milliseconds first{}, longest{};  // the interval doubles from the first up to the longest
  int few = 0;
};
struct spread_step {
  std::int64_t spread = 0;
  std::optional<sys_micros> next;  // nullopt: there are no more
};
boost::asio::awaitable<result<spread_step>> spread_retries(postgres::pool& pool, std::string name, spread_rule rule,
                                                           sys_micros after, int limit, postgres::deadline until);

// One that is paused already stays as it is. Returns whether it was paused by this call.
boost::asio::awaitable<result<bool>> pause_destination(postgres::pool& pool, std::string name, std::string by, std::string reason,
                                                       postgres::deadline until);
// The same, as "failing", where it took nothing for `after` up to now.
boost::asio::awaitable<result<bool>> pause_failing(postgres::pool& pool, std::string name, std::chrono::seconds after,
                                                   postgres::deadline until);
// Closes the breaker too: a person says that it works. Returns whether it was paused.
boost::asio::awaitable<result<bool>> resume_destination(postgres::pool& pool, std::string name, postgres::deadline until);

}  // namespace recibo::storage
