#include "recibo/storage/migrator.hpp"

#include "recibo/postgres/connection.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <exception>
#include <map>

namespace recibo::storage {

namespace asio = boost::asio;
using postgres::connection;
using postgres::deadline;
using postgres::outcome;
using postgres::parameters;
using postgres::pipeline;
using postgres::statement;

namespace {

constexpr std::string_view up_ending = ".up.sql", down_ending = ".down.sql", oldest_mark = "-- oldest-binary:";

// Session lock; in the database's own key space, so that migrators of other databases do not wait.
const statement lock{"", "SELECT pg_advisory_lock(7594034139402302319)", {}};
const statement find_table{"", "SELECT to_regclass('recibo.schema_migrations') IS NOT NULL", {}};
const statement find_applied{
    "", "SELECT version, name, checksum, oldest_binary FROM recibo.schema_migrations ORDER BY version", {}};
const statement begin{"", "BEGIN", {}};
// A migration that waits for a table makes everybody behind it wait too: give up early, and let it be tried again.
const statement bound_waiting{"", "SET LOCAL lock_timeout = '10s'", {}};
const statement commit{"", "COMMIT", {}};
const statement note_up{"",
                        "INSERT INTO recibo.schema_migrations (version, name, checksum, oldest_binary) VALUES ($1, $2, $3, $4)",
                        {postgres::oid::int4, postgres::oid::text, postgres::oid::bytea, postgres::oid::text}};
const statement note_down{"", "DELETE FROM recibo.schema_migrations WHERE version = $1", {postgres::oid::int4}};

constexpr const char* make_table = R"(
CREATE SCHEMA IF NOT EXISTS recibo;
CREATE TABLE IF NOT EXISTS recibo.schema_migrations (
  version integer PRIMARY KEY,
  name text NOT NULL,
  checksum bytea NOT NULL CONSTRAINT schema_migrations_checksum_length CHECK (octet_length(checksum) = 32),
  oldest_binary text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE recibo.schema_migrations IS 'The applied migrations; written by `recibo migrate` alone.';
COMMENT ON COLUMN recibo.schema_migrations.version IS 'Number of the file.';
COMMENT ON COLUMN recibo.schema_migrations.name IS 'File name without its ending.';
COMMENT ON COLUMN recibo.schema_migrations.checksum IS 'SHA-256 of the file as it was applied; a changed file is refused.';
COMMENT ON COLUMN recibo.schema_migrations.oldest_binary IS 'The oldest release that may serve on this schema.';
COMMENT ON COLUMN recibo.schema_migrations.applied_at IS 'When it was applied.';
)";

// The service asks at its start whether the schema suits it. Its role is made by the first migration.
constexpr const char* let_service_read = R"(
DO $$ BEGIN
  IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'recibo_service') THEN
    GRANT SELECT ON recibo.schema_migrations TO recibo_service;
  END IF;
END $$;
)";

struct applied {
  int version;
  std::string name, checksum, oldest_binary;
};

std::string demand_of(std::string_view text) {
  while (text.starts_with("--")) {
    const auto end = text.find('\n');
    auto line = text.substr(0, end);
    if (line.starts_with(oldest_mark)) {
      line.remove_prefix(oldest_mark.size());
      while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
      while (!line.empty() && (line.back() == ' ' || line.back() == '\r')) line.remove_suffix(1);
      return std::string(line);
    }
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return {};
}

// The operator's terminal is where the server's text belongs: it names what is missing.
error failed(const outcome& o, const std::string& what) {
  auto e = postgres::to_error(o);
  if (!o.refused) return {e.code, what + ": " + e.detail};
  const auto text = what + ": " + o.refused->message + " (SQLSTATE " + o.refused->sqlstate + ")";
  if (postgres::classify(o) == postgres::fault::transient) return {e.code, text};
  return {permanent::check_failed, text};
}

asio::awaitable<result<std::vector<applied>>> read_applied(connection& on, deadline until) {
  std::vector<applied> out;
  pipeline look;
  look.add(find_table);
  auto there = co_await on.run(look, until);
  if (!there.ok()) co_return failed(there, "reading the applied migrations");
  if (!there.answers[0].boolean(0, 0)) co_return out;
  pipeline read;
  read.add(find_applied);
  const auto found = co_await on.run(read, until);
  if (!found.ok()) co_return failed(found, "reading the applied migrations");
  const auto& r = found.answers[0];
  for (int i = 0; i < r.size(); ++i) out.push_back({r.int4(i, 0), r.string(i, 1), r.string(i, 2), r.string(i, 3)});
  co_return out;
}

result<void> check_unchanged(const std::vector<applied>& there, const std::vector<migration>& ours) {
  for (const auto& a : there) {
    const auto same = std::find_if(ours.begin(), ours.end(), [&](const migration& m) { return m.version == a.version; });
    if (same == ours.end()) continue;  // of a newer release
    if (same->name != a.name || binary(same->checksum) != a.checksum) {
      return error(permanent::schema_mismatch,
                   "migration " + a.name + " was applied with another content than this binary's " + same->name);
    }
  }
  return {};
}

// What is to be done, in order.
result<std::vector<const migration*>> plan(const std::vector<applied>& there, const std::vector<migration>& ours,
                                           std::optional<int> down_to) {
  std::vector<const migration*> out;
  const int newest = there.empty() ? 0 : there.back().version;
  const auto is_there = [&](int version) {
    return std::any_of(there.begin(), there.end(), [&](const applied& a) { return a.version == version; });
  };
  if (!down_to) {
    for (const auto& m : ours) {
      if (is_there(m.version)) continue;
      if (m.version < newest) return error(permanent::schema_mismatch, "migration " + m.name + " is missing below newer ones");
      out.push_back(&m);
    }
    return out;
  }
  for (auto a = there.rbegin(); a != there.rend() && a->version > *down_to; ++a) {
    const auto known = std::find_if(ours.begin(), ours.end(), [&](const migration& m) { return m.version == a->version; });
    if (known == ours.end())
      return error(permanent::schema_mismatch, "migration " + a->name + " is of a newer binary: undo it with that one");
    out.push_back(&*known);
  }
  return out;
}

// One migration and its row, or nothing of both.
asio::awaitable<result<void>> step(connection& on, const migration& m, bool down, deadline until) {
  const std::string what = (down ? "undoing migration " : "migration ") + m.name;
  pipeline open;
  open.add(begin).add(bound_waiting);
  const auto opened = co_await on.run(open, until);
  if (!opened.ok()) co_return failed(opened, what);

  std::string sql(down ? m.down : m.up);
  if (!down) sql += let_service_read;
  const auto ran = co_await on.script(std::move(sql), until);
  if (!ran.ok()) {
    if (!ran.lost) co_await on.rollback(until);
    co_return failed(ran, what);
  }
  if (!on.in_transaction()) co_return error(permanent::check_failed, what + ": it ends its own transaction");

  pipeline close;
  parameters row;
  row.int4(m.version);
  if (!down) row.text(m.name).bytes(binary(m.checksum)).text(m.oldest_binary);
  close.add(down ? note_down : note_up, std::move(row)).add(commit);
  const auto closed = co_await on.run(close, until);
  if (!closed.ok()) {
    if (!closed.lost) co_await on.rollback(until);
    co_return failed(closed, what);
  }
  if (closed.answers[1].tag() != "COMMIT") co_return error(uncertain::commit_unknown, what + ": it is not known to be committed");
  co_return result<void>();
}

}  // namespace

result<std::vector<migration>> read_migrations(std::span<const embedded_file> files) {
  const auto wrong = [](std::string_view path, const char* why) {
    return error(permanent::check_failed, "migration file " + std::string(path) + ": " + why);
  };
  std::map<int, migration> by_version;
  for (const auto& f : files) {
    const bool up = f.path.ends_with(up_ending);
    if (!up && !f.path.ends_with(down_ending)) return wrong(f.path, "its name ends neither in .up.sql nor in .down.sql");
    const std::string_view name = f.path.substr(0, f.path.size() - (up ? up_ending : down_ending).size());
    int version = 0;
    const auto parsed = std::from_chars(name.data(), name.data() + name.size(), version);
    if (parsed.ec != std::errc() || parsed.ptr != name.data() + 4 || *parsed.ptr != '_' || version <= 0) {
      return wrong(f.path, "its name does not begin with four digits and an underscore");
    }
    auto& m = by_version[version];
    if (!m.name.empty() && m.name != name) return wrong(f.path, "its number is taken");
    m.version = version;
    m.name = name;
    auto& half = up ? m.up : m.down;
    if (!half.empty()) return wrong(f.path, "its number is taken");
    half = f.content;
  }
  std::vector<migration> out;
  for (auto& [version, m] : by_version) {
    if (m.up.empty() || m.down.empty()) return wrong(m.name, "one of its two files is missing or empty");
    m.oldest_binary = demand_of(m.up);
    if (m.oldest_binary.empty()) return wrong(m.name, "its opening comment has no line `-- oldest-binary:`");
    m.checksum = sha256(m.up);
    out.push_back(std::move(m));
  }
  return out;
}

asio::awaitable<result<migration_report>> migrate(asio::any_io_executor executor, secret url, migrate_options how) {
  const auto ours = read_migrations(how.files);
  if (!ours) co_return ours.error();
  const auto until = std::chrono::steady_clock::now() + how.limit;
  const auto connect_until = std::min(until, std::chrono::steady_clock::now() + std::chrono::seconds(10));
  const postgres::session_options unlimited{.statement_timeout = std::chrono::milliseconds(0), .by_index = false};
  auto opened = co_await connection::open(executor, std::move(url), connect_until, unlimited);
  if (!opened) co_return opened.error();
  auto& on = **opened;

  // Held until the session ends, however it ends.
  pipeline alone;
  alone.add(lock);
  const auto locked = co_await on.run(alone, until);
  if (!locked.ok()) co_return failed(locked, "waiting for another migrator");
  const auto there = co_await read_applied(on, until);
  if (!there) co_return there.error();
  const auto unchanged = check_unchanged(*there, *ours);
  if (!unchanged) co_return unchanged.error();
  const auto steps = plan(*there, *ours, how.down_to);
  if (!steps) co_return steps.error();

  migration_report out;
  out.from = out.to = there->empty() ? 0 : there->back().version;
  if (!how.dry_run && !steps->empty() && there->empty()) {
    const auto made = co_await on.script(make_table, until);
    if (!made.ok()) co_return failed(made, "making recibo.schema_migrations");
  }
  for (const auto* m : *steps) {
    if (!how.dry_run) {
      const auto done = co_await step(on, *m, how.down_to.has_value(), until);
      if (!done) co_return done.error();
    }
    out.done.push_back(m->name);
    out.to = m->version;
  }
  if (how.down_to && !steps->empty()) {
    out.to = 0;
    for (const auto& a : *there) {
      if (a.version <= *how.down_to) out.to = a.version;
    }
  }
  co_return out;
}

result<migration_report> migrate(const secret& url, const migrate_options& how) {
  asio::io_context context;
  std::optional<result<migration_report>> out;
  std::exception_ptr failure;
  asio::co_spawn(context, migrate(context.get_executor(), url, how), [&](std::exception_ptr e, result<migration_report> r) {
    failure = e;
    out = std::move(r);
  });
  context.run();
  if (failure) std::rethrow_exception(failure);
  return std::move(*out);
}

}  // namespace recibo::storage
