#include "recibo/postgres/connection.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/postgres/sqlstate.hpp"
#include "recibo/storage/migrator.hpp"

#include <array>
#include <charconv>

namespace recibo::storage {

namespace asio = boost::asio;

namespace {

const postgres::statement is_migrated{"schema_table", "SELECT to_regclass('recibo.schema_migrations') IS NOT NULL", {}};
const postgres::statement find_demands{
    "schema_demands", "SELECT version, oldest_binary FROM recibo.schema_migrations ORDER BY version", {}};

std::array<int, 3> numbers(std::string_view text) noexcept {
  text = text.substr(0, text.find_first_of("-+"));
  std::array<int, 3> out{};
  for (auto& n : out) {
    std::from_chars(text.data(), text.data() + text.size(), n);
    const auto dot = text.find('.');
    if (dot == std::string_view::npos) break;
    text.remove_prefix(dot + 1);
  }
  return out;
}

// `demands` empty: there is no table.
schema_status judge(const postgres::rows& demands) {
  schema_status out;
  out.needed = schema_version_needed();
  for (int i = 0; i < demands.size(); ++i) {
    out.version = demands.int4(i, 0);
    auto demand = demands.string(i, 1);
    if (out.oldest_binary.empty() || newer_version(demand, out.oldest_binary)) out.oldest_binary = std::move(demand);
  }
  if (out.version < out.needed) {
    out.why = "the database schema is at version " + std::to_string(out.version) + " and this binary needs " +
              std::to_string(out.needed) + ": run `recibo migrate`";
  } else if (newer_version(out.oldest_binary, RECIBO_VERSION)) {
    out.why = "the database schema serves binaries from " + out.oldest_binary + " on, and this one is " RECIBO_VERSION;
  } else {
    out.fits = true;
  }
  return out;
}

}  // namespace

bool newer_version(std::string_view a, std::string_view b) noexcept { return numbers(a) > numbers(b); }

int schema_version_needed() {
  static const int needed = [] {
    const auto ours = read_migrations(embedded_migrations());
    return ours && !ours->empty() ? ours->back().version : 0;
  }();
  return needed;
}

asio::awaitable<result<schema_status>> schema_state(postgres::connection& on, std::chrono::steady_clock::time_point until) {
  postgres::pipeline look, read;
  look.add(is_migrated);
  read.add(find_demands);
  const auto there = co_await on.run(look, until);
  if (!there.ok()) co_return postgres::to_error(there);
  if (!there.answers[0].boolean(0, 0)) co_return judge({});
  const auto found = co_await on.run(read, until);
  if (!found.ok()) co_return postgres::to_error(found);
  co_return judge(found.answers[0]);
}

asio::awaitable<result<schema_status>> schema_state(postgres::pool& on, std::chrono::steady_clock::time_point until) {
  const auto there = co_await on.query(is_migrated, postgres::parameters(), until);
  if (!there) co_return there.error();
  if (!there->boolean(0, 0)) co_return judge({});
  const auto found = co_await on.query(find_demands, postgres::parameters(), until);
  if (!found) co_return found.error();
  co_return judge(*found);
}

}  // namespace recibo::storage
