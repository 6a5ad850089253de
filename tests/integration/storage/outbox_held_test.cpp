// The outbox beside rows that somebody holds locked: nothing else waits for them (R19, decision 33).
#include "integration/storage/outbox_fixture.hpp"
#include "support/sessions.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace recibo::storage {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::soon;
using next = attempt_outcome::next;

class OutboxHeld : public outbox_fixture {};

TEST_F(OutboxHeld, OneOutcomeThatCannotBeSettledHoldsUpNoOther) {
  add(1);
  add(2);
  add(1, 2);
  add(3);
  test::session holder(db);
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto claimed = co_await exchange_outbox(pool, "ledger", mine, {}, any(), soon());
    EXPECT_TRUE(claimed && claimed->all.size() == 3);
    if (!claimed) co_return;
    holder.sql("BEGIN");
    holder.sql("SELECT FROM recibo.notifications WHERE operation = '" + key(1) + "' AND sequence = 1 FOR UPDATE");
    std::vector<attempt_outcome> done;
    for (const auto& one : claimed->all) done.push_back(outcome(one, next::delivered, true));
    add(4);
    const auto settled = co_await exchange_outbox(pool, "ledger", mine, done, any(), soon(3s));
    EXPECT_TRUE(settled.has_value());
    if (!settled) co_return;
    EXPECT_EQ(settled->busy.size(), 1U);
    if (settled->busy.size() != 1) co_return;
    EXPECT_EQ(to_string(settled->busy[0].operation), key(1));
    EXPECT_EQ(settled->busy[0].sequence, 1);
    EXPECT_EQ(of(1, "status"), "pending");
    EXPECT_EQ(of(2, "status"), "delivered");
    EXPECT_EQ(of(3, "status"), "delivered");
    EXPECT_EQ(settled->all.size(), 1U) << "the later one of the operation waits";
    for (const auto& one : settled->all) EXPECT_EQ(to_string(one.operation), key(4));

    holder.sql("COMMIT");
    const auto rest = co_await exchange_outbox(pool, "ledger", mine, done, any(), soon());
    EXPECT_TRUE(rest.has_value());
    if (!rest) co_return;
    EXPECT_TRUE(rest->busy.empty()) << "what is settled is not busy";
    EXPECT_EQ(of(1, "status"), "delivered");
    EXPECT_EQ(rest->all.size(), 1U);
    for (const auto& one : rest->all) EXPECT_EQ(one.sequence, 2);
  });
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.notification_attempts"), "3") << "each attempt is on record once";
}

TEST_F(OutboxHeld, LeasesOfTheOthersAreExtended) {
  add(1);
  add(2);
  test::session holder(db);
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto claimed = co_await exchange_outbox(pool, "ledger", mine, {}, any(), soon());
    EXPECT_TRUE(claimed && claimed->all.size() == 2);
    if (!claimed) co_return;
    std::vector<held_claim> held;
    for (const auto& one : claimed->all) held.push_back({one.operation, one.sequence, one.attempts});
    holder.sql("BEGIN");
    holder.sql("SELECT FROM recibo.notifications WHERE operation = '" + key(1) + "' FOR UPDATE");
    const auto extended = co_await extend_leases(pool, "ledger", mine, held, 10min, soon(3s));
    EXPECT_TRUE(extended.has_value());
    EXPECT_EQ(of(1, "lease_until > now() + interval '5 minutes'"), "false");
    EXPECT_EQ(of(2, "lease_until > now() + interval '5 minutes'"), "true");
    holder.sql("COMMIT");
  });
}

TEST_F(OutboxHeld, WhatIsPutOffAndHeldHoldsUpNoEndOfTheOneBefore) {
  add(1);
  add(1, 2);
  db.sql("UPDATE recibo.notifications SET attempts = 1 WHERE sequence = 1");
  test::session holder(db);
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto claimed = co_await exchange_outbox(pool, "ledger", mine, {}, any(), soon());
    EXPECT_TRUE(claimed && claimed->all.size() == 1);
    if (!claimed || claimed->all.empty()) co_return;
    db.sql("UPDATE recibo.notifications SET behind = true, next_attempt_at = now() + interval '1 second' WHERE sequence = 2");
    holder.sql("BEGIN");
    holder.sql("SELECT FROM recibo.notifications WHERE sequence = 2 FOR UPDATE");
    std::vector<attempt_outcome> done;
    done.push_back(outcome(claimed->all[0], next::delivered, true));
    const auto settled = co_await exchange_outbox(pool, "ledger", mine, done, std::nullopt, soon(3s));
    EXPECT_TRUE(settled && settled->busy.empty());
    holder.sql("COMMIT");
  });
  EXPECT_EQ(of(1, "status"), "delivered");
}

}  // namespace
}  // namespace recibo::storage
