// Notifications for destinations that a configuration does not name: nobody sends them (R19). Named SQL.
#pragma once

#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace recibo::storage {

struct stray_destination {
  std::string name;
  std::int64_t waiting = 0;  // pending or held
  std::int64_t dead = 0;
};
// Those beside `configured`, in the order of their names. Reads an entry of the index for each destination there is, and counts
// the others' rows.
boost::asio::awaitable<result<std::vector<stray_destination>>> find_strays(postgres::pool& pool,
                                                                           std::vector<std::string> configured,
                                                                           postgres::deadline until);

// "42 notifications wait for \"old\", which the configuration does not name: nobody sends them".
std::string told(const stray_destination& one);

}  // namespace recibo::storage
