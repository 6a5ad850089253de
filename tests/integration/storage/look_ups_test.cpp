// Claims of look-ups on a real PostgreSQL: their order, and how many are asked at a time, whatever else waits (R23, decision 33).
#include "recibo/storage/look_ups.hpp"

#include "support/cluster.hpp"
#include "support/run_coro.hpp"
#include "support/sessions.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace recibo::storage {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::soon;

TEST(LookUpClaims, TakeWhatSomebodyWaitsForFirstThenByAgeAsManyAsMayBeAsked) {
  test::database db;
  // Of twenty the odd ones were asked for by a catch-up; 2 is put off, 4 is being asked by somebody, 6 was given up by its
  // holder.
  db.sql(
      "INSERT INTO recibo.operations (id, request_id, provider, workflow, state, version, revision, sequence, chain_hash, "
      "state_at, "
      "updated_at) SELECT ('01900000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'r' || n, 'p1', 1, 'accepted', 0, 1, 1, "
      "sha256(''), now(), now() FROM generate_series(1, 20) n");
  db.sql(
      "INSERT INTO recibo.look_ups (id, operation, provider, cause, asked_by, asked_at, status, next_attempt_at, lease_until, "
      "leased_by) SELECT ('01900000-0000-7000-9000-' || lpad(n::text, 12, '0'))::uuid, ('01900000-0000-7000-8000-' || "
      "lpad(n::text, 12, '0'))::uuid, 'p1', CASE n % 2 WHEN 1 THEN 'catch_up' ELSE 'hint' END, 'x', now(), CASE WHEN n IN (4, 6) "
      "THEN 'asking' ELSE 'queued' END, CASE n WHEN 2 THEN now() + interval '1 hour' END, CASE n WHEN 4 THEN now() + interval "
      "'1 hour' WHEN 6 THEN now() - interval '1 hour' END, CASE WHEN n IN (4, 6) THEN gen_random_uuid() END "
      "FROM generate_series(1, 20) n");
  std::vector<std::string> taken;
  asio::io_context context;
  const auto all = [&]() -> asio::awaitable<void> {
    postgres::pool pool(context.get_executor(), db.service_url(), 1);
    for (int i = 0; i < 3; ++i) {
      look_up_claim what;
      what.provider = "p1";
      what.by = make_id<look_up_holder>(now());
      what.lease = 30s;
      what.per_second = 100;
      what.burst = 100;
      what.concurrency = 11;
      what.limit = 6;
      const auto claimed = co_await claim_look_ups(pool, what, soon());
      EXPECT_TRUE(claimed.has_value());
      if (!claimed) co_return;
      for (const auto& one : claimed->all) taken.push_back(one.request_id);
    }
  };
  test::run_coro(context, all);
  // One of eleven is out already: six, then four, then none.
  EXPECT_EQ(taken, (std::vector<std::string>{"r6", "r8", "r10", "r12", "r14", "r16", "r1", "r3", "r18", "r20"}));
}

class OldDowntimes : public ::testing::Test {
 protected:
  void sweep() {
    asio::io_context context;
    const auto all = [&]() -> asio::awaitable<void> {
      postgres::pool pool(context.get_executor(), db.service_url(), 1);
      const auto done = co_await sweep_look_ups(pool, 24h, soon());
      EXPECT_TRUE(done.has_value());
    };
    test::run_coro(context, all);
  }
  // How many days ago those ended that are left: ours, then theirs.
  std::string left(const std::string& table) {
    return db.sql(
        "SELECT coalesce(string_agg(coalesce(round(extract(epoch FROM now() - ended_at) / 86400)::text, 'on'), ' ' "
        "ORDER BY began_at), '') FROM recibo." +
        table);
  }
  test::database db;
};

TEST_F(OldDowntimes, GoOnceNoTimerWasSetBeforeThem) {
  db.sql(
      "INSERT INTO recibo.downtimes SELECT now() - n * interval '1 day' - interval '1 hour', now() - n * interval '1 day' "
      "FROM generate_series(1, 30) n WHERE n IN (1, 8, 12, 30)");
  db.sql(
      "INSERT INTO recibo.provider_downtimes (provider, cause, began_at, known_until, ended_at) SELECT 'p1', 'look_ups', "
      "now() - n * interval '1 day' - interval '1 hour', now(), CASE WHEN n < 30 THEN now() - n * interval '1 day' END "
      "FROM generate_series(1, 30) n WHERE n IN (1, 8, 12, 30)");
  db.sql(
      "INSERT INTO recibo.timers (operation, kind, due_at, set_at, event, version) SELECT "
      "(lpad(to_hex((extract(epoch FROM now() - interval '10 days') * 1000)::bigint), 12, '0') || '70008000000000000000')::uuid, "
      "'deadline', now(), now(), 'overdue', 1");
  sweep();
  EXPECT_EQ(left("downtimes"), "8 1") << "an operation of ten days ago has a timer";
  EXPECT_EQ(left("provider_downtimes"), "on 8 1") << "one that goes on stays, however long it has";
  db.sql("DELETE FROM recibo.timers");
  sweep();
  EXPECT_EQ(left("downtimes"), "");
  EXPECT_EQ(left("provider_downtimes"), "on");
}

}  // namespace
}  // namespace recibo::storage
