// Waits for libpq's socket, under one deadline. The socket belongs to libpq: it is only lent to the descriptor.
#pragma once

#include "recibo/postgres/connection.hpp"

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include <memory>

namespace recibo::postgres {

enum class wake {
  ready,      // something may have come; ask libpq
  expired,    // the deadline passed
  cancelled,  // the coroutine was told to stop
};

class waiter {
 public:
  explicit waiter(const boost::asio::any_io_executor& executor);
  ~waiter();
  waiter(const waiter&) = delete;
  waiter& operator=(const waiter&) = delete;

  // Lends the socket. To be called again after every PQconnectPoll, even when the number is equal: libpq may have
  // closed and reopened it, and the reactor would wait for the old one (tried: a second host hangs).
  void watch(int fd);
  // Gives the socket back; to be called before PQfinish closes it.
  void unwatch();

  // Until `disarm`, waits end at the deadline.
  void arm(deadline until);
  void disarm();

  boost::asio::awaitable<wake> readable();
  boost::asio::awaitable<wake> writable();
  // libpq's flush needs both: the server may stop reading until we read its answers.
  boost::asio::awaitable<wake> readable_or_writable();

 private:
  // What handlers may still touch after we have gone.
  struct shared;
  boost::asio::awaitable<wake> wait(boost::asio::posix::descriptor_base::wait_type what);
  std::shared_ptr<shared> shared_;
};

}  // namespace recibo::postgres
