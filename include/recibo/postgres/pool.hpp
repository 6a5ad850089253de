// Connections for reads and for everything that is not the write path: checkout, health, reconnect.
#pragma once

#include "recibo/postgres/connection.hpp"

namespace recibo::postgres {

// Lives on one thread. Connects when it is first needed, reconnects by itself with backoff (50 ms to 1 s). While nothing can
// be reached, query() and run() fail at once; before that is known they wait for a connection to come about, 1 s at most.
class pool {
 public:
  pool(boost::asio::any_io_executor executor, secret url, int size);
  ~pool();
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  // One statement in its own implicit transaction. A connection found dead before anything was sent is replaced and the
  // statement tried once more; a read that was cut off is also tried once more, so use `query` for reads only.
  // transient::database_away, transient::database_busy (no free connection before `until`, or a time-out),
  // transient::our_fault, transient::shutting_down (after close)
  boost::asio::awaitable<result<rows>> query(const statement& what, parameters with, deadline until);
  // Several statements in one transaction, in one round trip. Tried once more only when nothing had been sent. Without a
  // connection: `lost` and not `sync_sent`, and `timed_out` when all were in use until then. Both pipelines and statements
  // must live until it is done.
  boost::asio::awaitable<outcome> run(const pipeline& what, deadline until);

  // For recibo_db_connections{state} and readiness.
  struct counts {
    int idle = 0, busy = 0, connecting = 0, waiting = 0;
  };
  counts state() const noexcept;
  // Closes idle connections; those in use close when they come back.
  void close();

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace recibo::postgres
