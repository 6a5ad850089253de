// The outbox on a real PostgreSQL: what a claim holds, what an outcome may change, and who waits for whom (R19-R21, decision 26).
#include "recibo/storage/outbox.hpp"

#include "integration/storage/outbox_fixture.hpp"
#include "recibo/storage/reads_outbox.hpp"
#include "recibo/storage/strays.hpp"
#include "support/sessions.hpp"

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

namespace recibo::storage {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::soon;
using next = attempt_outcome::next;

class Outbox : public outbox_fixture {};

TEST_F(Outbox, OnlyWhatIsInHandIsExtended) {
  add(1);
  add(2);
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto first = co_await exchange_outbox(pool, "ledger", mine, {}, any(1), soon());
    // The answer to this one never came: nobody has it in hand.
    const auto lost = co_await exchange_outbox(pool, "ledger", mine, {}, any(1), soon());
    EXPECT_TRUE(first && first->all.size() == 1 && lost && lost->all.size() == 1);
    if (!first || !lost) co_return;
    std::vector<held_claim> held;
    held.push_back({first->all[0].operation, first->all[0].sequence, first->all[0].attempts});
    const auto extended = co_await extend_leases(pool, "ledger", mine, held, 10min, soon());
    EXPECT_TRUE(extended.has_value());
    // Neither one that another attempt has taken since.
    held[0].attempt += 1;
    const auto late = co_await extend_leases(pool, "ledger", mine, held, 1h, soon());
    EXPECT_TRUE(late.has_value());
  });
  const std::string lasts = "lease_until > now() + interval '5 minutes' AND lease_until < now() + interval '20 minutes'";
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.notifications WHERE " + lasts), "1");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.notifications WHERE lease_until < now() + interval '1 minute'"), "1");
}

TEST_F(Outbox, WhatWasDiscardedMeanwhileStaysSo) {
  add(1);
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto claimed = co_await exchange_outbox(pool, "ledger", mine, {}, any(), soon());
    EXPECT_TRUE(claimed && claimed->all.size() == 1);
    if (!claimed || claimed->all.empty()) co_return;
    db.sql("UPDATE recibo.notifications SET lease_until = now() - interval '1 second'");
    outbox_action why;
    why.id = make_id<notification_action_id>(now());
    why.actor = "ops";
    why.reason = "not wanted";
    const auto discarded = co_await discard_notification(pool, claimed->all[0].id, why, soon());
    EXPECT_TRUE(discarded && *discarded);
    EXPECT_EQ(of(1, "status || ' ' || (lease_until IS NULL AND leased_by IS NULL)"), "discarded true");
    // As if the lease were still there: the status alone has to keep it.
    db.sql("UPDATE recibo.notifications SET leased_by = '" + to_string(mine) + "', lease_until = now()");
    std::vector<attempt_outcome> done;
    done.push_back(outcome(claimed->all[0], next::delivered, true));
    const auto settled = co_await exchange_outbox(pool, "ledger", mine, done, std::nullopt, soon());
    EXPECT_TRUE(settled.has_value());
  });
  EXPECT_EQ(of(1, "status || ' ' || (delivered_at IS NULL)"), "discarded true");
  EXPECT_EQ(db.sql("SELECT outcome FROM recibo.notification_attempts"), "delivered") << "the attempt is on record all the same";
}

TEST_F(Outbox, StraysAreFoundByTheIndex) {
  add(1);
  add(2, 1, "dead");
  add(3, 1, "held");
  for (int i = 4; i < 9; ++i) add(i);
  db.sql("UPDATE recibo.notifications SET destination = 'old' WHERE operation IN ('" + key(1) + "', '" + key(2) + "', '" +
         key(3) + "')");
  db.sql("UPDATE recibo.notifications SET created_at = now() - interval '2 hours' WHERE operation = '" + key(3) + "'");
  db.sql("UPDATE recibo.notifications SET destination = 'older' WHERE operation = '" + key(4) + "'");
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    std::vector<std::string> configured = {"ledger", "mail"};
    const auto found = co_await find_strays(pool, configured, soon());
    EXPECT_TRUE(found && found->size() == 2);
    if (!found || found->size() != 2) co_return;
    EXPECT_EQ((*found)[0].name, "old");
    EXPECT_EQ((*found)[0].waiting, 2);
    EXPECT_EQ((*found)[0].dead, 1);
    EXPECT_EQ((*found)[0].held_for, 2h);
    EXPECT_EQ((*found)[1].held_for, 0s);
    EXPECT_EQ(told((*found)[1]), "1 notification waits for \"older\", which the configuration does not name: nobody sends it");
    configured = {"ledger", "old", "older"};
    const auto none = co_await find_strays(pool, configured, soon());
    EXPECT_TRUE(none && none->empty());
  });
}

TEST_F(Outbox, ASweepOfHeldOnesWaitsForNobody) {
  add(1, 1, "held");
  add(2, 1, "held");
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    auto opened = co_await postgres::connection::open(context.get_executor(), db.service_url(), soon());
    EXPECT_TRUE(opened.has_value());
    if (!opened) co_return;
    const postgres::statement begin{"", "BEGIN", {}}, commit{"", "COMMIT", {}};
    const postgres::statement hold{"", "SELECT 1 FROM recibo.notifications WHERE operation = '" + key(1) + "' FOR UPDATE", {}};
    postgres::pipeline holding;
    holding.add(begin).add(hold);
    const auto held = co_await (*opened)->run(holding, soon());
    EXPECT_TRUE(held.ok());
    postgres::pool pool(context.get_executor(), db.service_url(), 1);
    const auto released = co_await release_held(pool, "ledger", true, {}, 100, soon(5s));
    EXPECT_TRUE(released.has_value());
    EXPECT_EQ(of(1, "status"), "held");
    EXPECT_EQ(of(2, "status"), "pending");
    postgres::pipeline ending;
    ending.add(commit);
    const auto ended = co_await (*opened)->run(ending, soon());
    EXPECT_TRUE(ended.ok());
    const auto again = co_await release_held(pool, "ledger", true, {}, 100, soon());
    EXPECT_TRUE(again.has_value());
  };
  test::run_coro(context, all);
  EXPECT_EQ(of(1, "status"), "pending");
}

// 10,000 operations that wait for a retry must not be looked at by each claim with all that follows them (decision 33).
TEST_F(Outbox, WhatFollowsAnAttemptThatIsPutOffIsPutOffWithItAndWokenByItsEnd) {
  for (int i = 1; i <= 3; ++i) add(1, i);
  add(2);
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    auto look = any(10);
    look.put_behind = 10;
    const auto first = co_await exchange_outbox(pool, "ledger", mine, {}, look, soon());
    EXPECT_TRUE(first && first->all.size() == 2);
    if (!first || first->all.size() != 2) co_return;
    EXPECT_EQ(first->put_behind, 0);  // nothing is put off yet
    const auto& one = first->all.front().operation == first->all.back().operation ? first->all.back()
                      : to_string(first->all.front().operation) == key(1)         ? first->all.front()
                                                                                  : first->all.back();
    std::vector<attempt_outcome> failed{outcome(one, next::retry, false)};
    const auto second = co_await exchange_outbox(pool, "ledger", mine, failed, look, soon());
    EXPECT_TRUE(second && second->all.empty());
    EXPECT_EQ(second ? second->put_behind : -1, 2);
    for (const int sequence : {2, 3}) {
      EXPECT_EQ(of(1, "status || ' ' || behind || ' ' || attempts", sequence), "pending true 0");
      EXPECT_EQ(of(1, "next_attempt_at > now() + interval '1 hour'", sequence), "true");
    }
    const auto third = co_await exchange_outbox(pool, "ledger", mine, {}, look, soon());
    EXPECT_EQ(third ? third->put_behind : -1, 0);
    // Its time comes, and it is delivered: the next of them goes with the same round trip.
    db.sql("UPDATE recibo.notifications SET next_attempt_at = now() WHERE sequence = 1 AND next_attempt_at IS NOT NULL");
    const auto again = co_await exchange_outbox(pool, "ledger", mine, {}, any(10), soon());
    EXPECT_TRUE(again && again->all.size() == 1);
    if (!again || again->all.size() != 1) co_return;
    EXPECT_EQ(again->all.front().attempts, 2);
    std::vector<attempt_outcome> delivered{outcome(again->all.front(), next::delivered, true)};
    const auto last = co_await exchange_outbox(pool, "ledger", mine, delivered, any(10), soon());
    EXPECT_TRUE(last && last->all.size() == 1);
    if (!last || last->all.size() != 1) co_return;
    EXPECT_EQ(last->all.front().sequence, 2);
    EXPECT_EQ(of(1, "behind || ' ' || (next_attempt_at <= now())", 3), "false true");
  });
}

TEST_F(Outbox, WhatWasPutOffIsWokenByADeathAndByADiscard) {
  for (const int operation : {1, 2}) {
    add(operation, 1);
    add(operation, 2);
  }
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    auto look = any(10);
    look.put_behind = 10;
    const auto first = co_await exchange_outbox(pool, "ledger", mine, {}, look, soon());
    std::vector<attempt_outcome> failed;
    if (first)
      for (const auto& one : first->all) failed.push_back(outcome(one, next::retry, false));
    const auto second = co_await exchange_outbox(pool, "ledger", mine, failed, look, soon());
    EXPECT_EQ(second ? second->put_behind : -1, 2);
    // One is given up by a person while it waits.
    const auto id = parse_id<notification_id>(of(1, "id"));
    outbox_action why{make_id<notification_action_id>(now()), "ops", "over"};
    const auto discarded = co_await discard_notification(pool, *id, std::move(why), soon());
    EXPECT_TRUE(discarded && *discarded);
    // The other dies at its next attempt; what follows it goes on, or is held.
    db.sql("UPDATE recibo.notifications SET next_attempt_at = now() WHERE operation = '" + key(2) + "' AND sequence = 1");
    const auto third = co_await exchange_outbox(pool, "ledger", mine, {}, any(10), soon());
    std::vector<attempt_outcome> died;
    std::vector<int> sequences;
    if (third)
      for (const auto& one : third->all) {
        sequences.push_back(one.sequence);
        if (one.sequence == 1) died.push_back(outcome(one, next::dead, false));
      }
    std::sort(sequences.begin(), sequences.end());
    EXPECT_EQ(sequences, (std::vector<int>{1, 2}));
    const auto last = co_await exchange_outbox(pool, "ledger", mine, died, any(10), soon());
    EXPECT_TRUE(last && last->all.empty());
    EXPECT_EQ(of(2, "status || ' ' || behind", 2), "held false");
  });
}

// Whoever ends the one before it has it locked: then it is too late to wait for it.
TEST_F(Outbox, NothingIsPutOffWithOneThatSomebodyIsEnding) {
  add(1, 1);
  add(1, 2);
  db.sql("UPDATE recibo.notifications SET next_attempt_at = now() + interval '1 hour', attempts = 1 WHERE sequence = 1");
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    auto opened = co_await postgres::connection::open(context.get_executor(), db.service_url(), soon());
    EXPECT_TRUE(opened.has_value());
    if (!opened) co_return;
    const postgres::statement begin{"", "BEGIN", {}}, commit{"", "COMMIT", {}};
    const postgres::statement end{"", "UPDATE recibo.notifications SET status = 'discarded' WHERE sequence = 1", {}};
    postgres::pipeline ending;
    ending.add(begin).add(end);
    const auto ended = co_await (*opened)->run(ending, soon());
    EXPECT_TRUE(ended.ok());
    postgres::pool pool(context.get_executor(), db.service_url(), 1);
    auto look = any(10);
    look.put_behind = 10;
    const auto meanwhile = co_await exchange_outbox(pool, "ledger", mine, {}, look, soon());
    EXPECT_TRUE(meanwhile && meanwhile->all.empty());
    EXPECT_EQ(meanwhile ? meanwhile->put_behind : -1, 0);
    postgres::pipeline over;
    over.add(commit);
    const auto done = co_await (*opened)->run(over, soon());
    EXPECT_TRUE(done.ok());
    const auto claimed = co_await exchange_outbox(pool, "ledger", mine, {}, look, soon());
    EXPECT_TRUE(claimed && claimed->all.size() == 1);
  };
  test::run_coro(context, all);
}

// Who ends a first attempt wakes nobody: so nothing may have been put off with one that was not tried yet.
TEST_F(Outbox, NothingIsPutOffWithAFirstAttempt) {
  for (const int operation : {1, 2, 3}) {
    add(operation, 1);
    add(operation, 2);
  }
  // As if each had been woken a little after the look for what waits began: one is still there, one is being sent, and one is
  // put off after its first attempt.
  db.sql("UPDATE recibo.notifications SET next_attempt_at = now() + interval '1 hour' WHERE sequence = 1");
  db.sql(
      "UPDATE recibo.notifications SET attempts = 1, lease_until = now() + interval '1 minute', leased_by = gen_random_uuid() "
      "WHERE operation = '" +
      key(2) + "' AND sequence = 1");
  db.sql("UPDATE recibo.notifications SET attempts = 1 WHERE operation = '" + key(3) + "' AND sequence = 1");
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    auto look = any(10);
    look.put_behind = 10;
    const auto claimed = co_await exchange_outbox(pool, "ledger", mine, {}, look, soon());
    EXPECT_TRUE(claimed && claimed->all.empty());
    EXPECT_EQ(claimed ? claimed->put_behind : -1, 1);
  });
  EXPECT_EQ(of(1, "behind", 2) + of(2, "behind", 2) + of(3, "behind", 2), "falsefalsetrue");
}

TEST_F(Outbox, WhatNobodyWokeIsFoundWhenItsTimeComes) {
  add(1, 2);
  db.sql("UPDATE recibo.notifications SET behind = true, next_attempt_at = now() - interval '1 second'");
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    const auto claimed = co_await exchange_outbox(pool, "ledger", mine, {}, any(10), soon());
    EXPECT_TRUE(claimed && claimed->all.size() == 1);
  });
  EXPECT_EQ(of(1, "behind", 2), "false");
}

TEST_F(Outbox, ASweepOfHeldOnesGoesInSteps) {
  for (int i = 1; i <= 5; ++i) add(i, 1, i == 3 ? "dead" : "held");
  add(3, 2, "held");
  run([&](postgres::pool& pool) -> asio::awaitable<void> {
    std::int64_t freed = 0;
    int steps = 0;
    for (std::optional<held_place> place = held_place{}; place && steps < 10; ++steps) {
      const auto step = co_await release_held(pool, "ledger", true, *place, 2, soon());
      EXPECT_TRUE(step.has_value());
      if (!step) co_return;
      EXPECT_LE(step->freed, 2);
      freed += step->freed;
      place = step->next;
    }
    EXPECT_EQ(freed, 4);
    EXPECT_EQ(steps, 4);  // three full ones, and one that finds the end
  });
  EXPECT_EQ(of(3, "status", 2), "held");
  EXPECT_EQ(of(5, "status"), "pending");
}

TEST_F(Outbox, ListsFindByAnyFilterWhatIsThereAndSayWhereTheyEnd) {
  // 6,000 pending ones are more than are sorted; the one of operation 7 is among the oldest.
  db.sql(
      "INSERT INTO recibo.operations (id, request_id, provider, workflow, state, version, revision, sequence, chain_hash, "
      "state_at, "
      "updated_at) VALUES ('" +
      key(7) + "', 'seven', 'p1', 1, 'accepted', 0, 1, 1, sha256(''), now(), now())");
  db.sql(
      "INSERT INTO recibo.notifications (id, operation, sequence, destination, type, created_at, status, delivered_at) SELECT "
      "('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, CASE n WHEN 5 THEN '" +
      key(7) +
      "'::uuid ELSE gen_random_uuid() END, 1, CASE WHEN n % 2000 = 5 THEN 'rare' ELSE 'ledger' END, 'operation.accepted', now(), "
      "CASE WHEN n > 6000 THEN 'delivered' ELSE 'pending' END, CASE WHEN n > 6000 THEN now() END FROM generate_series(1, 8000) "
      "n");
  add(8, 1, "dead");
  const auto count = [&](outbox_filter filter, int limit) {
    int seen = 0, pages = 0;
    run([&](postgres::pool& pool) -> asio::awaitable<void> {
      outbox_query what;
      what.filter = filter;
      what.limit = limit;
      do {
        const auto page = co_await list_notifications(pool, what, soon());
        EXPECT_TRUE(page.has_value());
        if (!page) co_return;
        EXPECT_LE(page->notifications.size(), static_cast<std::size_t>(limit));
        seen += static_cast<int>(page->notifications.size());
        what.after = page->next;
      } while (what.after && ++pages < 100);
    });
    return seen;
  };
  outbox_filter none, of_seven, rare, pending, rare_pending, dead, dead_elsewhere, nowhere;
  of_seven.request_id = "seven";
  rare.destination = "rare";
  pending.status = "pending";
  rare_pending.status = "pending";
  rare_pending.destination = "rare";
  dead.status = "dead";
  dead_elsewhere.status = "dead";
  dead_elsewhere.destination = "rare";
  nowhere.destination = "nowhere";
  EXPECT_EQ(count(none, 500), 8001);
  EXPECT_EQ(count(of_seven, 50), 1);
  EXPECT_EQ(count(rare, 3), 4);
  EXPECT_EQ(count(pending, 500), 6000);
  EXPECT_EQ(count(rare_pending, 2), 3);
  EXPECT_EQ(count(dead, 50), 1);
  EXPECT_EQ(count(dead_elsewhere, 50), 0);
  EXPECT_EQ(count(nowhere, 50), 0);
}

// Somebody locks the second, the replay has the first and waits, and now that one wants the first: the server ends one of them.
TEST_F(Outbox, AReplayThatLosesADeadlockIsDoneAgain) {
  add(1, 1, "dead");
  add(2, 1, "dead");
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    auto opened = co_await postgres::connection::open(context.get_executor(), db.url(), soon());
    EXPECT_TRUE(opened.has_value());
    if (!opened) co_return;
    const postgres::statement begin{"", "BEGIN", {}}, commit{"", "COMMIT", {}};
    // Whoever waits the longer looks for a deadlock first; that is the replay, and it is the one that loses.
    const postgres::statement patient{"", "SET LOCAL deadlock_timeout = '60s'", {}};
    const auto lock = [&](int which) {
      return postgres::statement{"", "SELECT 1 FROM recibo.notifications WHERE operation = '" + key(which) + "' FOR UPDATE", {}};
    };
    const auto first = lock(1), second = lock(2);
    postgres::pipeline holding;
    holding.add(begin).add(patient).add(second);
    const auto held = co_await (*opened)->run(holding, soon());
    EXPECT_TRUE(held.ok());
    postgres::pool pool(context.get_executor(), db.service_url(), 1);
    outbox_action why;
    why.id = make_id<notification_action_id>(now());
    why.actor = "ops";
    why.reason = "again";
    std::optional<result<std::int64_t>> replayed;
    const auto replay = [&]() -> asio::awaitable<void> {
      auto done = co_await replay_dead(pool, {}, why, 100, soon(20s));
      replayed = std::move(done);
    };
    asio::co_spawn(context, replay(), [](const std::exception_ptr& failure) { EXPECT_FALSE(failure); });
    asio::steady_timer timer(context);
    const auto waits = [&] {
      return db.sql("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'") ==
             "1";
    };
    for (const auto until = soon(); !waits() && std::chrono::steady_clock::now() < until;) {
      timer.expires_after(10ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
    postgres::pipeline crossing;
    crossing.add(first).add(commit);
    const auto crossed = co_await (*opened)->run(crossing, soon(20s));
    EXPECT_TRUE(crossed.ok());
    for (const auto until = soon(20s); !replayed && std::chrono::steady_clock::now() < until;) {
      timer.expires_after(10ms);
      co_await timer.async_wait(asio::use_awaitable);
    }
    EXPECT_TRUE(replayed && *replayed && **replayed == 2);
  };
  test::run_coro(context, all, 60s);
  EXPECT_EQ(db.sql("SELECT string_agg(status, ' ') FROM recibo.notifications"), "pending pending");
  // The count comes a little later.
  std::string lost;
  for (const auto until = soon(15s); lost != "t" && std::chrono::steady_clock::now() < until;)
    lost = db.sql("SELECT deadlocks > 0 FROM pg_stat_database WHERE datname = current_database()");
  EXPECT_EQ(lost, "t");
}

TEST_F(Outbox, SweepsOfOldAttemptsDoNotWaitForEachOther) {
  db.sql(
      "INSERT INTO recibo.notification_attempts (notification, attempt, destination, at, duration_ms, outcome) SELECT "
      "gen_random_uuid(), 1, 'ledger', now() - interval '9 days', 1, 'delivered' FROM generate_series(1, 10)");
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    auto opened = co_await postgres::connection::open(context.get_executor(), db.url(), soon());
    EXPECT_TRUE(opened.has_value());
    if (!opened) co_return;
    const postgres::statement begin{"", "BEGIN", {}}, commit{"", "COMMIT", {}};
    const postgres::statement hold{"", "SELECT 1 FROM recibo.notification_attempts LIMIT 4 FOR UPDATE", {}};
    postgres::pipeline holding;
    holding.add(begin).add(hold);
    const auto held = co_await (*opened)->run(holding, soon());
    EXPECT_TRUE(held.ok());
    postgres::pool pool(context.get_executor(), db.service_url(), 1);
    const auto gone = co_await sweep_attempts(pool, std::chrono::seconds(86400), soon(5s));
    EXPECT_TRUE(gone && *gone == 6);
    postgres::pipeline ending;
    ending.add(commit);
    const auto ended = co_await (*opened)->run(ending, soon());
    EXPECT_TRUE(ended.ok());
    const auto rest = co_await sweep_attempts(pool, std::chrono::seconds(86400), soon());
    EXPECT_TRUE(rest && *rest == 4);
  };
  test::run_coro(context, all);
}

}  // namespace
}  // namespace recibo::storage
