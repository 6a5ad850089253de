// Notifications for destinations that a configuration does not name: nobody sends them (R19). Named SQL.
#pragma once

#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

// No more than so many of each kind are counted, and one.
inline constexpr std::int64_t strays_counted = 10'000;
struct stray_destination {
  std::string name;
  std::int64_t waiting = 0;  // pending or held
  std::int64_t dead = 0;
  std::chrono::seconds held_for{};  // the oldest that is held; 0: none is
};
// Those beside `configured`, in the order of their names. Reads an entry of the index for each destination there is, and of the
// others no more rows than are counted.
boost::asio::awaitable<result<std::vector<stray_destination>>> find_strays(postgres::pool& pool,
                                                                           std::vector<std::string> configured,
                                                                           postgres::deadline until);

inline constexpr std::string_view strays_unknown =
    "it could not be looked whether notifications wait for any that is not configured";
// "42 notifications wait for \"old\", which the configuration does not name: nobody sends them".
std::string told(const stray_destination& one);

}  // namespace recibo::storage
