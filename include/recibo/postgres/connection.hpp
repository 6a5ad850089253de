// A PGconn on an Asio descriptor: connect, flush, receive, without blocking the thread.
#pragma once

#include "recibo/core/secret.hpp"
#include "recibo/postgres/pipeline.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace recibo::postgres {

using deadline = std::chrono::steady_clock::time_point;

// What differs between sessions.
struct session_options {
  // Below the deadlines of the callers, so that the server gives up first and says so. Zero: none (migrations).
  std::chrono::milliseconds statement_timeout{4'000};
  // Tables are read by their indexes and joined row by row, so that a plan made while they were tiny serves any size. Not for
  // who reads them whole.
  bool by_index = true;
};

// One session. Not thread-safe: belongs to the thread of its executor. One run at a time.
class connection {
 public:
  // Connects (trying every host of a multi-host URL, target_session_attrs as given or read-write) and sets up the session:
  // UTC, search_path recibo, plan_cache_mode=force_generic_plan, jit=off, idle_in_transaction_session_timeout 5 s, TCP
  // keepalives and tcp_user_timeout (decision 12). Name lookup runs off the thread. The caller runs on `executor`.
  // A time-out, keepalive or target_session_attrs that the URL names itself stays as named.
  // permanent::invalid_configuration   the URL cannot be read
  // transient::database_away           no host could be reached before the deadline, or what was reached is a pooler in
  //                                    transaction mode; the detail never holds the URL
  static boost::asio::awaitable<result<std::unique_ptr<connection>>> open(boost::asio::any_io_executor executor, secret url,
                                                                          deadline until);
  static boost::asio::awaitable<result<std::unique_ptr<connection>>> open(boost::asio::any_io_executor executor, secret url,
                                                                          deadline until, session_options how);
  ~connection();
  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;

  // Runs the pipeline and one sync. `what` must live until it is done. After `lost` only destruction is allowed.
  // After `refused` inside a transaction the session is in a failed one: run rollback() before anything else.
  // A deadline that passes, or a cancellation of the coroutine, ends the session: `lost`, and never an exception.
  // `sync_sent` is false only when nothing of the last statement can have left, so that nothing can have been committed.
  boost::asio::awaitable<outcome> run(const pipeline& what, deadline until);
  boost::asio::awaitable<outcome> rollback(deadline until);
  // Runs several statements of one text, without parameters (simple protocol): for migrations. Outside a transaction block
  // they are all or nothing. `answers` stay empty; `refused` is the first failure.
  boost::asio::awaitable<outcome> script(std::string sql, deadline until);

  // Waits for notifications of the channels that this session listens to (LISTEN, by run()). Appends their payloads to `heard`
  // when some have come; `ok` without any at the deadline, which ends nothing here. A cancellation loses the session.
  boost::asio::awaitable<outcome> listen(std::vector<std::string>& heard, deadline until);

  // False once the session is lost, while a run is going on, and after a server said that it does not write any more
  // (25006 after a failover): then close this one and open another.
  bool usable() const noexcept;
  bool in_transaction() const noexcept;
  int backend_pid() const noexcept;

 private:
  struct impl;
  explicit connection(std::unique_ptr<impl> i);
  std::unique_ptr<impl> impl_;
};

}  // namespace recibo::postgres
