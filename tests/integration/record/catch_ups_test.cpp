// What is asked after an outage, on a real PostgreSQL: the newest first, all that is open, and once more where it begins anew
// (R44).
#include "integration/record/bench_of_work.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/look_ups.hpp"
#include "support/sessions.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace recibo::test {
namespace {

class CatchUps : public ::testing::Test {
 protected:
  void with_pool(const std::function<boost::asio::awaitable<void>(postgres::pool&)>& what) {
    boost::asio::io_context context;
    const auto all = [&]() -> boost::asio::awaitable<void> {
      postgres::pool pool(context.get_executor(), db.service_url(), 1);
      co_await what(pool);
    };
    run_coro(context, all);
  }
  void start(sys_micros since) {
    with_pool([since](postgres::pool& pool) -> boost::asio::awaitable<void> {
      const auto id = co_await storage::start_catch_up(pool, "p1", "ops", since, soon());
      EXPECT_TRUE(id) << id.error().detail;
    });
  }
  // Whether there is more.
  bool step(int backlog = 100) {
    bool more = false;
    with_pool([&more, backlog](postgres::pool& pool) -> boost::asio::awaitable<void> {
      const auto done = co_await storage::advance_catch_up(pool, "p1", backlog, soon());
      EXPECT_TRUE(done) << done.error().detail;
      more = done && *done && **done;
    });
    return more;
  }
  // In the order in which they are asked.
  std::string asked(const std::string& which = "true") {
    return db.sql(
        "SELECT coalesce(string_agg(o.request_id, ' ' ORDER BY l.id), '') FROM recibo.look_ups l JOIN "
        "recibo.operations o ON o.id = l.operation WHERE " +
        which);
  }
  database db;
};

TEST_F(CatchUps, TheNewestFirstAndAllThatIsOpen) {
  bench_of_work work(db);
  for (const auto* id : {"r-1", "r-2", "r-3", "r-4"}) ASSERT_TRUE(work.one(work.registration(id)));
  ASSERT_TRUE(work.one(work.registration("of-another", "p2")));
  ASSERT_TRUE(work.one(work.registration("r-5")));
  ASSERT_TRUE(work.one(work.callback("r-3", "k-1", "succeeded")));
  start(sys_micros{});
  EXPECT_FALSE(step());
  EXPECT_EQ(asked(), "r-5 r-4 r-2 r-1");
  EXPECT_EQ(db.sql("SELECT asked || ' ' || (listed_at IS NOT NULL) FROM recibo.catch_ups"), "4 true");
}

TEST_F(CatchUps, NotWhatIsOlderThanWasWanted) {
  bench_of_work work(db);
  auto old = work.registration("old");
  old.id = make_id<operation_id>(now() - std::chrono::hours(2));
  ASSERT_TRUE(work.one(std::move(old)));
  ASSERT_TRUE(work.one(work.registration("new")));
  start(now() - std::chrono::hours(1));
  EXPECT_FALSE(step());
  EXPECT_EQ(asked(), "new");
}

TEST_F(CatchUps, OneThatIsWantedWhileItListsBeginsAnewWithTheNewest) {
  bench_of_work work(db);
  for (const auto* id : {"r-1", "r-2"}) ASSERT_TRUE(work.one(work.registration(id)));
  start(sys_micros{});
  EXPECT_FALSE(step(0)) << "while so many wait nothing is listed";
  EXPECT_EQ(asked(), "");
  db.sql("UPDATE recibo.catch_ups SET below = (SELECT id FROM recibo.operations WHERE request_id = 'r-2')");
  ASSERT_TRUE(work.one(work.registration("r-3")));
  start(now());
  EXPECT_TRUE(step());
  EXPECT_EQ(asked(), "r-3 r-2") << "down to where it was";
  EXPECT_FALSE(step());
  EXPECT_EQ(asked(), "r-3 r-2 r-1") << "and where it was it goes on";
  EXPECT_EQ(db.sql("SELECT count(*) || ' ' || min(extract(epoch FROM since))::int FROM recibo.catch_ups"), "1 0");
}

TEST_F(CatchUps, OneThatBeginsAnewAgainAndAgainReachesTheOldest) {
  bench_of_work work(db);
  for (const auto* id : {"r-1", "r-2", "r-3"}) ASSERT_TRUE(work.one(work.registration(id)));
  start(sys_micros{});
  db.sql("UPDATE recibo.catch_ups SET below = (SELECT id FROM recibo.operations WHERE request_id = 'r-3')");
  start(now());
  EXPECT_TRUE(step());
  EXPECT_EQ(asked(), "r-3");
  ASSERT_TRUE(work.one(work.registration("r-4")));
  start(now());
  EXPECT_TRUE(step()) << "what is new has not been asked about yet";
  EXPECT_EQ(asked(), "r-3 r-2 r-1") << "the walk before has its turn";
  EXPECT_FALSE(step());
  EXPECT_EQ(asked("times = 1"), "r-2 r-1 r-4");
  EXPECT_EQ(asked("times = 2"), "r-3") << "the second time it was news again";
  EXPECT_EQ(db.sql("SELECT count(*) || ' ' || bool_and(listed_at IS NOT NULL) FROM recibo.catch_ups"), "1 true");
}

TEST_F(CatchUps, AWalkThatBeganAnewOutlastsTheOneBefore) {
  bench_of_work work(db);
  for (const auto* id : {"r-1", "r-2", "r-3"}) ASSERT_TRUE(work.one(work.registration(id)));
  start(sys_micros{});
  db.sql("UPDATE recibo.catch_ups SET below = (SELECT id FROM recibo.operations WHERE request_id = 'r-2'), tail_next = true");
  start(now());
  EXPECT_TRUE(step());
  EXPECT_EQ(asked(), "r-1") << "the old one, at its end";
  EXPECT_FALSE(step());
  EXPECT_EQ(asked(), "r-1 r-3 r-2");
}

TEST_F(CatchUps, AProviderThatDoesNotAnswerIsOutUntilItDoesAndThenAskedWhatItCouldNotSay) {
  const auto lane = [&](bool open, bool theirs = true) {
    with_pool([open, theirs](postgres::pool& pool) -> boost::asio::awaitable<void> {
      result<void> done;
      if (open) {
        done = co_await storage::open_look_up_breaker(pool, "p1", std::chrono::minutes(1), theirs, soon());
      } else {
        done = co_await storage::close_look_up_breaker(pool, "p1", {true, true}, soon());
      }
      EXPECT_TRUE(done) << done.error().detail;
    });
  };
  const auto known = [&] {
    return db.sql(
        "SELECT coalesce(string_agg(round(extract(epoch FROM coalesce(ended_at, known_until) - began_at) / 60) || CASE WHEN "
        "ended_at IS NULL THEN ' on' ELSE '' END, ', ' ORDER BY ended_at), '') FROM recibo.provider_downtimes");
  };
  const auto later = [&](const std::string& by) {
    db.sql("UPDATE recibo.provider_downtimes SET began_at = began_at - interval '" + by +
           "', known_until = known_until - interval '" + by + "' WHERE ended_at IS NULL");
  };
  db.sql("INSERT INTO recibo.look_up_lanes (provider, tokens, tokens_at) VALUES ('p1', 1, now())");
  lane(true, false);
  EXPECT_EQ(known(), "") << "it refuses us, and may be well";
  lane(false);
  lane(true);
  EXPECT_EQ(known(), "2 on");
  lane(false);
  EXPECT_EQ(known(), "") << "seconds leave no row";
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.catch_ups"), "0");
  lane(true);
  later("10 minutes");
  db.sql("UPDATE recibo.look_up_lanes SET breaker = 'half_open'");
  lane(true);
  EXPECT_EQ(known(), "12 on") << "a probe that failed: it is still out";
  lane(false);
  EXPECT_EQ(known(), "10");
  EXPECT_EQ(db.sql("SELECT provider || ' ' || started_by FROM recibo.catch_ups"), "p1 outage");
  EXPECT_EQ(db.sql("SELECT round(extract(epoch FROM now() - since) / 60) FROM recibo.event_lists"), "70");
}

}  // namespace
}  // namespace recibo::test
