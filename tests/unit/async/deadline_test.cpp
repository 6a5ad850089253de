#include "recibo/async/deadline.hpp"

#include "support/run_coro.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/this_coro.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace recibo::async {
namespace {

using namespace std::chrono_literals;
using boost::asio::as_tuple;
using boost::asio::awaitable;
using boost::asio::steady_timer;
using boost::asio::use_awaitable;
using std::chrono::steady_clock;
using test::run_coro;

// Sleeps, then returns `text`; says in `told` when it was cancelled.
awaitable<result<std::string>> slowly(std::chrono::milliseconds time, std::string text, bool* told = nullptr) {
  steady_timer timer(co_await boost::asio::this_coro::executor, time);
  const auto [code] = co_await timer.async_wait(as_tuple(use_awaitable));
  if (code && told) *told = true;
  if (code) co_return error(transient::database_away, "cut off");
  co_return text;
}

awaitable<result<std::string>> fails(error with) { co_return with; }

awaitable<result<std::string>> throws(std::chrono::milliseconds time) {
  steady_timer timer(co_await boost::asio::this_coro::executor, time);
  co_await timer.async_wait(use_awaitable);
  throw std::runtime_error("broken");
}

// Has an answer all the same when it is told to stop.
awaitable<result<std::string>> answers_when_told(result<std::string> answer) {
  steady_timer timer(co_await boost::asio::this_coro::executor, 1h);
  co_await timer.async_wait(as_tuple(use_awaitable));
  co_return answer;
}

TEST(WithDeadline, ReturnsWhatWasInTime) {
  const auto body = []() -> awaitable<void> {
    auto got = co_await with_deadline(slowly(5ms, "done"), steady_clock::now() + 5s);
    EXPECT_TRUE(got.has_value());
    EXPECT_EQ(got.value(), "done");
  };
  run_coro(body);
}

TEST(WithDeadline, GivesUpAtTheDeadlineAndCancels) {
  const auto body = []() -> awaitable<void> {
    bool told = false;
    const auto begun = steady_clock::now();
    auto got = co_await with_deadline(slowly(1h, "late", &told), begun + 30ms);
    EXPECT_TRUE(got.has_error());
    EXPECT_EQ(got.error().code, make_error_code(transient::deadline_passed));
    EXPECT_TRUE(told);
    EXPECT_GE(steady_clock::now() - begun, 30ms);
    EXPECT_LT(steady_clock::now() - begun, 5s);
  };
  run_coro(body);
}

TEST(WithDeadline, ErrorsInTimePassUnchanged) {
  const auto body = []() -> awaitable<void> {
    error reason(transient::queue_full, "full");
    auto got = co_await with_deadline(fails(reason), steady_clock::now() + 5s);
    EXPECT_EQ(got.error().code, make_error_code(transient::queue_full));
    EXPECT_EQ(got.error().detail, "full");
  };
  run_coro(body);
}

// `a || timer` of Asio would wait for the timer first.
TEST(WithDeadline, AnExceptionIsThrownAtOnce) {
  const auto body = []() -> awaitable<void> {
    const auto begun = steady_clock::now();
    std::string what;
    try {
      co_await with_deadline(throws(1ms), begun + 20s);
    } catch (const std::runtime_error& e) {
      what = e.what();
    }
    EXPECT_EQ(what, "broken");
    EXPECT_LT(steady_clock::now() - begun, 5s);
  };
  run_coro(body);
}

TEST(WithDeadline, ACancelledExceptionIsTheDeadline) {
  const auto body = []() -> awaitable<void> {
    auto got = co_await with_deadline(throws(1h), steady_clock::now() + 10ms);
    EXPECT_EQ(got.error().code, make_error_code(transient::deadline_passed));
  };
  run_coro(body);
}

// What was sent and got no answer stays uncertain, and a value that came at the last moment is not lost.
TEST(WithDeadline, WhatIsKnownAfterTheDeadlineStands) {
  const auto body = []() -> awaitable<void> {
    result<std::string> sent(error{uncertain::commit_unknown});
    auto unknown = co_await with_deadline(answers_when_told(sent), steady_clock::now() + 10ms);
    EXPECT_EQ(unknown.error().code, make_error_code(uncertain::commit_unknown));
    result<std::string> value("committed");
    auto known = co_await with_deadline(answers_when_told(value), steady_clock::now() + 10ms);
    EXPECT_TRUE(known.has_value());
  };
  run_coro(body);
}

TEST(WithDeadline, APastDeadlineStartsNothing) {
  const auto body = []() -> awaitable<void> {
    auto got = co_await with_deadline(slowly(0ms, "done"), steady_clock::now() - 1ms);
    EXPECT_EQ(got.error().code, make_error_code(transient::deadline_passed));
  };
  run_coro(body);
}

TEST(WithDeadline, CancellingTheWaiterCancelsTheOperation) {
  boost::asio::io_context context;
  bool told = false, ended = false;
  boost::asio::cancellation_signal signal;
  const auto waiter = [&]() -> awaitable<void> { co_await with_deadline(slowly(1h, "never", &told), steady_clock::now() + 1h); };
  auto on_end = [&](const std::exception_ptr& failure) {
    ended = true;
    (void)failure;
  };
  boost::asio::co_spawn(context, waiter(), boost::asio::bind_cancellation_slot(signal.slot(), on_end));
  const auto body = [&]() -> awaitable<void> {
    steady_timer timer(context, 10ms);
    co_await timer.async_wait(use_awaitable);
    signal.emit(boost::asio::cancellation_type::terminal);
  };
  run_coro(context, body);
  EXPECT_TRUE(told);
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace recibo::async
