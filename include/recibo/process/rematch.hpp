// The backstop behind registration and alias learning: applies callbacks that are parked although their operation exists
// (R11, write path rule 3). Registration meets them by itself; what this finds was missed, for example because two replicas
// ran with different policies, and is worth a warning.
#pragma once

#include "recibo/config/snapshot.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/record/work.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <string>

namespace recibo::process {

// As record::recorder::record.
using record_function =
    std::function<boost::asio::awaitable<result<record::outcome>>(record::work, std::chrono::steady_clock::time_point)>;

// How far the names of parked callbacks have been looked through; at the beginning: from the first one.
struct rematch_place {
  std::string provider, kind, identity;
  delivery_id parked{};
};
// One round over at most a hundred operations, and some thousand names behind `at`, which it moves on; `pool`, `settings`,
// `record` and `at` outlive it. Returns how many operations it brought up to date; stops quietly when the database is away.
boost::asio::awaitable<int> rematch_once(postgres::pool& pool, const config::snapshot& settings, const record_function& record,
                                         rematch_place& at);

}  // namespace recibo::process
