// What expires: idempotency keys that are kept for a time only (R4), and parked callbacks whose operation never came (R43).
// Nothing expires by itself: a key counts until it is swept, under the lock of its operation, and each leaves a trace.
#pragma once

#include "recibo/config/snapshot.hpp"
#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>

namespace recibo::process {

struct swept {
  std::int64_t keys = 0, parked = 0;
};

// One round, of a bounded number of rows; operations that somebody else holds are left for the next one. `pool` and `settings`
// outlive it. Stops quietly when the database is away. Any number of replicas may sweep at once.
boost::asio::awaitable<swept> sweep_once(postgres::pool& pool, const config::snapshot& settings);

}  // namespace recibo::process
