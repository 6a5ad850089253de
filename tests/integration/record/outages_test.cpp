// Timers and outages on a real PostgreSQL: nothing fires while nobody listens, and what runs meanwhile is put off (R44).
#include "integration/record/timers_bench.hpp"

namespace recibo::test {
namespace {

class Outages : public Timers {};

TEST_F(Outages, NothingFiresWhileNobodyIsReady) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  run_out();
  for (const auto* alive : {"NULL", "now() - interval '11 seconds'", "now() + interval '11 seconds'"}) {
    db.sql(std::string("UPDATE recibo.intake SET alive_at = ") + alive);
    EXPECT_EQ(work.one(work.due("r-1"))->detail, "");
  }
  EXPECT_EQ(state(), "accepted");
  ready();
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_fired);
}

TEST_F(Outages, AnOutagePutsOffOnceAndTheNextOneAgain) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  run_out();
  db.sql("UPDATE recibo.timers SET set_at = now() - interval '30 minutes'");
  db.sql("INSERT INTO recibo.downtimes VALUES (now() - interval '10 minutes', now() - interval '1 minute')");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(minutes_left(), "14") << "nine of the outage, and five until the provider sends again";
  pass("15 minutes");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_fired) << "by the same outage no second time";
  EXPECT_NE(db.sql("SELECT reason FROM recibo.transitions ORDER BY sequence DESC LIMIT 1").find(", put off until "),
            std::string::npos);
}

TEST_F(Outages, OneThatBeginsWithinTheGapOfTheOneBeforeIsOnePauseWithIt) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  db.sql("UPDATE recibo.timers SET set_at = now() - interval '30 minutes', due_at = now() - interval '1 minute'");
  db.sql("INSERT INTO recibo.downtimes VALUES (now() - interval '2 minutes', now() - interval '10 seconds')");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  pass("7 minutes");
  // What was sent again after the first one until 130 s ago is counted already.
  db.sql("INSERT INTO recibo.downtimes VALUES (now() - interval '6 minutes', now() - interval '280 seconds')");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(db.sql("SELECT round(extract(epoch FROM due_at - now()) / 20) FROM recibo.timers"), "4") << "80 s, give or take";
}

TEST_F(Outages, AnOutageThatWasNotedWhileTheClockWasWrongPutsOffNothing) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  run_out();
  db.sql("UPDATE recibo.timers SET set_at = now() - interval '30 minutes'");
  db.sql("INSERT INTO recibo.downtimes VALUES (now() - interval '10 minutes', now() + interval '6 hours')");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_fired);
}

TEST_F(Outages, AnOutageOfAProviderStopsItsOwnLimitsAlone) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  ASSERT_TRUE(work.one(work.registration("r-2", "own")));
  ASSERT_TRUE(work.one(work.event("r-2", "submitted")));
  const auto ran_out = [&] {
    run_out();
    db.sql("UPDATE recibo.timers SET set_at = now() - interval '30 minutes'");
  };
  ran_out();
  db.sql(
      "INSERT INTO recibo.provider_downtimes (provider, cause, began_at, known_until) VALUES ('p1', 'silence', now() - "
      "interval '10 minutes', now() + interval '1 hour')");
  EXPECT_EQ(work.one(work.due("r-2"))->detail, record::timer_fired) << "another provider's";
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(minutes_left(), "10") << "what was left when it began";
  ran_out();
  db.sql("UPDATE recibo.provider_downtimes SET ended_at = now() - interval '1 minute'");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(minutes_left(), "14") << "nine of the outage, and five until it sends again";
  ran_out();
  db.sql("UPDATE recibo.provider_downtimes SET ended_at = NULL, known_until = now() - interval '9 minutes'");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(minutes_left(), "6") << "one that was known, and five";
  ran_out();
  db.sql("UPDATE recibo.provider_downtimes SET known_until = began_at + interval '30 seconds'");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_fired) << "seconds are no outage";
}

TEST_F(Outages, AnOutageOfAProviderThatWasNotedWhileTheClockWasWrongPutsOffNothing) {
  timed_work work(db);
  for (const auto* row : {"now() - interval '10 minutes', now() + interval '1 day', now() + interval '6 hours'",
                          "now() + interval '6 hours', now() + interval '1 day', NULL"}) {
    const auto id = std::string("r-") + row;
    ASSERT_TRUE(work.one(work.registration(id)));
    run_out();
    db.sql("UPDATE recibo.timers SET set_at = now() - interval '30 minutes'");
    db.sql("INSERT INTO recibo.provider_downtimes (provider, cause, began_at, known_until, ended_at) VALUES ('p1', 'silence', " +
           std::string(row) + ")");
    EXPECT_EQ(work.one(work.due(id))->detail, record::timer_fired) << row;
  }
}

TEST_F(Outages, PutOffAndMovedInOneBatchIsMoved) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  run_out();
  db.sql("UPDATE recibo.timers SET set_at = now() - interval '30 minutes'");
  db.sql("INSERT INTO recibo.downtimes VALUES (now() - interval '10 minutes', now() - interval '1 minute')");
  std::vector<record::work> both;
  both.push_back(work.due("r-1"));
  both.push_back(work.callback("r-1", "k-1", "processing"));
  for (const auto& o : work.all(std::move(both))) EXPECT_TRUE(o) << o.error().detail;
  EXPECT_EQ(timers(), "limit:stuck");
  EXPECT_EQ(minutes_left(), "60");
}

TEST_F(Outages, APassCountsOutagesSinceTheStateWasEntered) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  db.sql("DELETE FROM recibo.timers");
  db.sql("UPDATE recibo.operations SET state_at = now() - interval '31 minutes'");
  db.sql("INSERT INTO recibo.downtimes VALUES (now() - interval '10 minutes', now() - interval '1 minute')");
  EXPECT_EQ(repair(work).timers, 1);
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(minutes_left(), "13") << "nine of the outage, and five until the provider sends again";
}

TEST_F(Outages, AnotherVersionOfTheWorkflowForgetsNoOutage) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  db.sql("UPDATE recibo.operations SET state_at = now() - interval '31 minutes'");
  db.sql("INSERT INTO recibo.downtimes VALUES (now() - interval '10 minutes', now() - interval '1 minute')");
  record::workflow_change change;
  change.settings = timed_settings("2h");
  change.request_id = "r-1";
  change.to = change.settings->workflows.at("fixture");
  change.actor = "ops";
  change.reason = "another limit elsewhere";
  ASSERT_TRUE(work.one(std::move(change)));
  EXPECT_EQ(timers(), "limit:overdue");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(minutes_left(), "13") << "nine of the outage, and five until the provider sends again";
}

}  // namespace
}  // namespace recibo::test
