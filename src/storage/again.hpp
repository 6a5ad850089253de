// A transaction that lost a deadlock, or the order of two of its kind, is tried again: nothing of it is left, and the other one
// has gone on. Private to storage/.
#pragma once

#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <string_view>

namespace recibo::storage {

// Three times in all; then it is the caller's, as transient. `work` outlives the await.
inline boost::asio::awaitable<postgres::outcome> run_again(postgres::pool& pool, const postgres::pipeline& work,
                                                           postgres::deadline until) {
  constexpr int times = 3;
  for (int i = 1;; ++i) {
    auto ran = co_await pool.run(work, until);
    const std::string_view why = ran.refused ? std::string_view(ran.refused->sqlstate) : std::string_view();
    if ((why != "40P01" && why != "40001") || i == times) co_return ran;
  }
}

}  // namespace recibo::storage
