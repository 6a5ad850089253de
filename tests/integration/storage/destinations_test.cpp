// What the replicas agree on about a destination, on a real PostgreSQL: who has the probe, how long it is left alone, and since
// when nothing was taken (R21, decision 26).
#include "recibo/storage/destinations.hpp"

#include "integration/storage/outbox_fixture.hpp"
#include "support/sessions.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace recibo::storage {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::soon;
using next = attempt_outcome::next;

class Destinations : public outbox_fixture {
 protected:
  void open(const std::string& ago, int openings = 1) {
    db.sql("DELETE FROM recibo.destinations");
    db.sql(
        "INSERT INTO recibo.destinations (name, breaker, breaker_since, retry_at, openings) VALUES ('ledger', 'open', now() - "
        "interval '" +
        ago + "', now(), " + std::to_string(openings) + ")");
  }
  // It failed once, so long ago, and is due again.
  void add_tried(int operation, const std::string& ago = "1 minute") {
    add(operation);
    db.sql("UPDATE recibo.notifications SET attempts = 1, next_attempt_at = now() - interval '1 second' WHERE operation = '" +
           key(operation) + "'");
    db.sql(
        "INSERT INTO recibo.notification_attempts (notification, attempt, destination, at, duration_ms, outcome) SELECT n.id, 1, "
        "'ledger', now() - interval '" +
        ago + "', 1, 'server_error' FROM recibo.notifications n WHERE n.operation = '" + key(operation) + "'");
  }
  // All steps. How many were put off, and in how many steps.
  std::pair<std::int64_t, int> spread(spread_rule rule, int limit = 100) {
    std::pair<std::int64_t, int> out;
    run([&](postgres::pool& pool) -> asio::awaitable<void> {
      for (std::optional<sys_micros> place = sys_micros{}; place && out.second < 20; ++out.second) {
        const auto step = co_await spread_retries(pool, "ledger", rule, *place, limit, soon());
        EXPECT_TRUE(step.has_value());
        if (!step) co_return;
        out.first += step->spread;
        if (step->spread > 0) rule.few = 0;
        place = step->next;
      }
    });
    return out;
  }
  std::string count(const std::string& which) { return db.sql("SELECT count(*) FROM recibo.notifications WHERE " + which); }
};

TEST_F(Destinations, WhatADestinationAskedForIsAddedToWhatWasDecided) {
  const auto leave = [&](std::chrono::milliseconds wait) {
    bool taken = false;
    run([&](postgres::pool& pool) -> asio::awaitable<void> {
      const auto left = co_await leave_alone(pool, "ledger", wait, soon());
      EXPECT_TRUE(left.has_value());
      taken = left && *left;
    });
    return taken;
  };
  const std::string waits = "breaker || ' ' || openings || ' ' || round(extract(epoch FROM retry_at - now()) / 60)";
  EXPECT_TRUE(leave(2min));
  EXPECT_EQ(destination(waits), "open 1 2") << "it asked while nothing was wrong";
  EXPECT_TRUE(leave(5min));
  EXPECT_EQ(destination(waits), "open 1 5") << "it is open already";
  EXPECT_TRUE(leave(1min));
  EXPECT_EQ(destination(waits), "open 1 5") << "never shorter";
  db.sql("UPDATE recibo.destinations SET breaker = 'half_open'");
  EXPECT_FALSE(leave(10min)) << "a probe is out";
  EXPECT_EQ(destination(waits), "half_open 1 5");
}

TEST_F(Destinations, AProbeIsNotUsedUpByNothing) {
  db.sql(
      "INSERT INTO recibo.destinations (name, breaker, breaker_since, retry_at, openings) VALUES ('ledger', 'open', now(), now() "
      "- interval '1 second', 3)");
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto nothing = co_await exchange_outbox(pool, "ledger", mine, {}, any(1, true), soon());
    EXPECT_TRUE(nothing && nothing->all.empty() && !nothing->probe_until);
    EXPECT_EQ(destination("retry_at <= now()"), "true") << "the next one may be tried at once";
    add(1);
    add(2);
    const auto probe = co_await exchange_outbox(pool, "ledger", mine, {}, any(1, true), soon());
    EXPECT_TRUE(probe && probe->all.size() == 1 && probe->probe_until);
    const auto second = co_await exchange_outbox(pool, "ledger", other, {}, any(1, true), soon());
    EXPECT_TRUE(second && second->all.empty() && !second->probe_until) << "exactly one";
    EXPECT_EQ(destination("breaker || ' ' || (retry_at > now())"), "half_open true");
    if (!probe || !probe->probe_until) co_return;
    // It could not be sent: somebody else may try another one.
    const auto stranger = co_await give_back_probe(pool, "ledger", *probe->probe_until - 1s, soon());
    EXPECT_TRUE(stranger.has_value());
    EXPECT_EQ(destination("retry_at > now()"), "true") << "that was another probe";
    const auto back = co_await give_back_probe(pool, "ledger", *probe->probe_until, soon());
    EXPECT_TRUE(back.has_value());
    const auto third = co_await exchange_outbox(pool, "ledger", other, {}, any(1, true), soon());
    EXPECT_TRUE(third && third->all.size() == 1 && third->probe_until);
  });
  EXPECT_EQ(destination("openings"), "3");
}

TEST_F(Destinations, AProbeThatMeetsOnlyWhatIsHeldIsNotUsedUp) {
  db.sql("INSERT INTO recibo.destinations (name, breaker, breaker_since, retry_at) VALUES ('ledger', 'half_open', now(), now())");
  add(1, 1, "dead");
  add(1, 2);
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto none = co_await exchange_outbox(pool, "ledger", mine, {}, any(1, true), soon());
    EXPECT_TRUE(none && none->all.empty() && !none->probe_until);
  });
  EXPECT_EQ(of(1, "status", 2), "held");
  EXPECT_EQ(destination("retry_at <= now()"), "true");
}

// One that fails whatever the destination does is due at nearly each probe.
TEST_F(Destinations, AfterAProbeInVainAnotherHasItsTurn) {
  add_tried(1);
  add(2);
  add(3);
  const auto probed = [&](int openings) {
    std::string who;
    open("1 minute", openings);
    db.sql("UPDATE recibo.notifications SET lease_until = NULL, leased_by = NULL");
    db.sql("UPDATE recibo.notifications SET next_attempt_at = now() - interval '1 second' WHERE next_attempt_at IS NOT NULL");
    run([&](postgres::pool& pool) -> asio::awaitable<void> {
      const auto probe = co_await exchange_outbox(pool, "ledger", mine, {}, any(1, true), soon());
      EXPECT_TRUE(probe && probe->all.size() == 1 && probe->probe_until);
      if (!probe || probe->all.size() != 1) co_return;
      who = to_string(probe->all.front().operation);
    });
    return who;
  };
  EXPECT_EQ(probed(1), key(1)) << "what was tried goes first";
  EXPECT_EQ(probed(2), key(2)) << "and then what was not";
  // That one is back at the beginning: nobody has tried it.
  db.sql("UPDATE recibo.notifications SET attempts = 0 WHERE operation = '" + key(2) + "'");
  db.sql("UPDATE recibo.notifications SET status = 'discarded' WHERE operation IN ('" + key(2) + "', '" + key(3) + "')");
  EXPECT_EQ(probed(2), key(1)) << "there is nothing else";
  // Of several that were tried it is not always the same one.
  for (int i = 4; i <= 8; ++i) add_tried(i);
  std::set<std::string> seen;
  for (int i = 0; i < 20; ++i) seen.insert(probed(3));
  EXPECT_GT(seen.size(), 1u);
}

TEST_F(Destinations, AProbeFindsWhatWasTriedBehindABacklog) {
  db.sql(
      "INSERT INTO recibo.notifications (id, operation, sequence, destination, type, created_at) SELECT gen_random_uuid(), "
      "gen_random_uuid(), 1, 'ledger', 'operation.accepted', now() - interval '1 hour' FROM generate_series(1, 3000)");
  add_tried(1);
  open("1 minute");
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto probe = co_await exchange_outbox(pool, "ledger", mine, {}, any(1, true), soon());
    EXPECT_TRUE(probe && probe->all.size() == 1 && to_string(probe->all.front().operation) == key(1));
  });
}

TEST_F(Destinations, WhatCameDueWhileTheBreakerWasOpenIsSpread) {
  for (int i = 1; i <= 30; ++i) add_tried(i);
  for (int i = 31; i <= 40; ++i) add(i);
  const spread_rule rule{10s, 6h, 10};
  open("40 seconds");
  EXPECT_EQ(spread(rule, 20), (std::pair<std::int64_t, int>(30, 2)));
  const std::string put_off = "attempts = 1 AND next_attempt_at > now()";
  EXPECT_EQ(count(put_off + " AND next_attempt_at <= now() + interval '10 seconds'"), "30") << "its interval at most";
  EXPECT_GE(std::stoi(count(put_off + " AND next_attempt_at > now() + interval '4 seconds'")), 10);
  EXPECT_EQ(count("attempts = 0 AND next_attempt_at IS NULL"), "10");
  EXPECT_EQ(spread(rule).first, 0) << "none of them is due";
  // A minute at most, and what the breaker was open.
  for (const auto& [ago, most] : {std::pair("3 hours", "60 seconds"), std::pair("8 seconds", "8 seconds")}) {
    db.sql("UPDATE recibo.notifications SET attempts = 1, next_attempt_at = now() WHERE attempts = 1");
    db.sql("UPDATE recibo.notification_attempts SET at = now()");
    open(ago);
    EXPECT_EQ(spread({1h, 6h, 10}).first, 30);
    EXPECT_EQ(count(put_off + " AND next_attempt_at <= now() + interval '" + most + "' + interval '1 second'"), "30") << ago;
  }
}

TEST_F(Destinations, WhatFailedBeforeTheTroubleIsPutOffByNoFlapping) {
  for (int i = 1; i <= 12; ++i) add_tried(i, "3 minutes");
  open("1 minute");
  EXPECT_EQ(spread({1h, 6h, 10}).first, 0);
  open("150 seconds");
  EXPECT_EQ(spread({1h, 6h, 10}).first, 12) << "these had a part in it";
  EXPECT_EQ(count("next_attempt_at > now() AND next_attempt_at <= now() + interval '1 minute'"), "12");
}

TEST_F(Destinations, FewAreNotSpread) {
  for (int i = 1; i <= 10; ++i) add_tried(i);
  open("2 minutes");
  EXPECT_EQ(spread({1h, 6h, 10}).first, 0);
  add_tried(11);
  EXPECT_EQ(spread({1h, 6h, 10}).first, 11);
}

// Somebody else is at them: what is spread waits for nobody, and neither does the closing.
TEST_F(Destinations, ABreakerClosesWhateverIsDue) {
  for (int i = 1; i <= 20; ++i) add_tried(i);
  open("1 minute");
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    auto opened = co_await postgres::connection::open(context.get_executor(), db.service_url(), soon());
    EXPECT_TRUE(opened.has_value());
    if (!opened) co_return;
    const postgres::statement begin{"", "BEGIN", {}}, commit{"", "COMMIT", {}};
    const postgres::statement hold{"", "SELECT 1 FROM recibo.notifications WHERE operation = '" + key(1) + "' FOR UPDATE", {}};
    postgres::pipeline holding, ending;
    holding.add(begin).add(hold);
    ending.add(commit);
    const auto held = co_await (*opened)->run(holding, soon());
    EXPECT_TRUE(held.ok());
    postgres::pool pool(context.get_executor(), db.service_url(), 1);
    const spread_rule rule{1h, 6h, 10};
    const auto step = co_await spread_retries(pool, "ledger", rule, sys_micros{}, 100, soon(5s));
    EXPECT_TRUE(step && step->spread == 19 && !step->next);
    const auto closed = co_await close_breaker(pool, "ledger", soon(5s));
    EXPECT_TRUE(closed.has_value());
    const auto ended = co_await (*opened)->run(ending, soon());
    EXPECT_TRUE(ended.ok());
  };
  test::run_coro(context, all);
  EXPECT_EQ(destination("breaker || ' ' || openings || ' ' || (breaker_since IS NULL)"), "closed 0 true");
}

TEST_F(Destinations, HowLongNothingWasTakenIsNotedWithTheOutcome) {
  for (int i = 1; i <= 4; ++i) add(i);
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto claimed = co_await exchange_outbox(pool, "ledger", mine, {}, any(), soon());
    EXPECT_TRUE(claimed && claimed->all.size() == 4);
    if (!claimed || claimed->all.size() != 4) co_return;
    const auto settle = [&](std::vector<attempt_outcome> done) -> asio::awaitable<void> {
      const auto settled = co_await exchange_outbox(pool, "ledger", mine, std::move(done), std::nullopt, soon());
      EXPECT_TRUE(settled.has_value());
    };
    std::vector<attempt_outcome> done = {outcome(claimed->all[0], next::returned, std::nullopt)};
    co_await settle(done);
    EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.destinations"), "0") << "what was not sent says nothing";
    done = {outcome(claimed->all[1], next::retry, false)};
    co_await settle(done);
    EXPECT_EQ(destination("failing_since > now() - interval '1 minute'"), "true");
    db.sql("UPDATE recibo.destinations SET failing_since = now() - interval '2 days'");
    const auto soon_enough = co_await pause_failing(pool, "ledger", 72h, soon());
    EXPECT_TRUE(soon_enough && !*soon_enough);
    done = {outcome(claimed->all[2], next::retry, false)};
    co_await settle(done);
    EXPECT_EQ(destination("failing_since < now() - interval '1 day'"), "true") << "the first of them counts";
    done = {outcome(claimed->all[3], next::delivered, true), outcome(claimed->all[2], next::retry, false)};
    co_await settle(done);
    EXPECT_EQ(destination("failing_since"), "-");
    // Who still believes that it fails asks too late.
    const auto paused = co_await pause_failing(pool, "ledger", 1s, soon());
    EXPECT_TRUE(paused && !*paused);
    db.sql("UPDATE recibo.destinations SET failing_since = now() - interval '4 days'");
    const auto now_paused = co_await pause_failing(pool, "ledger", 72h, soon());
    EXPECT_TRUE(now_paused && *now_paused);
  });
  EXPECT_EQ(destination("paused_by || ' ' || paused_reason"), "recibo failing");
}

}  // namespace
}  // namespace recibo::storage
