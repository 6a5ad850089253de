// Timers on a real PostgreSQL: set and ended with each move, and fired once whoever tries (R22).
#include "integration/record/timers_bench.hpp"
#include "recibo/config/snapshot.hpp"
#include "recibo/process/sweep.hpp"

namespace recibo::test {
namespace {

TEST_F(Timers, EachMoveBringsItsOwn) {
  timed_work work(db);
  auto made = work.registration("r-1");
  made.deadline = now() + std::chrono::hours(5);
  ASSERT_TRUE(work.one(std::move(made)));
  EXPECT_EQ(timers(), "deadline:overdue, limit:overdue");
  EXPECT_EQ(minutes_left(), "30");
  ASSERT_TRUE(work.one(work.callback("r-1", "k-1", "processing")));
  EXPECT_EQ(timers(), "deadline:overdue, limit:stuck");
  EXPECT_EQ(minutes_left(), "60");
  ASSERT_TRUE(work.one(work.callback("r-1", "k-1", "processing")));
  ASSERT_TRUE(work.one(work.callback("r-1", "k-2", "succeeded")));
  EXPECT_EQ(timers(), "");
}

TEST_F(Timers, WhatComesWithTheRegistrationLeavesTheLastStateToTime) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.callback("r-1", "k-1", "processing")));
  ASSERT_TRUE(work.one(work.registration("r-1")));
  EXPECT_EQ(timers(), "limit:stuck");
  ASSERT_TRUE(work.one(work.callback("r-2", "k-1", "succeeded")));
  ASSERT_TRUE(work.one(work.registration("r-2")));
  EXPECT_EQ(timers(), "limit:stuck");
}

TEST_F(Timers, ManyAtOnceOnTwoRecordersAreOneEffect) {
  timed_work one(db), two(db);
  ASSERT_TRUE(one.one(one.registration("r-1")));
  run_out();
  std::vector<record::work> many, more;
  for (int i = 0; i < 40; ++i) {
    many.push_back(one.due("r-1"));
    more.push_back(two.due("r-1"));
  }
  int fired = 0;
  for (auto* w : {&one, &two})
    for (const auto& o : w->all(w == &one ? std::move(many) : std::move(more)))
      if (o && o->detail == record::timer_fired) ++fired;
  EXPECT_EQ(fired, 1);
  EXPECT_EQ(state(), "unknown");
  EXPECT_EQ(moves(), "1");
  EXPECT_EQ(timers(), "");
}

TEST_F(Timers, NotBeforeItIsDueNorTwice) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  EXPECT_EQ(work.one(work.due("r-1"))->detail, "");
  run_out();
  EXPECT_EQ(work.one(work.due("r-1", transition::timer_kind::deadline))->detail, "") << "there is none";
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_fired);
  EXPECT_EQ(work.one(work.due("r-1"))->detail, "");
  EXPECT_FALSE(work.one(work.due("nobody")));
  EXPECT_EQ(moves(), "1");
}

TEST_F(Timers, ACallbackAndTheClockInOneBatchHaveOneOrder) {
  timed_work work(db);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(work.one(work.registration("r-" + std::to_string(i))));
  run_out();
  std::vector<record::work> both;
  for (int i = 0; i < 20; ++i) {
    const auto id = "r-" + std::to_string(i);
    if (i % 2 == 0) both.push_back(work.callback(id, "k", "processing"));
    both.push_back(work.due(id));
    if (i % 2 == 1) both.push_back(work.callback(id, "k", "succeeded"));
  }
  for (const auto& o : work.all(std::move(both))) EXPECT_TRUE(o) << o.error().detail;
  // Where the callback was first its state has a new limit; where the clock was, the callback is news all the same.
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.operations WHERE state = 'processing'"), "10");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.operations WHERE state = 'completed'"), "10");
  EXPECT_EQ(moves(), "10");
}

TEST_F(Timers, ADeadlineWithoutAnAnswerIsOneReviewWhateverElseRunsOut) {
  timed_work work(db);
  auto made = work.registration("r-1");
  made.deadline = now() + std::chrono::hours(5);
  ASSERT_TRUE(work.one(std::move(made)));
  ASSERT_TRUE(work.one(work.event("r-1", "submitted")));
  run_out("kind = 'deadline'");
  EXPECT_EQ(work.one(work.due("r-1", transition::timer_kind::deadline))->detail, record::timer_reviewed);
  EXPECT_EQ(work.one(work.due("r-1", transition::timer_kind::deadline))->detail, "");
  EXPECT_EQ(timers(), "deadline:overdue fired, limit:stuck");
  EXPECT_EQ(db.sql("SELECT kind || ' ' || owner || ' ' || state || ' ' || count FROM recibo.reviews"),
            "overdue ops processing 1");
  EXPECT_EQ(db.sql("SELECT kind FROM recibo.audit ORDER BY sequence DESC LIMIT 1"), "review");
  EXPECT_EQ(db.sql("SELECT review_open FROM recibo.operations"), "t");
  EXPECT_EQ(db.sql("SELECT type FROM recibo.notifications ORDER BY sequence DESC LIMIT 1"), "operation.review_opened");
  run_out("kind = 'limit'");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_fired);
  EXPECT_EQ(state(), "failed");
}

TEST_F(Timers, OneFromBeforeTheClockIsJudgedByTheConfiguration) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  db.sql("UPDATE recibo.timers SET event = NULL, due_at = now()");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(timers(), "limit:overdue");
  EXPECT_EQ(minutes_left(), "30");
  // Left from an earlier state, by a binary that knew no timers.
  db.sql("UPDATE recibo.timers SET event = 'stuck', due_at = now(), version = 7");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(timers(), "limit:overdue");
}

TEST_F(Timers, WhatABinaryWithoutTimersLeftGetsThemByAPass) {
  timed_work work(db);
  auto wanted = work.registration("r-1");
  wanted.deadline = now() + std::chrono::hours(5);
  ASSERT_TRUE(work.one(std::move(wanted)));
  ASSERT_TRUE(work.one(work.registration("own-accepted", "own")));
  ASSERT_TRUE(work.one(work.registration("own-unknown", "own")));
  ASSERT_TRUE(work.one(work.registration("ended")));
  ASSERT_TRUE(work.one(work.callback("ended", "k-1", "succeeded")));
  db.sql("DELETE FROM recibo.timers");
  db.sql("UPDATE recibo.operations SET state = 'unknown' WHERE request_id = 'own-unknown'");
  db.sql("UPDATE recibo.operations SET state_at = now() - interval '20 minutes' WHERE request_id = 'r-1'");
  const auto of = [&](const std::string& id) {
    return db.sql(
        "SELECT coalesce(string_agg(t.kind || ':' || coalesce(t.event, '?'), ', ' ORDER BY t.kind), '') FROM recibo.timers t "
        "JOIN "
        "recibo.operations o ON o.id = t.operation WHERE o.request_id = '" +
        id + "'");
  };
  const auto done = repair(work);
  EXPECT_EQ(done.timers, 3);
  EXPECT_FALSE(done.more);
  EXPECT_EQ(of("r-1"), "deadline:overdue, limit:?");
  EXPECT_EQ(of("own-accepted"), "") << "it has none there: its provider says so";
  EXPECT_EQ(of("own-unknown"), "limit:?") << "the provider's alone";
  EXPECT_EQ(of("ended"), "");
  EXPECT_EQ(db.sql("SELECT round(extract(epoch FROM t.due_at - now()) / 60) FROM recibo.timers t JOIN recibo.operations o ON "
                   "o.id = t.operation WHERE o.request_id = 'r-1' AND t.kind = 'limit'"),
            "10")
      << "since the state was entered";
  EXPECT_EQ(repair(work).timers, 0) << "the next pass comes later";
  db.sql("UPDATE recibo.timer_repairs SET ended_at = now() - interval '2 hours'");
  EXPECT_EQ(repair(work).timers, 0) << "and finds nothing more";
  // What it set fires as if it had been there all along, and by what the table says.
  db.sql("UPDATE recibo.operations SET state_at = now() - interval '31 minutes' WHERE request_id = 'r-1'");
  run_out("kind = 'limit'");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_fired);
}

TEST_F(Timers, APassWaitsForNobody) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  ASSERT_TRUE(work.one(work.registration("r-2")));
  db.sql("DELETE FROM recibo.timers");
  session held(db);
  held.sql("BEGIN");
  held.sql("SELECT FROM recibo.operations WHERE request_id = 'r-1' FOR UPDATE");
  EXPECT_EQ(repair(work).timers, 1);
  held.sql("COMMIT");
  session looking(db);
  looking.sql("BEGIN");
  looking.sql("UPDATE recibo.timer_repairs SET ended_at = now() - interval '2 hours'");
  EXPECT_EQ(repair(work).timers, 0) << "another replica has the pass";
  looking.sql("COMMIT");
  EXPECT_EQ(repair(work).timers, 1);
}

TEST_F(Timers, ADeadlineThatHasPassedIsNotRaisedAgainAfterReopening) {
  timed_work work(db);
  for (const auto* id : {"passed", "ahead"}) {
    auto made = work.registration(id);
    made.deadline = now() + std::chrono::hours(5);
    ASSERT_TRUE(work.one(std::move(made)));
  }
  // It has been told once.
  db.sql(
      "UPDATE recibo.registrations SET deadline = now() - interval '1 minute' WHERE operation = (SELECT id FROM "
      "recibo.operations WHERE request_id = 'passed')");
  run_out("kind = 'deadline' AND operation = (SELECT id FROM recibo.operations WHERE request_id = 'passed')");
  EXPECT_EQ(work.one(work.due("passed", transition::timer_kind::deadline))->detail, record::timer_fired);
  const auto kind_of = [&](const std::string& id) {
    return db.sql(
        "SELECT string_agg(t.kind || CASE WHEN t.fired_at IS NULL THEN '' ELSE ' fired' END, ', ' ORDER BY t.kind) FROM "
        "recibo.timers t JOIN recibo.operations o ON o.id = t.operation WHERE o.request_id = '" +
        id + "'");
  };
  for (const auto* id : {"passed", "ahead"}) {
    ASSERT_TRUE(work.one(work.callback(id, "k", "succeeded")));
    auto again = work.event(id, "reopen");
    again.client.reset();
    again.who = transition::actor_kind::operator_;
    ASSERT_TRUE(work.one(std::move(again)));
  }
  EXPECT_EQ(kind_of("passed"), "deadline fired, limit");
  EXPECT_EQ(kind_of("ahead"), "deadline, limit");
  EXPECT_EQ(work.one(work.due("passed", transition::timer_kind::deadline))->detail, "");
  EXPECT_EQ(db.sql("SELECT string_agg(DISTINCT state, ',') FROM recibo.operations"), "processing");
}

TEST_F(Timers, HoweverManyOperationsAreHeldTheOthersRunOut) {
  timed_work work(db);
  constexpr int held_operations = 1'100, at_once = 100;  // more than are looked at in a round
  for (int i = 0; i < held_operations; i += at_once) {
    std::vector<record::work> some;
    for (int k = i; k < i + at_once; ++k) some.emplace_back(work.registration("held-" + std::to_string(k)));
    for (const auto& one : work.all(std::move(some))) ASSERT_TRUE(one);
  }
  ASSERT_TRUE(work.one(work.registration("free")));
  run_out();
  db.sql(
      "UPDATE recibo.timers SET due_at = due_at + interval '500 milliseconds' WHERE operation = (SELECT id FROM "
      "recibo.operations WHERE request_id = 'free')");
  session holder(db);
  holder.sql("BEGIN");
  holder.sql("SELECT FROM recibo.operations WHERE request_id <> 'free' FOR NO KEY UPDATE");
  postgres::pool pool(work.context.get_executor(), db.service_url(), 1);
  config::snapshot settings(work.settings);
  const process::record_function record = [&](record::work what, std::chrono::steady_clock::time_point until) {
    return work.recorder().record(std::move(what), until);
  };
  process::clock_round done;
  auto round = [&]() -> boost::asio::awaitable<void> { done = co_await process::fire_due(pool, settings, record); };
  work.run(round);
  EXPECT_EQ(done.fired, 1);
  EXPECT_EQ(done.failed, 0) << "nobody waits for what is held";
  EXPECT_EQ(db.sql("SELECT state FROM recibo.operations WHERE request_id = 'free'"), "unknown");
  holder.sql("COMMIT");
  work.run(round);
  EXPECT_GT(done.fired, 0);
}

TEST_F(Timers, RemindersGoOnBesideAReviewThatSomebodyHolds) {
  timed_work work(db);
  for (const auto* id : {"r-1", "r-2"}) {
    ASSERT_TRUE(work.one(work.registration(id)));
    ASSERT_TRUE(work.one(work.callback(id, "k-1", "succeeded")));
    ASSERT_TRUE(work.one(work.callback(id, "k-2", "failed")));
  }
  db.sql("UPDATE recibo.reviews SET due_at = now() - interval '1 second'");
  session held(db);
  held.sql("BEGIN");
  held.sql("SELECT FROM recibo.reviews WHERE operation = (SELECT id FROM recibo.operations WHERE request_id = 'r-1') FOR UPDATE");
  postgres::pool pool(work.context.get_executor(), db.service_url(), 1);
  config::snapshot settings(work.settings);
  const process::record_function record = [&](record::work what, std::chrono::steady_clock::time_point until) {
    return work.recorder().record(std::move(what), until);
  };
  process::reminder_round done;
  auto round = [&]() -> boost::asio::awaitable<void> { done = co_await process::remind_due(pool, settings, record); };
  work.run(round);
  EXPECT_EQ(done.reminded, 1);
  held.sql("COMMIT");
  work.run(round);
  EXPECT_EQ(done.reminded, 1);
  work.run(round);
  EXPECT_EQ(done.reminded, 0);
}

// Who resolves the review of a parked callback holds the review and may go on to the callback; the sweep comes from the callback.
TEST_F(Timers, TheSweepOfParkedCallbacksWaitsForNoReview) {
  timed_work work(db);
  for (const auto* id : {"early-1", "early-2"}) {
    ASSERT_TRUE(work.one(work.callback(id, "k", "processing")));
    record::parked_review old;
    old.settings = work.settings;
    old.parked = *parse_id<delivery_id>(db.sql(std::string("SELECT id FROM recibo.parked WHERE request_id = '") + id + "'"));
    ASSERT_EQ(work.one(std::move(old))->disposition, transition::disposition::review);
  }
  db.sql("UPDATE recibo.parked SET parked_at = now() - interval '2 hours'");
  session held(db);
  held.sql("BEGIN");
  held.sql("SET LOCAL lock_timeout = '5s'");
  held.sql("SELECT FROM recibo.reviews WHERE request_id = 'early-1' FOR NO KEY UPDATE");
  postgres::pool pool(work.context.get_executor(), db.service_url(), 1);
  config::snapshot settings(work.settings);
  process::swept done;
  auto sweep = [&]() -> boost::asio::awaitable<void> { done = co_await process::sweep_once(pool, settings); };
  work.run(sweep);
  EXPECT_EQ(done.parked, 1) << "the one whose review nobody holds";
  // What the holder goes on to was not waited for by anybody.
  held.sql("DELETE FROM recibo.parked WHERE request_id = 'early-1'");
  held.sql("ROLLBACK");
  work.run(sweep);
  EXPECT_EQ(done.parked, 1);
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.reviews WHERE status = 'open'"), "0");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.review_actions WHERE action = 'resolved'"), "2");
}

TEST_F(Timers, OneReminderOfAReview) {
  timed_work one(db), two(db);
  ASSERT_TRUE(one.one(one.registration("r-1")));
  ASSERT_TRUE(one.one(one.callback("r-1", "k-1", "succeeded")));
  ASSERT_TRUE(one.one(one.callback("r-1", "k-2", "failed")));
  record::review_due late;
  late.settings = one.settings;
  late.request_id = "r-1";
  late.review = *parse_id<review_id>(db.sql("SELECT id FROM recibo.reviews"));
  EXPECT_EQ(one.one(late)->detail, "") << "not before its age limit";
  db.sql("UPDATE recibo.reviews SET due_at = now() - interval '1 second'");
  int reminded = 0;
  for (auto* w : {&one, &two, &one})
    if (w->one(late)->detail == record::review_reminded) ++reminded;
  EXPECT_EQ(reminded, 1);
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.review_actions WHERE action = 'reminded' AND actor = 'clock'"), "1");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.notifications WHERE type = 'operation.review_overdue'"), "1");
}

}  // namespace
}  // namespace recibo::test
