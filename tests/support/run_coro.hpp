// Runs a coroutine to its end on an io_context of its own, and fails the test if work is left over: whoever waits for
// nothing that ends leaks. ASSERT_* does not compile in a coroutine: await into a local, and EXPECT_*.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <exception>
#include <functional>

namespace recibo::test {

// `body` gets nothing and returns the coroutine; call it with a named lambda that lives as long as the call.
inline void run_coro(boost::asio::io_context& context, const std::function<boost::asio::awaitable<void>()>& body,
                     std::chrono::seconds limit = std::chrono::seconds(30)) {
  bool done = false;
  boost::asio::co_spawn(context, body(), [&](const std::exception_ptr& failure) {
    done = true;
    if (!failure) return;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      ADD_FAILURE() << "the coroutine threw: " << e.what();
    }
  });
  const auto until = std::chrono::steady_clock::now() + limit;
  while (!done && context.run_one_until(until) != 0) {
  }
  EXPECT_TRUE(done) << "the coroutine has not finished";
  // What was cancelled needs a moment to be told so.
  context.run_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(context.stopped()) << "the context still has work";
}

inline void run_coro(const std::function<boost::asio::awaitable<void>()>& body,
                     std::chrono::seconds limit = std::chrono::seconds(30)) {
  boost::asio::io_context context;
  run_coro(context, body, limit);
}

}  // namespace recibo::test
