// Name lookup off the I/O thread: getaddrinfo blocks, and libpq would call it from PQconnectPoll.
#pragma once

#include "conninfo.hpp"
#include "recibo/postgres/connection.hpp"

namespace recibo::postgres {

// The target with each address of its name as `hostaddr`, or as it is when it needs no lookup. Empty: the name is not
// known, or was not answered before the deadline.
boost::asio::awaitable<std::vector<target>> resolve(boost::asio::any_io_executor executor, target at, deadline until);

}  // namespace recibo::postgres
