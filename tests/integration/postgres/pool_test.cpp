// The pool against servers that die, stop and come back.
#include "recibo/postgres/pool.hpp"

#include "recibo/postgres/sqlstate.hpp"
#include "support/cluster.hpp"
#include "support/run_coro.hpp"
#include "support/sessions.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

namespace recibo::postgres {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::soon;

const statement echo{"echo", "SELECT $1", {oid::int8}};
const statement nap{"nap", "SELECT pg_sleep(0.02)", {}};
const statement long_nap{"long_nap", "SELECT pg_sleep(0.4)", {}};

asio::awaitable<void> pause(std::chrono::milliseconds time) {
  asio::steady_timer timer(co_await asio::this_coro::executor, time);
  co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<result<rows>> ask(pool& p, std::int64_t n, std::chrono::milliseconds within = 10s) {
  parameters with;
  with.int8(n);
  co_return co_await p.query(echo, std::move(with), soon(within));
}

struct timed {
  result<rows> answer;
  std::chrono::milliseconds took;
};
asio::awaitable<timed> ask_timed(pool& p, std::chrono::milliseconds within = 10s) {
  const auto started = std::chrono::steady_clock::now();
  auto answer = co_await ask(p, 1, within);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started);
  timed out{std::move(answer), took};
  co_return out;
}

// Runs `body` with a pool, and lets its end close the pool.
void with_pool(const secret& url, int size, const std::function<asio::awaitable<void>(pool&)>& body) {
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    pool p(context.get_executor(), url, size);
    co_await body(p);
  };
  test::run_coro(context, all);
}

class Pool : public testing::Test {
 protected:
  test::database db{test::database::content::empty};
  int sessions() const {
    return std::stoi(
        db.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'recibo'"));
  }
  void kill_sessions() const {
    db.sql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = current_database() AND application_name = "
        "'recibo'");
  }
};

TEST_F(Pool, FiftyAtOnceShareFourConnections) {
  asio::io_context context;
  int right = 0, most = 0;
  const auto all = [&]() -> asio::awaitable<void> {
    pool p(context.get_executor(), db.url(), 4);
    int running = 0;
    const auto one = [&](std::int64_t n) -> asio::awaitable<void> {
      const auto napped = co_await p.query(nap, parameters(), soon());
      most = std::max(most, p.state().busy);
      const auto answer = co_await ask(p, n);
      if (napped && answer && answer->int8(0, 0) == n) ++right;
      --running;
    };
    for (int n = 0; n < 50; ++n) {
      ++running;
      asio::co_spawn(context, one(n), [](const std::exception_ptr& e) { EXPECT_FALSE(e); });
    }
    while (running > 0) co_await pause(5ms);
    EXPECT_EQ(sessions(), 4);
    EXPECT_EQ(p.state().idle, 4);
    EXPECT_EQ(p.state().busy, 0);
    EXPECT_EQ(p.state().waiting, 0);
    EXPECT_EQ(p.state().connecting, 0);
  };
  test::run_coro(context, all);
  EXPECT_EQ(right, 50);
  EXPECT_LE(most, 4);
}

TEST_F(Pool, OneAfterTheOtherNeedsOneConnection) {
  with_pool(db.url(), 4, [&](pool& p) -> asio::awaitable<void> {
    for (int i = 0; i < 5; ++i) {
      const auto answer = co_await ask(p, i);
      EXPECT_TRUE(answer);
    }
    EXPECT_EQ(sessions(), 1);
  });
}

TEST_F(Pool, DeadConnectionsAreReplacedUnnoticed) {
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    pool p(context.get_executor(), db.url(), 3);
    int running = 3;
    const auto one = [&]() -> asio::awaitable<void> {
      const auto napped = co_await p.query(nap, parameters(), soon());
      EXPECT_TRUE(napped);
      --running;
    };
    for (int i = 0; i < 3; ++i) asio::co_spawn(context, one(), [](const std::exception_ptr&) {});
    while (running > 0) co_await pause(5ms);
    EXPECT_EQ(p.state().idle, 3);
    kill_sessions();
    const auto answer = co_await ask(p, 7);
    EXPECT_TRUE(answer);
    if (answer) {
      EXPECT_EQ(answer->int8(0, 0), 7);
    }
    EXPECT_EQ(p.state().idle, 1);
  };
  test::run_coro(context, all);
}

TEST_F(Pool, ReadThatWasCutOffIsTriedOnceMore) {
  with_pool(db.url(), 2, [&](pool& p) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto killer = [&]() -> asio::awaitable<void> {
      co_await pause(150ms);
      kill_sessions();
    };
    const auto first = co_await ask(p, 1);
    EXPECT_TRUE(first);
    asio::co_spawn(executor, killer(), [](const std::exception_ptr&) {});
    const auto answer = co_await p.query(long_nap, parameters(), soon());
    EXPECT_TRUE(answer);
  });
}

TEST_F(Pool, AWriteThatWasCutOffIsUncertainAndNotRepeated) {
  db.sql("CREATE SCHEMA recibo; CREATE TABLE recibo.t (n int)");
  const statement insert{"insert", "INSERT INTO recibo.t VALUES (1)", {}};
  with_pool(db.url(), 2, [&](pool& p) -> asio::awaitable<void> {
    const auto executor = co_await asio::this_coro::executor;
    const auto killer = [&]() -> asio::awaitable<void> {
      co_await pause(150ms);
      kill_sessions();
    };
    asio::co_spawn(executor, killer(), [](const std::exception_ptr&) {});
    pipeline write;
    write.add(insert).add(long_nap);
    const auto out = co_await p.run(write, soon());
    EXPECT_TRUE(out.lost);
    EXPECT_TRUE(out.sync_sent);
    EXPECT_EQ(to_error(out).code, uncertain::commit_unknown);
  });
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.t"), "0");
}

TEST_F(Pool, RefusedTransactionIsRolledBackBeforeTheNextUser) {
  const statement begin{"begin", "BEGIN", {}};
  const statement fail{"fail", "SELECT 1/0", {}};
  with_pool(db.url(), 1, [&](pool& p) -> asio::awaitable<void> {
    pipeline broken;
    broken.add(begin).add(fail);
    const auto out = co_await p.run(broken, soon());
    EXPECT_EQ(out.refused ? out.refused->sqlstate : "", "22012");
    EXPECT_EQ(p.state().idle, 1);
    const auto answer = co_await ask(p, 1);
    EXPECT_TRUE(answer);
    EXPECT_EQ(sessions(), 1);
  });
}

TEST_F(Pool, TransactionLeftOpenIsNotHandedOn) {
  const statement begin{"begin", "BEGIN", {}};
  with_pool(db.url(), 1, [&](pool& p) -> asio::awaitable<void> {
    pipeline open;
    open.add(begin);
    const auto out = co_await p.run(open, soon());
    EXPECT_TRUE(out.ok());
    EXPECT_EQ(p.state().idle, 0);
    const auto answer = co_await ask(p, 1);
    EXPECT_TRUE(answer);
  });
}

TEST_F(Pool, AllInUseUntilTheDeadlineIsBusy) {
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    pool p(context.get_executor(), db.url(), 1);
    const auto warm = co_await ask(p, 1);
    EXPECT_TRUE(warm);
    bool done = false;
    const auto user = [&]() -> asio::awaitable<void> {
      const auto napped = co_await p.query(long_nap, parameters(), soon());
      EXPECT_TRUE(napped);
      done = true;
    };
    asio::co_spawn(context, user(), [](const std::exception_ptr&) {});
    co_await pause(20ms);
    const auto t = co_await ask_timed(p, 100ms);
    EXPECT_FALSE(t.answer);
    if (!t.answer) {
      EXPECT_EQ(t.answer.error().code, transient::database_busy);
    }
    EXPECT_LT(t.took, 250ms);
    while (!done) co_await pause(5ms);
    EXPECT_EQ(p.state().idle, 1);
  };
  test::run_coro(context, all);
}

TEST_F(Pool, SlowStatementIsBusyAndItsConnectionReplaced) {
  with_pool(db.url(), 1, [&](pool& p) -> asio::awaitable<void> {
    const auto warm = co_await ask(p, 1);
    EXPECT_TRUE(warm);
    const auto slow = co_await p.query(long_nap, parameters(), soon(100ms));
    EXPECT_FALSE(slow);
    if (!slow) {
      EXPECT_EQ(slow.error().code, transient::database_busy);
    }
    const auto answer = co_await ask(p, 1);
    EXPECT_TRUE(answer);
  });
}

TEST_F(Pool, CancelledUserGivesItsPlaceAndConnectionBack) {
  asio::io_context context;
  asio::cancellation_signal stop_user, stop_waiter;
  const auto all = [&]() -> asio::awaitable<void> {
    pool p(context.get_executor(), db.url(), 1);
    const auto warm = co_await ask(p, 1);
    EXPECT_TRUE(warm);
    const auto user = [&]() -> asio::awaitable<void> { co_await p.query(long_nap, parameters(), soon()); };
    asio::co_spawn(context, user(), asio::bind_cancellation_slot(stop_user.slot(), [](const std::exception_ptr&) {}));
    asio::co_spawn(context, user(), asio::bind_cancellation_slot(stop_waiter.slot(), [](const std::exception_ptr&) {}));
    co_await pause(50ms);
    EXPECT_EQ(p.state().busy, 1);
    EXPECT_EQ(p.state().waiting, 1);
    stop_waiter.emit(asio::cancellation_type::terminal);
    co_await pause(10ms);
    EXPECT_EQ(p.state().waiting, 0);
    stop_user.emit(asio::cancellation_type::terminal);
    co_await pause(10ms);
    EXPECT_EQ(p.state().busy, 0);
    const auto answer = co_await ask(p, 1);
    EXPECT_TRUE(answer);
  };
  test::run_coro(context, all);
}

TEST_F(Pool, CloseEndsSessionsAndRefuses) {
  with_pool(db.url(), 2, [&](pool& p) -> asio::awaitable<void> {
    const auto warm = co_await ask(p, 1);
    EXPECT_TRUE(warm);
    p.close();
    const auto answer = co_await ask(p, 1);
    EXPECT_FALSE(answer);
    if (!answer) {
      EXPECT_EQ(answer.error().code, transient::shutting_down);
    }
    for (int i = 0; i < 100 && sessions() > 0; ++i) co_await pause(10ms);
    EXPECT_EQ(sessions(), 0);
  });
}

TEST_F(Pool, MayGoWhileItConnects) {
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    pool p(context.get_executor(), secret("postgresql://recibo@127.0.0.1:1/none"), 2);
    const auto answer = co_await ask(p, 1);
    EXPECT_FALSE(answer);
    EXPECT_EQ(p.state().connecting, 1);  // goes on in the background
  };
  test::run_coro(context, all);
}

TEST(PoolOutage, StoppedDatabaseFailsFastAndComesBackWithoutARestart) {
  test::cluster server;
  with_pool(secret(server.url()), 4, [&](pool& p) -> asio::awaitable<void> {
    for (const auto how : {test::cluster::how::fast, test::cluster::how::immediate}) {
      const auto before = co_await ask(p, 1);
      EXPECT_TRUE(before);
      server.stop(how);
      for (int i = 0; i < 5; ++i) {
        const auto t = co_await ask_timed(p);
        EXPECT_FALSE(t.answer);
        if (!t.answer) {
          EXPECT_EQ(t.answer.error().code, transient::database_away);
        }
        EXPECT_LT(t.took, 1s);
      }
      server.start();
      bool back = false;
      const auto until = soon(5s);
      while (!back && std::chrono::steady_clock::now() < until) {
        const auto t = co_await ask_timed(p);
        back = t.answer.has_value();
        EXPECT_LT(t.took, 1s);
        if (!back) co_await pause(50ms);
      }
      EXPECT_TRUE(back);
    }
  });
}

// A host that swallows packets: the first who asks waits a second, those after it not at all.
TEST(PoolOutage, SilentDatabaseFailsWithinASecond) {
  asio::io_context elsewhere;
  const asio::ip::tcp::acceptor silent(elsewhere, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const secret url("postgresql://recibo@127.0.0.1:" + std::to_string(silent.local_endpoint().port()) + "/x");
  with_pool(url, 2, [&](pool& p) -> asio::awaitable<void> {
    const auto first = co_await ask_timed(p);
    EXPECT_FALSE(first.answer);
    EXPECT_LT(first.took, 1500ms);
    co_await pause(2500ms);
    EXPECT_EQ(p.state().waiting, 0);
    const auto later = co_await ask_timed(p);
    EXPECT_FALSE(later.answer);
    if (!later.answer) {
      EXPECT_EQ(later.answer.error().code, transient::database_away);
    }
    EXPECT_LT(later.took, 100ms);
  });
}

}  // namespace
}  // namespace recibo::postgres
