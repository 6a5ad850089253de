// A session to try something on.
#pragma once

#include "recibo/postgres/connection.hpp"
#include "support/run_coro.hpp"

#include <chrono>
#include <functional>
#include <utility>

namespace recibo::test {

// A deadline that no test should meet.
inline std::chrono::steady_clock::time_point soon(std::chrono::milliseconds in = std::chrono::seconds(10)) {
  return std::chrono::steady_clock::now() + in;
}

// Opens a session, runs `body` on it, and closes it; fails the test when there is no session.
inline void on_connection(const secret& url, const std::function<boost::asio::awaitable<void>(postgres::connection&)>& body,
                          postgres::session_options how = {}) {
  boost::asio::io_context context;
  const auto all = [&]() -> boost::asio::awaitable<void> {
    auto opened = co_await postgres::connection::open(context.get_executor(), url, soon(), how);
    EXPECT_TRUE(opened.has_value());
    if (!opened) co_return;
    co_await body(**opened);
  };
  run_coro(context, all);
}

}  // namespace recibo::test
