// One writer: a PostgreSQL session that takes a batch, records it, and answers it (write path, "Shape" and rules 6-8).
// Belongs to one thread. What it needs of the recorder is the `desk`.
#pragma once

#include "batch.hpp"
#include "queue.hpp"
#include "recibo/observe/metrics.hpp"
#include "recibo/postgres/connection.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <deque>
#include <functional>
#include <memory>
#include <vector>

namespace recibo::record {

// What all writers of a recorder share.
struct desk {
  explicit desk(record::queue::bounds b) : queue(b) {}
  record::queue queue;
  workflow_cache workflows;
  observe::metrics* metrics = nullptr;
  // The database could not be reached at the last attempt: refuse at the door.
  bool away = false;
  // A session was lost, and no other has answered since: not ready, but not yet refused at the door.
  bool in_doubt = false;
  bool ever_connected = false;
  int writers_connected = 0;
  // Faults of ours of the last seconds: over the bound, batches are no longer split and readiness is lost (rule 6).
  std::deque<steady_time> culprits;
  // Callbacks per second that were recorded lately; 0: not known yet.
  double rate = 0;
  // Called when work has come back to the queue.
  std::function<void()> wake;
  // Called after a commit that holds notifications, with their destinations. May be empty.
  std::function<void(const std::set<std::string, std::less<>>&)> told;

  bool too_many_culprits(steady_time now);
};

enum class lane {
  batches,  // work as it comes
  waiting,  // work for one operation that is often busy: waits a while for its row
  parking,  // callbacks whose operation is not known
};

class writer {
 public:
  writer(boost::asio::any_io_executor executor, secret url, desk& shared);

  // Opens the session when there is none. False: the database cannot be reached; `away` is set and what waits was refused.
  boost::asio::awaitable<bool> connect();
  // Records these, answers them or hands them back to the queue. Every entry has been dealt with when it returns.
  boost::asio::awaitable<void> process(std::vector<entry_ptr> entries, lane which = lane::batches);
  void close();
  bool connected() const noexcept { return session_ && session_->usable(); }

 private:
  enum class end {
    settled,  // every entry has been dealt with
    again,    // a race was lost: look again, carefully
    split,    // one of them fails for its data: find it
  };
  boost::asio::awaitable<end> attempt(std::vector<entry_ptr>& entries, lane which, bool careful);
  // Deals with a run that was not ok. `wrote`: COMMIT was in it.
  boost::asio::awaitable<end> failed(std::vector<entry_ptr>& entries, postgres::outcome& o, bool wrote, lane which);
  boost::asio::awaitable<void> settle_culprit(entry_ptr e, postgres::fault why);
  void settle(std::vector<entry_ptr>& entries, const std::vector<verdict>& verdicts);
  void finish_all(std::vector<entry_ptr>& entries, const error& why);
  void give_back(std::vector<entry_ptr>& entries, const error& why);
  void lose_session();

  boost::asio::any_io_executor executor_;
  secret url_;
  desk& desk_;
  std::unique_ptr<postgres::connection> session_;
};

}  // namespace recibo::record
