// The live coroutines of one thread: sessions, workers. Spawned here and nowhere `detached`, so that their exceptions
// are logged, and a drain can stop them and wait until they have gone (decision 10).
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_type.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

namespace recibo::async {

// Not thread-safe: belongs to the thread of its executor. Outlived by its coroutines without harm.
class task_group {
 public:
  explicit task_group(boost::asio::any_io_executor executor);
  ~task_group();
  task_group(const task_group&) = delete;
  task_group& operator=(const task_group&) = delete;

  // Starts `task` on the executor. `name`, a literal, stands in the log line about an exception that escapes it.
  void spawn(std::string_view name, boost::asio::awaitable<void> task);

  // Asks every live coroutine to stop: `terminal` ends its present wait with operation_aborted, and the next one too.
  // Coroutines ignore the other types unless they say otherwise (this_coro::reset_cancellation_state).
  void emit(boost::asio::cancellation_type type);

  // True when the group is empty; false when it is not at `until`. Not to be awaited by one of the group.
  boost::asio::awaitable<bool> wait_empty(std::chrono::steady_clock::time_point until);

  // Asks all to stop, and waits until they have. It asks again and again: who is between two waits, where a cancellation does
  // not throw, may not have heard it. Not to be awaited by one of the group.
  boost::asio::awaitable<void> end();

  std::size_t size() const noexcept;

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace recibo::async
