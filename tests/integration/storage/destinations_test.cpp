// What the replicas agree on about a destination, on a real PostgreSQL: who has the probe, how long it is left alone, and since
// when nothing was taken (R21, decision 26).
#include "recibo/storage/destinations.hpp"

#include "integration/storage/outbox_fixture.hpp"
#include "support/sessions.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace recibo::storage {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::soon;
using next = attempt_outcome::next;

class Destinations : public outbox_fixture {};

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
