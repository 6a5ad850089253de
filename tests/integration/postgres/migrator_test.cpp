// Migrations against a real server: each once, in order, all or nothing, and never another content under the same number.
#include "recibo/storage/migrator.hpp"

#include "recibo/postgres/connection.hpp"
#include "recibo/postgres/pool.hpp"
#include "support/cluster.hpp"
#include "support/run_coro.hpp"
#include "support/sessions.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <sstream>

namespace recibo::storage {
namespace {

namespace asio = boost::asio;
using test::database;
using test::soon;
using testing::HasSubstr;

embedded_file file(std::string_view path, std::string_view content) {
  return {path, {content.data(), content.data() + content.size()}};
}

#define HEAD "-- Subject.\n-- oldest-binary: 0.1.0\n"

const std::vector<embedded_file> two{
    file("0001_first.down.sql", "DROP TABLE recibo.first"),
    file("0001_first.up.sql", HEAD "CREATE TABLE recibo.first (n int); INSERT INTO recibo.first VALUES (1);"),
    file("0002_second.down.sql", "DROP TABLE recibo.second;"),
    file("0002_second.up.sql", HEAD "CREATE TABLE recibo.second AS SELECT * FROM recibo.first;"),
};

migrate_options with(std::span<const embedded_file> files) {
  migrate_options how;
  how.files = files;
  return how;
}

using names = std::vector<std::string>;

// Of those before it the ways back leave comments of their own.
constexpr int first_with_a_true_way_back = 21;

class Migrator : public testing::Test {
 protected:
  database db{database::content::empty};
  std::string tables() const {
    return db.sql(
        "SELECT coalesce(string_agg(tablename, ' ' ORDER BY tablename), '') FROM pg_tables WHERE schemaname = 'recibo'");
  }
};

TEST_F(Migrator, AppliesInOrderAndTheSecondTimeNothing) {
  const auto first = migrate(db.url(), with(two));
  ASSERT_TRUE(first) << first.error().detail;
  EXPECT_EQ(first->done, (names{"0001_first", "0002_second"}));
  EXPECT_EQ(first->from, 0);
  EXPECT_EQ(first->to, 2);
  const auto again = migrate(db.url(), with(two));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->done, names{});
  EXPECT_EQ(again->from, 2);
  EXPECT_EQ(again->to, 2);
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.second"), "1");
  EXPECT_EQ(db.sql("SELECT string_agg(version || name || oldest_binary || octet_length(checksum), ' ' ORDER BY version) FROM "
                   "recibo.schema_migrations"),
            "10001_first0.1.032 20002_second0.1.032");
}

TEST_F(Migrator, AtOnceFromSeveralAppliesOnce) {
  std::vector<std::future<result<migration_report>>> all;
  for (int i = 0; i < 4; ++i) all.push_back(std::async(std::launch::async, [&] { return migrate(db.url(), with(two)); }));
  std::size_t applied = 0;
  for (auto& one : all) {
    const auto report = one.get();
    ASSERT_TRUE(report) << report.error().detail;
    applied += report->done.size();
    EXPECT_EQ(report->to, 2);
  }
  EXPECT_EQ(applied, 2U);
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.second"), "1");
}

TEST_F(Migrator, DryRunChangesNothing) {
  auto how = with(two);
  how.dry_run = true;
  const auto report = migrate(db.url(), how);
  ASSERT_TRUE(report) << report.error().detail;
  EXPECT_EQ(report->done, (names{"0001_first", "0002_second"}));
  EXPECT_EQ(tables(), "");
  EXPECT_EQ(db.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'recibo'"), "0");
}

TEST_F(Migrator, ChangedFileIsRefusedByName) {
  ASSERT_TRUE(migrate(db.url(), with(two)));
  auto changed = two;
  changed[1] = file("0001_first.up.sql", HEAD "CREATE TABLE recibo.first (n bigint);");
  const auto report = migrate(db.url(), with(changed));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, permanent::schema_mismatch);
  EXPECT_NE(report.error().detail.find("0001_first"), std::string::npos);
}

TEST_F(Migrator, FailedMigrationLeavesNothingOfItself) {
  auto broken = two;
  broken[3] = file("0002_second.up.sql", HEAD "CREATE TABLE recibo.second (n int); SELECT nonsense;");
  const auto report = migrate(db.url(), with(broken));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, permanent::check_failed);
  EXPECT_NE(report.error().detail.find("0002_second"), std::string::npos);
  EXPECT_NE(report.error().detail.find("nonsense"), std::string::npos);
  EXPECT_EQ(tables(), "first schema_migrations");
  const auto mended = migrate(db.url(), with(two));
  ASSERT_TRUE(mended);
  EXPECT_EQ(mended->done, names{"0002_second"});
}

TEST_F(Migrator, MigrationThatCommitsByItselfIsRefused) {
  const std::vector<embedded_file> own{file("0001_own.up.sql", HEAD "CREATE TABLE recibo.own (n int); COMMIT;"),
                                       file("0001_own.down.sql", "DROP TABLE recibo.own")};
  const auto report = migrate(db.url(), with(own));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, permanent::check_failed);
}

TEST_F(Migrator, LongerThanTheUsualStatementTimeoutIsFine) {
  const std::vector<embedded_file> slow{file("0001_slow.up.sql", HEAD "SELECT pg_sleep(4.5);"),
                                        file("0001_slow.down.sql", "SELECT 1")};
  const auto report = migrate(db.url(), with(slow));
  EXPECT_TRUE(report) << report.error().detail;
}

TEST_F(Migrator, DownUndoesNewestFirstAndUpAgainWorks) {
  ASSERT_TRUE(migrate(db.url(), with(two)));
  auto down = with(two);
  down.down_to = 0;
  const auto undone = migrate(db.url(), down);
  ASSERT_TRUE(undone) << undone.error().detail;
  EXPECT_EQ(undone->done, (names{"0002_second", "0001_first"}));
  EXPECT_EQ(undone->to, 0);
  EXPECT_EQ(tables(), "schema_migrations");
  const auto up = migrate(db.url(), with(two));
  ASSERT_TRUE(up) << up.error().detail;
  EXPECT_EQ(up->done.size(), 2U);
  down.down_to = 1;
  const auto one = migrate(db.url(), down);
  ASSERT_TRUE(one);
  EXPECT_EQ(one->done, names{"0002_second"});
  EXPECT_EQ(one->to, 1);
}

TEST_F(Migrator, OlderBinaryLeavesNewerMigrationsAloneAndDoesNotUndoThem) {
  ASSERT_TRUE(migrate(db.url(), with(two)));
  const std::vector<embedded_file> older(two.begin(), two.begin() + 2);
  const auto up = migrate(db.url(), with(older));
  ASSERT_TRUE(up);
  EXPECT_EQ(up->done, names{});
  EXPECT_EQ(up->to, 2);
  auto down = with(older);
  down.down_to = 0;
  const auto undone = migrate(db.url(), down);
  ASSERT_FALSE(undone);
  EXPECT_EQ(undone.error().code, permanent::schema_mismatch);
}

TEST_F(Migrator, NoServerIsAway) {
  const auto report = migrate(secret("postgresql://recibo@127.0.0.1:1/none"), with(two));
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, transient::database_away);
}

TEST_F(Migrator, OurMigrationsGoUpAndDownAndUp) {
  const auto up = migrate(db.url());
  ASSERT_TRUE(up) << up.error().detail;
  EXPECT_EQ(up->to, schema_version_needed());
  const auto shape = db.sql(
      "SELECT md5(string_agg(table_name || column_name || data_type, ',' ORDER BY table_name, column_name)) FROM "
      "information_schema.columns WHERE table_schema = 'recibo'");
  migrate_options down;
  down.down_to = 0;
  const auto undone = migrate(db.url(), down);
  ASSERT_TRUE(undone) << undone.error().detail;
  EXPECT_EQ(tables(), "schema_migrations");
  EXPECT_EQ(db.sql("SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace WHERE nspname = 'recibo'"), "0");
  const auto again = migrate(db.url());
  ASSERT_TRUE(again) << again.error().detail;
  EXPECT_EQ(again->done, up->done);
  EXPECT_EQ(db.sql("SELECT md5(string_agg(table_name || column_name || data_type, ',' ORDER BY table_name, column_name)) FROM "
                   "information_schema.columns WHERE table_schema = 'recibo'"),
            shape);
}

// All that a dump of the schema would say, but the order of columns.
std::string shape_of(const database& db) {
  return db.sql(
      "SELECT string_agg(line, E'\\n' ORDER BY line) FROM ("
      "SELECT 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || ' ' || a.attnotnull "
      "|| ' ' "
      "|| coalesce(pg_get_expr(d.adbin, d.adrelid), '') || ' ' || coalesce(col_description(c.oid, a.attnum), '') AS line FROM "
      "pg_class "
      "c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped LEFT JOIN pg_attrdef d ON d.adrelid = "
      "c.oid AND d.adnum = a.attnum WHERE c.relnamespace = 'recibo'::regnamespace AND c.relkind IN ('r', 'p', 'v') "
      "UNION ALL SELECT 'table ' || c.relname || ' ' || c.relkind::text || ' ' || coalesce(c.reloptions::text, '') || ' ' || "
      "coalesce(c.relacl::text, '') || ' ' || coalesce(obj_description(c.oid, 'pg_class'), '') FROM pg_class c WHERE "
      "c.relnamespace = 'recibo'::regnamespace AND c.relkind IN ('r', 'p', 'v') "
      "UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM "
      "pg_constraint "
      "WHERE connamespace = 'recibo'::regnamespace "
      "UNION ALL SELECT 'index ' || indexdef FROM pg_indexes WHERE schemaname = 'recibo' "
      "UNION ALL SELECT 'trigger ' || pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid WHERE "
      "c.relnamespace = 'recibo'::regnamespace AND NOT t.tgisinternal "
      "UNION ALL SELECT 'function ' || pg_get_functiondef(oid) || coalesce(proacl::text, '') || coalesce(obj_description(oid, "
      "'pg_proc'), '') FROM pg_proc WHERE pronamespace = 'recibo'::regnamespace) AS all_of_it");
}

// Lines of one and not of the other.
std::string difference(const std::string& one, const std::string& other) {
  const auto lines = [](const std::string& text) {
    std::istringstream in(text);
    std::set<std::string> out;
    for (std::string line; std::getline(in, line);) out.insert(line);
    return out;
  };
  const auto a = lines(one), b = lines(other);
  std::string out;
  for (const auto& line : a)
    if (!b.contains(line)) out += "+ " + line + '\n';
  for (const auto& line : b)
    if (!a.contains(line)) out += "- " + line + '\n';
  return out;
}

TEST_F(Migrator, EachOfOursLeavesTheSchemaAsItWasBefore) {
  const auto newest = schema_version_needed();
  std::vector<std::string> before(static_cast<std::size_t>(newest) + 1);
  // On the way up, as each was made; on the way down, as each was left.
  for (int version = first_with_a_true_way_back; version <= newest; ++version) {
    std::vector<embedded_file> some;
    for (const auto& f : embedded_migrations())
      if (std::stoi(std::string(f.path.substr(0, 4))) <= version) some.push_back(f);
    const auto done = migrate(db.url(), with(some));
    ASSERT_TRUE(done) << done.error().detail;
    before[static_cast<std::size_t>(version)] = shape_of(db);
  }
  for (int version = newest - 1; version >= first_with_a_true_way_back; --version) {
    migrate_options how;
    how.down_to = version;
    const auto done = migrate(db.url(), how);
    ASSERT_TRUE(done) << done.error().detail;
    EXPECT_EQ(difference(shape_of(db), before[static_cast<std::size_t>(version)]), "")
        << "what " << version + 1 << " left behind";
  }
}

TEST_F(Migrator, WithoutTheClocksReviewsNothingStaysOpenForThem) {
  ASSERT_TRUE(migrate(db.url()));
  for (const auto* id : {"clock", "both"})
    db.sql(
        std::string(
            "INSERT INTO recibo.operations (id, request_id, provider, workflow, state, state_at, updated_at, version, revision, "
            "sequence, chain_hash, review_open) VALUES (gen_random_uuid(), '") +
        id + "', 'p', 1, 's', now(), now(), 0, 1, 1, sha256('x'), true)");
  const std::string open =
      "INSERT INTO recibo.reviews (id, operation, kind, digest, delivery, detail, state, owner, opened_at, last_seen_at) SELECT "
      "gen_random_uuid(), o.id, ";
  const std::string rest = ", 'd', 's', 'o', now(), now() FROM recibo.operations o";
  db.sql(open + "'overdue', sha256('1'), NULL" + rest);
  db.sql(open + "'contradiction', sha256('2'), gen_random_uuid()" + rest + " WHERE o.request_id = 'both'");
  migrate_options down;
  down.down_to = 21;
  const auto undone = migrate(db.url(), down);
  ASSERT_TRUE(undone) << undone.error().detail;
  EXPECT_EQ(db.sql("SELECT string_agg(request_id || ' ' || review_open, ', ' ORDER BY request_id) FROM recibo.operations"),
            "both true, clock false");
}

TEST(ReadMigrations, OursAreInOrderAndComplete) {
  const auto ours = read_migrations(embedded_migrations());
  ASSERT_TRUE(ours) << ours.error().detail;
  ASSERT_FALSE(ours->empty());
  for (std::size_t i = 0; i < ours->size(); ++i) EXPECT_EQ((*ours)[i].version, static_cast<int>(i) + 1);
  for (const auto& m : *ours) EXPECT_FALSE(newer_version(m.oldest_binary, RECIBO_VERSION)) << m.name;
}

TEST(ReadMigrations, WhatIsNoPairOfFilesIsRefused) {
  const auto up = file("0001_a.up.sql", HEAD), down = file("0001_a.down.sql", "x");
  const auto refused = [](const std::vector<embedded_file>& files) {
    const auto read = read_migrations(files);
    return read ? std::string("accepted") : read.error().detail;
  };
  EXPECT_EQ(refused({up, down}), "accepted");
  EXPECT_THAT(refused({up}), HasSubstr("missing"));
  EXPECT_THAT(refused({down}), HasSubstr("missing"));
  EXPECT_THAT(refused({up, down, file("0001_b.up.sql", HEAD)}), HasSubstr("0001_b.up.sql: its number is taken"));
  EXPECT_THAT(refused({file("1_a.up.sql", HEAD)}), HasSubstr("four digits"));
  EXPECT_THAT(refused({file("00010_a.up.sql", HEAD)}), HasSubstr("four digits"));
  EXPECT_THAT(refused({file("0000_a.up.sql", HEAD)}), HasSubstr("four digits"));
  EXPECT_THAT(refused({file("0001_a.sql", HEAD)}), HasSubstr("its name ends"));
  EXPECT_THAT(refused({file("0001_a.up.sql", "-- Subject.\nSELECT 1;\n-- oldest-binary: 0.1.0\n"), down}),
              HasSubstr("oldest-binary"));
}

TEST(NewerVersion, ComparesNumbers) {
  EXPECT_TRUE(newer_version("0.10.0", "0.9.9"));
  EXPECT_TRUE(newer_version("1.0", "0.9.9"));
  EXPECT_FALSE(newer_version("0.1.0", "0.1.0"));
  EXPECT_FALSE(newer_version("0.1", "0.1.0"));
  EXPECT_FALSE(newer_version("0.1.0-rc1", "0.1.0"));
  EXPECT_FALSE(newer_version("", "0.1.0"));
}

schema_status state_of(const secret& url) {
  schema_status out;
  test::on_connection(url, [&](postgres::connection& c) -> asio::awaitable<void> {
    const auto state = co_await schema_state(c, soon());
    EXPECT_TRUE(state);
    if (state) out = *state;
  });
  return out;
}

TEST(SchemaState, FitsForTheServiceRoleWhenAllIsApplied) {
  const database db;
  const auto state = state_of(db.service_url());
  EXPECT_TRUE(state.fits) << state.why;
  EXPECT_EQ(state.version, schema_version_needed());
  EXPECT_GT(state.version, 0);
}

TEST(SchemaState, NeitherAnEmptyNorAnOlderSchemaFits) {
  const database empty(database::content::empty), older;
  EXPECT_FALSE(state_of(empty.url()).fits);
  older.sql("DELETE FROM recibo.schema_migrations WHERE version = (SELECT max(version) FROM recibo.schema_migrations)");
  const auto state = state_of(older.service_url());
  EXPECT_FALSE(state.fits);
  EXPECT_NE(state.why.find("recibo migrate"), std::string::npos) << state.why;
}

TEST(SchemaState, NewerSchemaFitsUnlessItDemandsANewerBinary) {
  const database db;
  db.sql("INSERT INTO recibo.schema_migrations VALUES (9998, '9998_expand', repeat('x', 32)::bytea, '0.1.0')");
  EXPECT_TRUE(state_of(db.service_url()).fits);
  db.sql("INSERT INTO recibo.schema_migrations VALUES (9999, '9999_contract', repeat('x', 32)::bytea, '999.0.0')");
  const auto state = state_of(db.service_url());
  EXPECT_FALSE(state.fits);
  EXPECT_NE(state.why.find("999.0.0"), std::string::npos) << state.why;
}

TEST(SchemaState, PoolMayAskToo) {
  const database db;
  asio::io_context context;
  const auto body = [&]() -> asio::awaitable<void> {
    postgres::pool p(context.get_executor(), db.service_url(), 1);
    const auto state = co_await schema_state(p, soon());
    EXPECT_TRUE(state && state->fits);
  };
  test::run_coro(context, body);
}

}  // namespace
}  // namespace recibo::storage
