// record(work): the one way to change state (decision 8, write path). A bounded queue, and writers with one PostgreSQL
// connection each that take what waits, decide it in memory, and commit it together. Answers come after the commit.
#pragma once

#include "recibo/record/work.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

namespace recibo::observe {
class metrics;
}

namespace recibo::record {

// Lives on the thread of its executor.
class recorder {
 public:
  struct options {
    secret database_url;
    int writers = 2;
    int batch = 128;
    int queue = 4096;                     // entries
    std::size_t queue_bytes = 64u << 20;  // bytes of the bodies in it
    observe::metrics* metrics = nullptr;  // may be null; must outlive the recorder
    // Called after a commit that holds notifications, with the names of their destinations; may be empty.
    std::function<void(const std::set<std::string, std::less<>>&)> told = {};
  };

  recorder(boost::asio::any_io_executor executor, options o);
  ~recorder();
  recorder(const recorder&) = delete;
  recorder& operator=(const recorder&) = delete;

  void start();
  // Takes no new work (transient::shutting_down), finishes what is queued, closes the connections.
  boost::asio::awaitable<void> drain(std::chrono::steady_clock::time_point until);

  // Completes after the commit that holds the rows of `what`, or with the reason why nothing is known to be recorded.
  // Giving up at `until` leaves the batch alone when it has begun; work still queued then is dropped.
  // permanent::…   registrations and events only: intent_conflict, idempotency_key_reused, illegal_transition,
  //                precondition_failed, not_found, alias_taken, already_resolved
  // transient::database_away, queue_full, operation_busy, deadline_passed, shutting_down, not_ready, our_fault
  // uncertain::commit_unknown
  boost::asio::awaitable<result<outcome>> record(work what, std::chrono::steady_clock::time_point until);

  // For metrics and readiness.
  struct counts {
    std::size_t queued = 0, queued_bytes = 0;
    int writers_connected = 0;
  };
  counts state() const noexcept;
  // Whether a write would work now, as far as the last attempts tell.
  bool healthy() const noexcept;

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace recibo::record
