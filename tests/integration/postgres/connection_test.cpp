// One session against a real server: what came of a run is told exactly, whatever happens to it.
#include "recibo/postgres/connection.hpp"

#include "recibo/postgres/sqlstate.hpp"
#include "support/cluster.hpp"
#include "support/random.hpp"
#include "support/run_coro.hpp"
#include "support/sessions.hpp"

#include <gtest/gtest.h>

namespace recibo::postgres {
namespace {

namespace asio = boost::asio;
using test::database;
using test::on_connection;
using test::soon;

const statement begin{"begin", "BEGIN", {}};
const statement commit{"commit", "COMMIT", {}};
const statement fail{"", "SELECT 1/0", {}};

class Connection : public testing::Test {
 protected:
  database db{database::content::empty};
};

TEST_F(Connection, CarriesEveryTypeThereAndBack) {
  const statement all{
      "all_types",
      "SELECT $1::text, $2::bytea, $3::bigint, $4::integer, $5::boolean, $6::timestamptz, $7::uuid, $8::jsonb, $3::int2, "
      "'9'::xid8, $1::varchar, $8::text",
      {oid::text, oid::bytea, oid::int8, oid::int4, oid::boolean, oid::timestamptz, oid::uuid, oid::jsonb}};
  const auto at = now();
  const auto id = make_id<operation_id>(at);
  const std::string bytes("\0\xff\x80 a", 5);
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    for (int round = 0; round < 2; ++round) {  // prepared, and prepared already
      parameters p;
      p.text("ñ, 漢")
          .bytes(bytes)
          .int8(-42)
          .int4(std::numeric_limits<std::int32_t>::min())
          .boolean(true)
          .time(at)
          .uuid(id)
          .jsonb(R"({"a":1})");
      pipeline all_types;
      all_types.add(all, std::move(p));
      const auto out = co_await c.run(all_types, soon());
      EXPECT_TRUE(out.ok());
      EXPECT_FALSE(out.noticed);
      if (!out.ok()) co_return;
      const auto& r = out.answers.at(0);
      EXPECT_EQ(r.size(), 1);
      EXPECT_EQ(r.tag(), "SELECT 1");
      EXPECT_EQ(r.text(0, 0), "ñ, 漢");
      EXPECT_EQ(r.text(0, 1), bytes);
      EXPECT_EQ(r.int8(0, 2), -42);
      EXPECT_EQ(r.int4(0, 3), std::numeric_limits<std::int32_t>::min());
      EXPECT_TRUE(r.boolean(0, 4));
      EXPECT_EQ(r.time(0, 5), at);
      EXPECT_EQ(r.id<operation_id>(0, 6), id);
      EXPECT_EQ(r.text(0, 7), R"({"a": 1})");
      EXPECT_EQ(r.int4(0, 8), -42);
      EXPECT_EQ(r.int8(0, 9), 9);
      EXPECT_EQ(r.text(0, 10), "ñ, 漢");
      EXPECT_EQ(r.text(0, 11), R"({"a": 1})");
    }
  });
}

TEST_F(Connection, CarriesNullsAsParametersElementsAndResults) {
  const statement nulls{
      "nulls", "SELECT $1, $2, $3, x FROM unnest($4) AS x", {oid::text, oid::timestamptz, oid::int8, oid::text_array}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    binary_array a(oid::text);
    a.add("").add_null();
    parameters p;
    p.null().null().null().array(std::move(a));
    pipeline run;
    run.add(nulls, std::move(p));
    const auto out = co_await c.run(run, soon());
    EXPECT_TRUE(out.ok());
    if (!out.ok()) co_return;
    const auto& r = out.answers[0];
    EXPECT_EQ(r.text_or_null(0, 0), std::nullopt);
    EXPECT_EQ(r.time_or_null(0, 1), std::nullopt);
    EXPECT_EQ(r.int8_or_null(0, 2), std::nullopt);
    EXPECT_EQ(r.text_or_null(0, 3), "");
    EXPECT_EQ(r.text_or_null(1, 3), std::nullopt);
  });
}

TEST_F(Connection, CarriesArraysOfTenThousand) {
  constexpr int count = 10'000;
  const statement rows_back{"arrays",
                            "SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7)",
                            {oid::uuid_array, oid::text_array, oid::bytea_array, oid::timestamptz_array, oid::int8_array,
                             oid::int4_array, oid::boolean_array}};
  auto random = test::random_for_test();
  struct one {
    operation_id id;
    std::string text, bytes;
    sys_micros at;
    std::int64_t n;
  };
  std::vector<one> sent;
  binary_array ids(oid::uuid), texts(oid::text), bytes(oid::bytea), times(oid::timestamptz), longs(oid::int8), ints(oid::int4),
      flags(oid::boolean);
  for (int i = 0; i < count; ++i) {
    one o{make_id<operation_id>(now()), std::string(random() % 40, 'x'), std::string(random() % 600, '\0'),
          now() - std::chrono::microseconds(random() % 1'000'000'000'000), static_cast<std::int64_t>(random())};
    ids.add(o.id.binary());
    texts.add(o.text);
    bytes.add(o.bytes);
    times.add_time(o.at);
    longs.add_int8(o.n);
    ints.add_int4(static_cast<std::int32_t>(o.n));
    flags.add_bool(o.n % 2 != 0);
    sent.push_back(std::move(o));
  }
  parameters p;
  p.array(std::move(ids))
      .array(std::move(texts))
      .array(std::move(bytes))
      .array(std::move(times))
      .array(std::move(longs))
      .array(std::move(ints))
      .array(std::move(flags));
  pipeline run;
  run.add(rows_back, std::move(p));
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    const auto out = co_await c.run(run, soon());
    EXPECT_TRUE(out.ok());
    if (!out.ok()) co_return;
    const auto& r = out.answers[0];
    EXPECT_EQ(r.size(), count);
    int same = 0;
    for (int i = 0; i < r.size(); ++i) {
      const auto& o = sent[static_cast<std::size_t>(i)];
      same += r.id<operation_id>(i, 0) == o.id && r.text(i, 1) == o.text && r.text(i, 2) == o.bytes && r.time(i, 3) == o.at &&
              r.int8(i, 4) == o.n && r.int4(i, 5) == static_cast<std::int32_t>(o.n) && r.boolean(i, 6) == (o.n % 2 != 0);
    }
    EXPECT_EQ(same, count);
  });
}

TEST_F(Connection, EmptyArrayIsEmptyAndNotNull) {
  const statement sizes{"sizes", "SELECT cardinality($1), $1 IS NULL", {oid::text_array}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    parameters p;
    p.array(binary_array(oid::text));
    pipeline run;
    run.add(sizes, std::move(p));
    const auto out = co_await c.run(run, soon());
    EXPECT_TRUE(out.ok());
    if (!out.ok()) co_return;
    EXPECT_EQ(out.answers[0].int4(0, 0), 0);
    EXPECT_FALSE(out.answers[0].boolean(0, 1));
  });
}

// The server answers while we are still sending: both buffers are full, and who only writes waits for ever.
TEST_F(Connection, MoreThanTheSocketHoldsInBothDirectionsDoesNotHang) {
  const statement echo{"echo", "SELECT $1", {oid::bytea}};
  const std::string megabyte(1 << 20, 'x');
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline run;
    for (int i = 0; i < 40; ++i) {
      parameters p;
      p.bytes(megabyte);
      run.add(echo, std::move(p));
    }
    const auto out = co_await c.run(run, soon());
    EXPECT_TRUE(out.ok()) << out.lost_why;
    EXPECT_EQ(out.answers.size(), 40U);
    for (const auto& r : out.answers) EXPECT_EQ(r.text(0, 0).size(), megabyte.size());
  });
}

TEST_F(Connection, SessionIsSetUpAsPromised) {
  const statement settings{
      "", "SELECT name || '=' || setting FROM pg_settings WHERE name = ANY($1) ORDER BY name", {oid::text_array}};
  db.sql("ALTER DATABASE " + db.name() + " SET synchronous_commit = off");
  db.sql("ALTER DATABASE " + db.name() + " SET client_min_messages = error");
  db.sql("ALTER DATABASE " + db.name() + " SET default_transaction_isolation = 'repeatable read'");
  const std::vector<std::string> expected{"application_name=recibo",
                                          "client_encoding=UTF8",
                                          "client_min_messages=notice",
                                          "default_transaction_isolation=read committed",
                                          "idle_in_transaction_session_timeout=5000",
                                          "jit=off",
                                          "lock_timeout=0",
                                          "plan_cache_mode=force_generic_plan",
                                          "search_path=recibo, pg_temp",
                                          "standard_conforming_strings=on",
                                          "statement_timeout=4000",
                                          "synchronous_commit=on",
                                          "TimeZone=UTC"};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    for (const auto& e : expected) {
      binary_array name(oid::text);
      name.add(e.substr(0, e.find('=')));
      parameters p;
      p.array(std::move(name));
      pipeline run;
      run.add(settings, std::move(p));
      const auto out = co_await c.run(run, soon());
      EXPECT_TRUE(out.ok());
      if (out.ok() && out.answers[0].size() == 1) {
        EXPECT_EQ(out.answers[0].text(0, 0), e);
      } else {
        ADD_FAILURE() << e;
      }
    }
  });
}

TEST_F(Connection, RefusedStatementSkipsTheRestAndRollbackMendsTheSession) {
  db.sql(
      "CREATE SCHEMA recibo; CREATE TABLE recibo.t (n int CONSTRAINT t_n_from_sender CHECK (n > 0), CONSTRAINT t_key UNIQUE "
      "(n))");
  const statement insert{"insert", "INSERT INTO t VALUES ($1)", {oid::int4}};
  const statement count{"count", "SELECT count(*) FROM t", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    parameters good, bad, after;
    good.int4(1);
    bad.int4(-1);
    after.int4(2);
    pipeline run;
    run.add(begin).add(insert, std::move(good)).add(insert, std::move(bad)).add(insert, std::move(after)).add(commit);
    const auto out = co_await c.run(run, soon());
    EXPECT_FALSE(out.ok());
    EXPECT_FALSE(out.lost);
    EXPECT_EQ(out.answers.size(), 2U);
    EXPECT_TRUE(out.refused.has_value());
    if (!out.refused) co_return;
    EXPECT_EQ(out.refused->sqlstate, "23514");
    EXPECT_EQ(out.refused->constraint, "t_n_from_sender");
    EXPECT_EQ(classify(out), fault::senders_data);
    EXPECT_TRUE(c.usable());
    EXPECT_TRUE(c.in_transaction());

    const auto undone = co_await c.rollback(soon());
    EXPECT_TRUE(undone.ok());
    EXPECT_FALSE(c.in_transaction());
    pipeline look;
    look.add(count);
    const auto looked = co_await c.run(look, soon());
    EXPECT_TRUE(looked.ok());
    if (looked.ok()) {
      EXPECT_EQ(looked.answers[0].int8(0, 0), 0);
    }
  });
}

TEST_F(Connection, WithoutABlockThePipelineIsAllOrNothing) {
  db.sql("CREATE SCHEMA recibo; CREATE TABLE recibo.t (n int)");
  const statement insert{"insert", "INSERT INTO t VALUES (1)", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline run;
    run.add(insert).add(fail);
    const auto out = co_await c.run(run, soon());
    EXPECT_EQ(out.answers.size(), 1U);
    EXPECT_EQ(out.refused ? out.refused->sqlstate : "", "22012");
    EXPECT_FALSE(c.in_transaction());
  });
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.t"), "0");
}

TEST_F(Connection, CommitOfAFailedTransactionSaysRollback) {
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline broken, end;
    broken.add(begin).add(fail);
    const auto refused = co_await c.run(broken, soon());
    EXPECT_TRUE(refused.refused.has_value());
    end.add(commit);
    const auto out = co_await c.run(end, soon());
    EXPECT_TRUE(out.ok());
    if (out.ok()) {
      EXPECT_EQ(out.answers[0].tag(), "ROLLBACK");
    }
  });
}

TEST_F(Connection, CommandTagsAndCounts) {
  db.sql("CREATE SCHEMA recibo; CREATE TABLE recibo.t (n int)");
  const statement insert{"insert", "INSERT INTO t SELECT generate_series(1, 3)", {}};
  const statement update{"update", "UPDATE t SET n = 0 WHERE n < 3", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline run;
    run.add(begin).add(insert).add(update).add(commit);
    const auto out = co_await c.run(run, soon());
    EXPECT_TRUE(out.ok());
    if (!out.ok()) co_return;
    EXPECT_EQ(out.answers[1].tag(), "INSERT 0 3");
    EXPECT_EQ(out.answers[1].affected(), 3);
    EXPECT_EQ(out.answers[2].affected(), 2);
    EXPECT_EQ(out.answers[3].tag(), "COMMIT");
    EXPECT_EQ(out.answers[3].affected(), 0);
  });
}

TEST_F(Connection, FailedPrepareIsNotRemembered) {
  const statement later{"later", "SELECT n FROM recibo.later", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline run;
    run.add(later);
    const auto first = co_await c.run(run, soon());
    EXPECT_EQ(first.refused ? first.refused->sqlstate : "", "42P01");
    db.sql("CREATE SCHEMA recibo; CREATE TABLE recibo.later (n int)");
    for (int i = 0; i < 2; ++i) {
      const auto again = co_await c.run(run, soon());
      EXPECT_TRUE(again.ok());
    }
  });
}

TEST_F(Connection, PreparedWithinARefusedRunIsPreparedAgainOrKnown) {
  const statement one{"one", "SELECT 1", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    for (int round = 0; round < 3; ++round) {
      pipeline before, after;
      before.add(one).add(fail);
      after.add(begin).add(fail).add(one);
      const auto failed_after = co_await c.run(before, soon());
      EXPECT_TRUE(failed_after.refused.has_value());
      const auto failed_before = co_await c.run(after, soon());
      EXPECT_TRUE(failed_before.refused.has_value());
      const auto undone = co_await c.rollback(soon());
      EXPECT_TRUE(undone.ok());
      pipeline alone;
      alone.add(one).add(one);
      const auto out = co_await c.run(alone, soon());
      EXPECT_TRUE(out.ok());
    }
  });
}

TEST_F(Connection, StatementThatAMigrationOutdatedIsPreparedAfresh) {
  db.sql("CREATE SCHEMA recibo; CREATE TABLE recibo.t (n int)");
  const statement star{"star", "SELECT * FROM recibo.t", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline run;
    run.add(star);
    const auto before = co_await c.run(run, soon());
    EXPECT_TRUE(before.ok());
    db.sql("ALTER TABLE recibo.t ADD COLUMN m int");
    const auto during = co_await c.run(run, soon());
    EXPECT_EQ(during.refused ? during.refused->sqlstate : "", "0A000");
    const auto after = co_await c.run(run, soon());
    EXPECT_TRUE(after.ok());
  });
}

TEST_F(Connection, StatementThatTheServerForgotIsPreparedAfresh) {
  const statement one{"one", "SELECT 1", {}};
  const statement discard{"", "DEALLOCATE ALL", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    pipeline run, forget;
    run.add(one);
    forget.add(discard);
    const auto before = co_await c.run(run, soon());
    EXPECT_TRUE(before.ok());
    const auto forgot = co_await c.run(forget, soon());
    EXPECT_TRUE(forgot.ok());
    const auto during = co_await c.run(run, soon());
    EXPECT_EQ(during.refused ? during.refused->sqlstate : "", "26000");
    const auto after = co_await c.run(run, soon());
    EXPECT_TRUE(after.ok());
  });
}

TEST_F(Connection, NoticesAreSeenAndBelongToTheirRun) {
  const statement notice{"", "DO $$ BEGIN RAISE NOTICE 'one'; END $$", {}};
  const statement warning{"warning", "ROLLBACK", {}};
  const statement quiet{"quiet", "SELECT 1", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    for (const auto* loud : {&notice, &warning}) {
      pipeline run, after;
      run.add(quiet).add(*loud).add(quiet);
      const auto out = co_await c.run(run, soon());
      EXPECT_TRUE(out.ok());
      EXPECT_TRUE(out.noticed);
      after.add(quiet);
      const auto next = co_await c.run(after, soon());
      EXPECT_FALSE(next.noticed);
    }
  });
}

TEST_F(Connection, ScriptRunsManyStatementsAndTheSessionGoesOn) {
  const statement count{"count", "SELECT count(*) FROM recibo.t", {}};
  on_connection(db.url(), [&](connection& c) -> asio::awaitable<void> {
    const auto made =
        co_await c.script("CREATE SCHEMA recibo; CREATE TABLE recibo.t (n int); INSERT INTO recibo.t VALUES (1), (2);", soon());
    EXPECT_TRUE(made.ok());
    pipeline run;
    run.add(count);
    const auto out = co_await c.run(run, soon());
    EXPECT_TRUE(out.ok());
    if (out.ok()) {
      EXPECT_EQ(out.answers[0].int8(0, 0), 2);
    }
    const auto refused = co_await c.script("INSERT INTO recibo.t VALUES (3); SELECT nonsense; SELECT 1", soon());
    EXPECT_EQ(refused.refused ? refused.refused->sqlstate : "", "42703");
    const auto after = co_await c.run(run, soon());
    EXPECT_TRUE(after.ok());
    if (after.ok()) {
      EXPECT_EQ(after.answers[0].int8(0, 0), 2);
    }
  });
}

}  // namespace
}  // namespace recibo::postgres
