// What a connection is made of: libpq's handle, the waits on its socket, and what has been prepared on it.
// Private to postgres/.
#pragma once

#include "conninfo.hpp"
#include "prepared.hpp"
#include "recibo/postgres/connection.hpp"
#include "waiter.hpp"

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

namespace recibo::postgres {

class session {
 public:
  explicit session(const boost::asio::any_io_executor& executor) : io(executor) {}
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  // Runs the pipeline and one sync; see connection::run.
  boost::asio::awaitable<outcome> run(const pipeline& what, deadline until);
  // See connection::script.
  boost::asio::awaitable<outcome> script(std::string sql, deadline until);
  // See connection::listen.
  boost::asio::awaitable<outcome> listen(std::vector<std::string>& heard, deadline until);

  PGconn* pg = nullptr;
  waiter io;
  unsigned notices = 0;
  // What the server said when it ended the session while nothing was asked; empty: it has not.
  std::string farewell;
  // One run at a time; after `lost` only destruction; `read_only`: the server does not take writes any more.
  bool running = false, lost = false, read_only = false;

 private:
  void begin_run();
  bool in_time(outcome& out, deadline until);
  // Finds a session that died while it was idle, before anything is sent: then nothing is uncertain.
  bool alive(outcome& out);
  // Sends everything into libpq's buffer. False: libpq cannot send.
  bool send(const pipeline& what, outcome& out);
  bool send_step(const pipeline::step& step);
  // Flushes and receives until `take` says that all is there, or the session is lost.
  template <class Take>
  boost::asio::awaitable<void> exchange(outcome& out, Take take);
  // Takes the results that are there. True: the sync has come, or the session is lost.
  bool take(const pipeline& what, outcome& out);
  bool take_script(outcome& out);
  // Reads what has come; true: there is something to tell, or the session is lost.
  bool take_notifications(std::vector<std::string>& heard, outcome& out);
  void take_one(PGresult* r, const pipeline& what, outcome& out);
  void lose(outcome& out, std::string why, bool cancelled = false);

  // What the next results answer, in order: the prepare or the execution of a step.
  struct expected {
    std::size_t step;
    bool prepare;
  };
  std::vector<expected> expected_;
  std::size_t next_ = 0;
  unsigned silences_ = 0;  // ends of a statement's results in a row
  bool synced_ = false;
  // When the plans of what is prepared were thrown away.
  std::chrono::steady_clock::time_point planned_ = std::chrono::steady_clock::now();
  prepared_statements prepared_;
  // For PQsendQueryPrepared; kept for their capacity.
  std::vector<const char*> values_;
  std::vector<int> lengths_, formats_;
};

// Connects to one host and enters pipeline mode. Null: not reached; the reason has been logged.
struct attempt {
  std::unique_ptr<session> reached;
  bool answered = false;  // a server was there and refused the session
};
boost::asio::awaitable<attempt> connect(boost::asio::any_io_executor executor, const conninfo& where, target at,
                                        std::string session_attrs, deadline until);

}  // namespace recibo::postgres
