// What tests of timers share: a workflow whose states run out, its clock's work, and what there is to see of it afterwards.
#pragma once

#include "integration/record/bench_of_work.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/process/limits.hpp"
#include "support/sessions.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

namespace recibo::test {

// With this limit of the state `processing`; another one makes another version of the workflow.
inline std::shared_ptr<const config::settings> timed_settings(const std::string& stuck_after = "1h") {
  const auto read = config::load_text("timed",
                                      R"(
providers:
  p1:
    verify: {scheme: github, secrets: [a-secret-of-a-provider]}
    extract: {request_id: /request_id, idempotency_key: /event_id, event: /status}
    events: {processing: progress, succeeded: complete, failed: fail}
    workflow: fixture
    parking: {expire: 1h}
  own:
    verify: {scheme: github, secrets: [a-secret-of-a-provider]}
    extract: {request_id: /request_id, idempotency_key: /event_id, event: /status}
    events: {processing: progress, succeeded: complete, failed: fail}
    workflow: fixture
    limits: {accepted: none, unknown: {after: 2h, event: give_up}}
workflows:
  fixture:
    initial: accepted
    states:
      accepted: {limit: {after: 30m, event: overdue}, owner: ops}
      processing: {limit: {after: )" + stuck_after +
                                          R"(, event: stuck}, owner: ops}
      unknown: {limit: none, owner: ops}
      completed: {terminal: true, done: true}
      failed: {terminal: true}
    transitions:
      - {from: accepted, event: submitted, to: processing, by: client}
      - {from: accepted, event: overdue, to: unknown, by: clock}
      - {from: processing, event: stuck, to: failed, by: clock}
      - {from: unknown, event: give_up, to: failed, by: clock}
      - {from: completed, event: reopen, to: processing, by: operator}
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
  // Beside the recorder, which goes on.
  void run(const std::function<boost::asio::awaitable<void>()>& what) {
    bool done = false;
    boost::asio::co_spawn(context, what, [&](const std::exception_ptr& e) {
      EXPECT_FALSE(e);
      done = true;
    });
    context.restart();
    while (!done && context.run_one_until(soon(std::chrono::seconds(60))) != 0) {
    }
    EXPECT_TRUE(done);
  }

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
  // Time passes for what is set and what was out.
  void pass(const std::string& interval) {
    const auto before = " - interval '" + interval + "'";
    db.sql("UPDATE recibo.timers SET set_at = set_at" + before + ", due_at = due_at" + before + ", was_due_at = was_due_at" +
           before);
    db.sql("UPDATE recibo.downtimes SET began_at = began_at" + before + ", ended_at = ended_at" + before);
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
  // A step of the pass that looks for timers which are missing.
  process::repaired repair(timed_work& work) {
    postgres::pool pool(work.context.get_executor(), db.service_url(), 1);
    process::repaired out;
    auto step = [&]() -> boost::asio::awaitable<void> {
      const auto done =
          co_await process::repair_timers(pool, *work.settings, std::chrono::steady_clock::now() + std::chrono::seconds(10));
      EXPECT_TRUE(done) << done.error().detail;
      if (done) out = *done;
    };
    work.run(step);
    return out;
  }
  std::string minutes_left() {
    return db.sql("SELECT round(extract(epoch FROM due_at - now()) / 60) FROM recibo.timers WHERE kind = 'limit'");
  }
  database db;
};

}  // namespace recibo::test
