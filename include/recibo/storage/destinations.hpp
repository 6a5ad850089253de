// Named SQL of what the replicas agree on about a destination: its breaker, its pause, and how long it has been failing (R21,
// decision 26). Times are judged by the database's clock. Everything that writes is one transaction and may be repeated.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
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
// What was tried before, and became due while the breaker was not closed, is put off anew by a part of its next interval, which
// doubles from `first` up to `longest`, so that it does not come in one moment (S37).
boost::asio::awaitable<result<void>> close_breaker(postgres::pool& pool, std::string name, std::chrono::milliseconds first,
                                                   std::chrono::milliseconds longest, postgres::deadline until);
// One that is paused already stays as it is. Returns whether it was paused by this call.
boost::asio::awaitable<result<bool>> pause_destination(postgres::pool& pool, std::string name, std::string by, std::string reason,
                                                       postgres::deadline until);
// The same, as "failing", where it took nothing for `after` up to now.
boost::asio::awaitable<result<bool>> pause_failing(postgres::pool& pool, std::string name, std::chrono::seconds after,
                                                   postgres::deadline until);
// Closes the breaker too: a person says that it works. Returns whether it was paused.
boost::asio::awaitable<result<bool>> resume_destination(postgres::pool& pool, std::string name, postgres::deadline until);

}  // namespace recibo::storage
