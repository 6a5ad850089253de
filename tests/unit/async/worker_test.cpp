#include "recibo/async/worker.hpp"

#include "support/run_coro.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace recibo::async {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using boost::asio::steady_timer;
using boost::asio::use_awaitable;
using std::chrono::steady_clock;
using test::run_coro;

class Worker : public testing::Test {
 protected:
  awaitable<void> pause(std::chrono::milliseconds time) {
    steady_timer timer(context, time);
    co_await timer.async_wait(use_awaitable);
  }

  boost::asio::io_context context;
  int rounds = 0;
};

TEST_F(Worker, RoundsFollowAtOnceWhileThereIsMore) {
  worker w(context.get_executor(), "test", 1h, [&]() -> awaitable<bool> { co_return ++rounds < 5; });
  w.start();
  const auto body = [&]() -> awaitable<void> {
    co_await pause(20ms);
    EXPECT_EQ(rounds, 5);
    co_await w.stop(steady_clock::now() + 5s);
  };
  run_coro(context, body);
  EXPECT_EQ(rounds, 5);
}

TEST_F(Worker, SleepsTheIntervalGiveOrTakeAFifth) {
  std::vector<steady_clock::time_point> at;
  worker w(context.get_executor(), "test", 50ms, [&]() -> awaitable<bool> {
    at.push_back(steady_clock::now());
    co_return false;
  });
  w.start();
  const auto body = [&]() -> awaitable<void> {
    while (at.size() < 6) co_await pause(5ms);
    co_await w.stop(steady_clock::now() + 5s);
  };
  run_coro(context, body);
  for (std::size_t i = 1; i < at.size(); ++i) EXPECT_GE(at[i] - at[i - 1], 40ms);
}

TEST_F(Worker, AWakeUpEndsTheSleep) {
  worker w(context.get_executor(), "test", 1h, [&]() -> awaitable<bool> {
    ++rounds;
    co_return false;
  });
  w.start();
  const auto body = [&]() -> awaitable<void> {
    co_await pause(5ms);
    EXPECT_EQ(rounds, 1);
    w.wake();
    co_await pause(5ms);
    EXPECT_EQ(rounds, 2);
    co_await w.stop(steady_clock::now() + 5s);
  };
  run_coro(context, body);
}

TEST_F(Worker, AWakeUpDuringARoundIsNotLost) {
  worker w(context.get_executor(), "test", 1h, [&]() -> awaitable<bool> {
    ++rounds;
    co_await pause(10ms);
    co_return false;
  });
  w.start();
  const auto body = [&]() -> awaitable<void> {
    co_await pause(3ms);
    w.wake();
    w.wake();
    co_await pause(60ms);
    EXPECT_EQ(rounds, 2);
    co_await w.stop(steady_clock::now() + 5s);
  };
  run_coro(context, body);
}

TEST_F(Worker, AFaultThatLastsIsLoggedAndDoesNotSpin) {
  worker w(context.get_executor(), "limits", 50ms, [&]() -> awaitable<bool> {
    ++rounds;
    throw std::runtime_error("broken");
    co_return true;
  });
  testing::internal::CaptureStderr();
  w.start();
  const auto body = [&]() -> awaitable<void> {
    co_await pause(120ms);
    co_await w.stop(steady_clock::now() + 5s);
  };
  run_coro(context, body);
  EXPECT_GE(rounds, 2);
  EXPECT_LE(rounds, 4);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr(R"("worker":"limits","what":"broken")"));
}

TEST_F(Worker, StopLetsTheRoundInHandFinish) {
  bool finished = false;
  worker w(context.get_executor(), "test", 1ms, [&]() -> awaitable<bool> {
    co_await pause(30ms);
    finished = true;
    co_return true;
  });
  w.start();
  const auto body = [&]() -> awaitable<void> {
    co_await pause(5ms);
    co_await w.stop(steady_clock::now() + 5s);
    EXPECT_TRUE(finished);
  };
  run_coro(context, body);
}

TEST_F(Worker, StopCutsARoundThatTakesTooLong) {
  bool finished = false;
  worker w(context.get_executor(), "test", 1ms, [&]() -> awaitable<bool> {
    co_await pause(1h);
    finished = true;
    co_return true;
  });
  testing::internal::CaptureStderr();
  w.start();
  const auto body = [&]() -> awaitable<void> {
    co_await pause(5ms);
    co_await w.stop(steady_clock::now() + 20ms);
  };
  run_coro(context, body);
  EXPECT_FALSE(finished);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("cut off"));
}

TEST_F(Worker, MayBeDestroyedInARoundOrAsleep) {
  std::optional<worker> asleep, busy;
  asleep.emplace(context.get_executor(), "asleep", 1h, [&]() -> awaitable<bool> { co_return false; });
  busy.emplace(context.get_executor(), "busy", 1h, [&]() -> awaitable<bool> {
    co_await pause(1h);
    co_return false;
  });
  asleep->start();
  busy->start();
  const auto body = [&]() -> awaitable<void> {
    co_await pause(5ms);
    asleep.reset();
    busy.reset();
  };
  run_coro(context, body);
}

}  // namespace
}  // namespace recibo::async
