// A piece of work that is done again and again: claims, limits, health, clean-up. Sleeps between rounds with jitter, so
// that replicas do not move in step, and wakes at once when there is reason to.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>

namespace recibo::async {

// Lives on the thread of its executor.
class worker {
 public:
  // One round. Returns whether there is more to do at once; otherwise the worker sleeps. What escapes is logged, and
  // the next round comes after the usual sleep: a fault that lasts must not spin.
  using round = std::function<boost::asio::awaitable<bool>()>;

  // `name`, a literal, is for the log. Sleeps `interval`, give or take a fifth.
  worker(boost::asio::any_io_executor executor, std::string_view name, std::chrono::milliseconds interval, round run_once);
  // Cancels a round that is running; its coroutine ends when the executor next runs.
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  // Starts with a round at once. Only once.
  void start();
  // Ends the present or the next sleep. Calls during one round count as one.
  void wake();
  // Starts no further round and lets the present one finish; at `until` it is cancelled and waited for.
  boost::asio::awaitable<void> stop(std::chrono::steady_clock::time_point until);

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace recibo::async
