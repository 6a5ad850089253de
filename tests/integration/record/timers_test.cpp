// Timers on a real PostgreSQL: set and ended with each move, fired once whoever tries, and not while nobody listens (R22, R44).
#include "integration/record/bench_of_work.hpp"

#include <gtest/gtest.h>

namespace recibo::test {
namespace {

std::shared_ptr<const config::settings> timed_settings() {
  static const auto read = config::load_text("timed", R"(
providers:
  p1:
    verify: {scheme: github, secrets: [a-secret-of-a-provider]}
    extract: {request_id: /request_id, idempotency_key: /event_id, event: /status}
    events: {processing: progress, succeeded: complete, failed: fail}
    workflow: fixture
workflows:
  fixture:
    initial: accepted
    states:
      accepted: {limit: {after: 30m, event: overdue}, owner: ops}
      processing: {limit: {after: 1h, event: stuck}, owner: ops}
      unknown: {limit: none, owner: ops}
      completed: {terminal: true, done: true}
      failed: {terminal: true}
    transitions:
      - {from: accepted, event: submitted, to: processing, by: client}
      - {from: accepted, event: overdue, to: unknown, by: clock}
      - {from: processing, event: stuck, to: failed, by: clock}
      - {from: accepted, event: progress, to: processing, by: provider}
      - {from: [accepted, processing, unknown], event: complete, to: completed, by: provider}
      - {from: [accepted, processing, unknown], event: fail, to: failed, by: provider}
destinations:
  ledger: {url: 'https://ledger.example/hooks', secret: 'ledger-secret-ledger-secret-12', events: ['operation.*']}
)",
                                             ".");
  if (!read.settings) throw std::runtime_error(config::to_string(read.problems.front()));
  return read.settings;
}

class timed_work : public bench_of_work {
 public:
  explicit timed_work(const database& db) : bench_of_work(db) { settings = timed_settings(); }

  record::timer_due due(std::string request_id, transition::timer_kind kind = transition::timer_kind::limit) const {
    record::timer_due t;
    t.settings = settings;
    t.request_id = std::move(request_id);
    t.kind = kind;
    return t;
  }
};

class Timers : public ::testing::Test {
 protected:
  void SetUp() override { ready(); }
  void TearDown() override {
    EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.operations o WHERE o.chain_hash <> (SELECT hash FROM recibo.audit a WHERE "
                     "a.operation = o.id AND a.sequence = o.sequence)"),
              "0");
    EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.timers t JOIN recibo.operations o ON o.id = t.operation WHERE t.kind = 'limit' "
                     "AND t.version <> o.version"),
              "0")
        << "a limit is that of the present state";
    EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.timers t JOIN recibo.operations o ON o.id = t.operation WHERE o.state IN "
                     "('completed', 'failed')"),
              "0")
        << "nothing runs out for what has ended";
  }
  void ready() { db.sql("UPDATE recibo.intake SET alive_at = now()"); }
  void run_out(const std::string& which = "true") {
    db.sql("UPDATE recibo.timers SET due_at = now() - interval '1 second' WHERE " + which);
  }
  std::string state() { return db.sql("SELECT string_agg(DISTINCT state, ',' ORDER BY state) FROM recibo.operations"); }
  std::string moves(const std::string& by = "clock") {
    return db.sql("SELECT count(*) FROM recibo.transitions WHERE actor_kind = '" + by + "'");
  }
  std::string timers() {
    return db.sql(
        "SELECT coalesce(string_agg(kind || ':' || coalesce(event, '?') || CASE WHEN fired_at IS NULL THEN '' ELSE "
        "' fired' END, ', ' ORDER BY kind), '') FROM recibo.timers");
  }
  std::string minutes_left() {
    return db.sql("SELECT round(extract(epoch FROM due_at - now()) / 60) FROM recibo.timers WHERE kind = 'limit'");
  }
  database db;
};

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

TEST_F(Timers, NothingFiresWhileNobodyIsReady) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  run_out();
  for (const auto* alive : {"NULL", "now() - interval '11 seconds'"}) {
    db.sql(std::string("UPDATE recibo.intake SET alive_at = ") + alive);
    EXPECT_EQ(work.one(work.due("r-1"))->detail, "");
  }
  EXPECT_EQ(state(), "accepted");
  ready();
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_fired);
}

TEST_F(Timers, AnOutagePutsOffOnceAndTheNextOneAgain) {
  timed_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  run_out();
  db.sql("UPDATE recibo.timers SET set_at = now() - interval '30 minutes'");
  db.sql("INSERT INTO recibo.downtimes VALUES (now() - interval '10 minutes', now() - interval '1 minute')");
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_put_off);
  EXPECT_EQ(minutes_left(), "14") << "nine of the outage, and five until the provider sends again";
  run_out();
  EXPECT_EQ(work.one(work.due("r-1"))->detail, record::timer_fired) << "by the same outage no second time";
}

TEST_F(Timers, PutOffAndMovedInOneBatchIsMoved) {
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
