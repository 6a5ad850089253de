// How sessions end: deadlines, kills, cancellation, a server that only reads. What was sent is always told.
#include "recibo/postgres/connection.hpp"

#include "recibo/postgres/sqlstate.hpp"
#include "support/cluster.hpp"
#include "support/run_coro.hpp"
#include "support/sessions.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace recibo::postgres::connection_end_cases {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::database;
using test::on_connection;
using test::soon;

const statement begin{"begin", "BEGIN", {}};
const statement commit{"commit", "COMMIT", {}};

class ConnectionEnd : public testing::Test {
 protected:
  database db{database::content::empty};
};

TEST_F(ConnectionEnd, DeadlineEndsTheSessionAsUncertain) {
  const statement sleep{"sleep", "SELECT pg_sleep(3)", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline run;
    run.add(sleep);
    const auto started = std::chrono::steady_clock::now();
    const auto out = co_await c.run(run, started + 200ms);
    EXPECT_TRUE(out.lost);
    EXPECT_TRUE(out.timed_out);
    EXPECT_TRUE(out.sync_sent);
    EXPECT_EQ(classify(out), fault::uncertain);
    EXPECT_LT(std::chrono::steady_clock::now() - started, 1s);
    EXPECT_FALSE(c.usable());
  });
}

TEST_F(ConnectionEnd, DeadlineThatHasPassedSendsNothing) {
  const statement one{"one", "SELECT 1", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline run;
    run.add(one);
    const auto out = co_await c.run(run, std::chrono::steady_clock::now() - 1ms);
    EXPECT_TRUE(out.lost);
    EXPECT_TRUE(out.timed_out);
    EXPECT_FALSE(out.sync_sent);
  });
}

TEST_F(ConnectionEnd, StatementTimeoutComesBeforeTheDeadlineAndIsTransient) {
  const statement sleep{"sleep", "SELECT pg_sleep(3)", {}};
  const session_options quick{300ms};
  on_connection(
      db.url(),
      [&](connection& c) -> asio::awaitable<void> {
        pipeline run;
        run.add(sleep);
        const auto out = co_await c.run(run, soon());
        EXPECT_EQ(out.refused ? out.refused->sqlstate : "", "57014");
        EXPECT_EQ(classify(out), fault::transient);
        EXPECT_TRUE(c.usable());
      },
      quick);
}

TEST_F(ConnectionEnd, KilledInTheMiddleIsLostWithTheSyncSent) {
  const statement sleep{"sleep", "SELECT pg_sleep(3)", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    const auto killer = std::jthread([&, pid = c.backend_pid()] {
      std::this_thread::sleep_for(300ms);
      db.sql("SELECT pg_terminate_backend(" + std::to_string(pid) + ")");
    });
    pipeline run;
    run.add(begin).add(sleep).add(commit);
    const auto out = co_await c.run(run, soon());
    EXPECT_TRUE(out.lost);
    EXPECT_TRUE(out.sync_sent);
    EXPECT_FALSE(out.timed_out);
    EXPECT_FALSE(out.refused.has_value());
    EXPECT_NE(out.lost_why.find("57P01"), std::string::npos) << out.lost_why;
    EXPECT_EQ(classify(out), fault::uncertain);
    EXPECT_FALSE(c.usable());
  });
}

TEST_F(ConnectionEnd, KilledWhileIdleIsLostWithNothingSent) {
  const statement one{"one", "SELECT 1", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    db.sql("SELECT pg_terminate_backend(" + std::to_string(c.backend_pid()) + ", 5000)");
    pipeline run;
    run.add(one);
    const auto out = co_await c.run(run, soon());
    EXPECT_TRUE(out.lost);
    EXPECT_FALSE(out.sync_sent);
    EXPECT_EQ(classify(out), fault::transient);
  });
}

// What was sent must be told, so cancelling is an outcome and no exception.
TEST_F(ConnectionEnd, CancelledRunTellsThatItWasSent) {
  const statement sleep{"sleep", "SELECT pg_sleep(3)", {}};
  asio::io_context context;
  asio::cancellation_signal stop;
  std::optional<outcome> out;
  const auto body = [&]() -> asio::awaitable<void> {
    auto c = co_await connection::open(context.get_executor(), db.url(), soon());
    if (!c) co_return;
    pipeline run;
    run.add(sleep);
    out = co_await (*c)->run(run, soon());
  };
  asio::co_spawn(context, body(), asio::bind_cancellation_slot(stop.slot(), [](const std::exception_ptr&) {}));
  asio::steady_timer later(context, 500ms);
  later.async_wait([&](boost::system::error_code) { stop.emit(asio::cancellation_type::terminal); });
  const auto started = std::chrono::steady_clock::now();
  context.run();
  EXPECT_LT(std::chrono::steady_clock::now() - started, 2s);
  ASSERT_TRUE(out.has_value());
  EXPECT_TRUE(out->lost);
  EXPECT_TRUE(out->sync_sent);
  EXPECT_EQ(out->lost_why, "cancelled");
}

TEST_F(ConnectionEnd, AfterAFailoverTheServerThatOnlyReadsIsNotUsedAgain) {
  db.sql("CREATE SCHEMA recibo; CREATE TABLE recibo.t (n int)");
  const statement read_only{"", "SET default_transaction_read_only = on", {}};
  const statement insert{"", "INSERT INTO recibo.t VALUES (1)", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline turn, write;
    turn.add(read_only);
    write.add(insert);
    const auto turned = co_await c.run(turn, soon());
    EXPECT_TRUE(turned.ok());
    EXPECT_TRUE(c.usable());
    const auto out = co_await c.run(write, soon());
    EXPECT_EQ(out.refused ? out.refused->sqlstate : "", "25006");
    EXPECT_EQ(to_error(out).code, transient::database_away);
    EXPECT_FALSE(c.usable());
  });
}

// The commit is there and its copy is not: the tag says COMMIT, and only the warning tells (write path, rule 8).
TEST(ConnectionWarned, CancelledWaitForAStandbyIsNoticed) {
  test::cluster::options o;
  o.settings = {"synchronous_standby_names=nobody"};
  const test::cluster server(o);
  server.sql("postgres", "SET synchronous_commit = local; CREATE SCHEMA recibo; CREATE TABLE recibo.t (n int)");
  const statement insert{"insert", "INSERT INTO recibo.t VALUES (1)", {}};
  on_connection(secret(server.url()), [&](connection& c) -> asio::awaitable<void> {
    const auto canceller = std::jthread([&, pid = std::to_string(c.backend_pid())] {
      const auto waits = "SELECT count(*) FROM pg_stat_activity WHERE pid = " + pid + " AND wait_event = 'SyncRep'";
      while (server.sql("postgres", waits) != "1") std::this_thread::sleep_for(10ms);
      server.sql("postgres", "SELECT pg_cancel_backend(" + pid + ")");
    });
    pipeline run;
    run.add(begin).add(insert).add(commit);
    const auto out = co_await c.run(run, soon());
    EXPECT_TRUE(out.ok());
    EXPECT_TRUE(out.noticed);
    if (out.ok()) {
      EXPECT_EQ(out.answers[2].tag(), "COMMIT");
    }
  });
}

}  // namespace
}  // namespace recibo::postgres::connection_end_cases
