// A PGconn on an Asio descriptor: connect, flush, receive, without blocking the thread.
#pragma once

#include "recibo/core/secret.hpp"
#include "recibo/postgres/pipeline.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>

namespace recibo::postgres {

using deadline = std::chrono::steady_clock::time_point;

// One session. Not thread-safe: belongs to the thread of its executor. One run at a time.
class connection {
 public:
  // Connects (trying every host of a multi-host URL, target_session_attrs as given or read-write) and sets up the session:
  // UTC, search_path recibo, plan_cache_mode=force_generic_plan, jit=off, idle_in_transaction_session_timeout 5 s, TCP
  // keepalives and tcp_user_timeout (decision 12). Name lookup runs off the thread.
  // transient::database_away   no host could be reached before the deadline; the detail never holds the URL
  static boost::asio::awaitable<result<std::unique_ptr<connection>>> open(boost::asio::any_io_executor executor, secret url, deadline until);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  // Runs the pipeline and one sync. `what` must live until it is done. After `lost` only destruction is allowed.
  // After `refused` inside a transaction the session is in a failed one: run rollback() before anything else.
  boost::asio::awaitable<outcome> run(const pipeline& what, deadline until);
  boost::asio::awaitable<outcome> rollback(deadline until);

  bool usable() const noexcept;
  bool in_transaction() const noexcept;
  int backend_pid() const noexcept;

 private:
  struct impl;
  explicit connection(std::unique_ptr<impl> i);
  std::unique_ptr<impl> impl_;
};

}  // namespace recibo::postgres
