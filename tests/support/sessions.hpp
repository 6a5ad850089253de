// A session to try something on.
#pragma once

#include "recibo/postgres/connection.hpp"
#include "support/cluster.hpp"
#include "support/run_coro.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
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

// One that stays open, and may hold locks between its statements. As the owner.
class session {
 public:
  explicit session(const database& db) {
    const auto open = [&]() -> boost::asio::awaitable<void> {
      auto opened = co_await postgres::connection::open(context_.get_executor(), db.url(), soon());
      EXPECT_TRUE(opened.has_value());
      if (opened) made_ = std::move(*opened);
    };
    run_coro(context_, open);
  }
  void sql(const std::string& text) {
    const postgres::statement what{"", text, {}};
    postgres::pipeline work;
    work.add(what);
    context_.restart();
    const auto run = [&]() -> boost::asio::awaitable<void> {
      const auto done = co_await made_->run(work, soon());
      EXPECT_TRUE(done.ok()) << text;
    };
    run_coro(context_, run);
  }

 private:
  boost::asio::io_context context_;
  std::unique_ptr<postgres::connection> made_;
};

}  // namespace recibo::test
