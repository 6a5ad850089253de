#include "recibo/async/task_group.hpp"

#include "recibo/observe/log.hpp"
#include "support/run_coro.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>

namespace recibo::async {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using boost::asio::cancellation_type;
using boost::asio::steady_timer;
using boost::asio::use_awaitable;
using std::chrono::steady_clock;
using test::run_coro;

awaitable<void> sleeps(boost::asio::io_context& context, std::chrono::milliseconds time, int& finished) {
  steady_timer timer(context, time);
  co_await timer.async_wait(use_awaitable);
  ++finished;
}

awaitable<void> throws(boost::asio::io_context& context, std::string what) {
  steady_timer timer(context, 1ms);
  co_await timer.async_wait(use_awaitable);
  throw std::runtime_error(what);
}

// Does not hear that it is told to stop while it waits for the first time.
awaitable<void> hears_the_second_word(boost::asio::io_context& context, int& finished) {
  co_await boost::asio::this_coro::throw_if_cancelled(false);
  for (int i = 0; i < 2; ++i) {
    steady_timer timer(context, 1h);
    co_await timer.async_wait(boost::asio::as_tuple(use_awaitable));
  }
  ++finished;
}

TEST(TaskGroup, TellsAllToStopUntilTheyHave) {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  int finished = 0;
  group.spawn("attentive", sleeps(context, 1h, finished));
  group.spawn("hard of hearing", hears_the_second_word(context, finished));
  const auto body = [&]() -> awaitable<void> {
    co_await group.end();
    EXPECT_EQ(group.size(), 0u);
    EXPECT_EQ(finished, 1);
    co_await group.end();
  };
  run_coro(context, body);
}

TEST(TaskGroup, WaitsUntilAllHaveFinished) {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  int finished = 0;
  group.spawn("one", sleeps(context, 5ms, finished));
  group.spawn("two", sleeps(context, 20ms, finished));
  EXPECT_EQ(group.size(), 2u);
  const auto body = [&]() -> awaitable<void> {
    const bool empty = co_await group.wait_empty(steady_clock::now() + 10s);
    EXPECT_TRUE(empty);
    EXPECT_EQ(finished, 2);
    EXPECT_EQ(group.size(), 0u);
    const bool still = co_await group.wait_empty(steady_clock::now());
    EXPECT_TRUE(still);
  };
  run_coro(context, body);
}

TEST(TaskGroup, SaysThatTheDeadlineCameFirstAndCutsTheRest) {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  int finished = 0;
  for (int i = 0; i < 10; ++i) group.spawn("long", sleeps(context, 1h, finished));
  const auto body = [&]() -> awaitable<void> {
    const bool early = co_await group.wait_empty(steady_clock::now() + 10ms);
    EXPECT_FALSE(early);
    EXPECT_EQ(group.size(), 10u);
    group.emit(cancellation_type::terminal);
    const bool cut = co_await group.wait_empty(steady_clock::now() + 10s);
    EXPECT_TRUE(cut);
    EXPECT_EQ(finished, 0);
  };
  run_coro(context, body);
}

TEST(TaskGroup, OneIsToldToStopBeforeItsFirstStep) {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  int finished = 0;
  group.spawn("early", sleeps(context, 1h, finished));
  group.emit(cancellation_type::terminal);
  context.run();
  EXPECT_EQ(group.size(), 0u);
}

TEST(TaskGroup, SeveralMayWait) {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  task_group waiters(context.get_executor());
  int finished = 0, seen = 0;
  group.spawn("work", sleeps(context, 20ms, finished));
  const auto wait = [&](std::chrono::milliseconds time) -> awaitable<void> {
    const bool empty = co_await group.wait_empty(steady_clock::now() + time);
    seen += empty ? 1 : 100;
  };
  waiters.spawn("first", wait(5s));
  waiters.spawn("second", wait(10s));
  waiters.spawn("impatient", wait(1ms));
  context.run();
  EXPECT_EQ(seen, 102);
}

// S40: the text of an exception may hold foreign bytes.
TEST(TaskGroup, AnExceptionIsLoggedInOneEscapedLine) {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  group.spawn("session", throws(context, "bad\nthing\x1b[31m"));
  testing::internal::CaptureStderr();
  context.run();
  const std::string line = testing::internal::GetCapturedStderr();
  EXPECT_THAT(line, testing::HasSubstr(R"("task":"session","what":"bad\nthing\u001b[31m")"));
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
  EXPECT_EQ(group.size(), 0u);
}

TEST(TaskGroup, ACancellationIsNoFailureToLog) {
  boost::asio::io_context context;
  task_group group(context.get_executor());
  int finished = 0;
  group.spawn("session", sleeps(context, 1h, finished));
  context.poll();
  group.emit(cancellation_type::terminal);
  testing::internal::CaptureStderr();
  context.run();
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(TaskGroup, CoroutinesMayOutliveTheGroup) {
  boost::asio::io_context context;
  int finished = 0;
  std::optional<task_group> group(context.get_executor());
  group->spawn("late", sleeps(context, 5ms, finished));
  group.reset();
  context.run();
  EXPECT_EQ(finished, 1);
}

TEST(TaskGroup, AContextMayGoWithCoroutinesInIt) {
  int finished = 0;
  {
    boost::asio::io_context context;
    task_group group(context.get_executor());
    group.spawn("cut", sleeps(context, 1h, finished));
    context.poll();
  }
  EXPECT_EQ(finished, 0);
}

}  // namespace
}  // namespace recibo::async
