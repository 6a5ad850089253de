// What one listener and its sessions share. Lives until the last session has gone.
#pragma once

#include "per_thread.hpp"

#include "recibo/async/task_group.hpp"
#include "recibo/http/server.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

namespace recibo::http {

class session;

// Looked at by the sessions, changed by the server. One thread.
class listener : public std::enable_shared_from_this<listener> {
 public:
  listener(boost::asio::any_io_executor executor, server_options options, std::shared_ptr<service> behind);

  // A connection that was accepted: served, or over the limit answered 503.
  void take(boost::asio::ip::tcp::socket socket);
  void drain();
  void stop();

  // A coroutine of a session.
  void spawn(boost::asio::awaitable<void> task);
  // Called at a session's beginning and end; session::place is kept up to date.
  void enter(session& one);
  void leave(session& one);
  void answered(int status) noexcept;
  // A connection that ends before its first request; the words of metrics::http_refused.
  void refused(std::string_view reason) noexcept;

  boost::asio::any_io_executor executor;
  // Replaced as a whole by set_options; each session keeps the one it began with.
  std::shared_ptr<const server_options> options;
  std::shared_ptr<service> behind;
  per_thread& shared;
  bool draining = false;
  // Every answer is its connection's last, and new connections are still taken (drain.delay).
  bool leaving = false;
  bool stopped = false;
  std::vector<session*> live;

 private:
  // Deadlines of the connections are looked at all together: one timer instead of ten thousand.
  void tick();
  std::chrono::milliseconds tick_length() const noexcept;

  async::task_group sessions_;
  boost::asio::steady_timer ticker_;
  bool ticking_ = false;
  int refused_live_ = 0;
};

}  // namespace recibo::http
