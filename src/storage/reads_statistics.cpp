#include "recibo/storage/reads.hpp"

#include <cmath>
#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::statement;

// Up to this many pages of `operations` are counted, whatever there is: 32 MiB, some hundred thousand rows.
constexpr std::int64_t pages_counted = 4'096;

const statement select_open{"read_open_work",
                            "SELECT pg_relation_size('recibo.operations') / current_setting('block_size')::bigint, "
                            "(SELECT count(*) FROM recibo.reviews WHERE status = 'open'), "
                            "(SELECT count(*) FROM recibo.failed_callbacks), (SELECT count(*) FROM recibo.parked), now()",
                            {}};

const statement count_all{
    "count_operations",
    "SELECT provider, state, count(*) FROM recibo.operations GROUP BY provider, state ORDER BY provider, state",
    {}};

// SYSTEM takes whole pages, so that its cost follows the share and not the table. REPEATABLE: the same pages each time, so
// that a figure moves when the operations do, not with the dice.
const statement count_sample{"count_operations_sample",
                             "SELECT provider, state, count(*) FROM recibo.operations TABLESAMPLE SYSTEM ($1::int8 / 1000000.0) "
                             "REPEATABLE (1) GROUP BY provider, state ORDER BY provider, state",
                             {oid::int8}};

}  // namespace

boost::asio::awaitable<result<statistics>> read_statistics(postgres::pool& pool, postgres::deadline until) {
  postgres::parameters none;
  auto open = co_await pool.query(select_open, std::move(none), until);
  if (!open) co_return open.error();
  statistics out;
  const auto pages = open->int8(0, 0);
  out.reviews_open = open->int8(0, 1);
  out.failed_callbacks = open->int8(0, 2);
  out.parked = open->int8(0, 3);
  out.read_at = open->time(0, 4);
  out.exact = pages <= pages_counted;

  double share = 1;
  postgres::parameters with;
  if (!out.exact) {
    share = static_cast<double>(pages_counted) / static_cast<double>(pages);
    with.int8(static_cast<std::int64_t>(share * 100 * 1'000'000));
  }
  const auto& sql = out.exact ? count_all : count_sample;
  auto counts = co_await pool.query(sql, std::move(with), until);
  if (!counts) co_return counts.error();
  for (int i = 0; i < counts->size(); ++i) {
    auto& c = out.operations.emplace_back();
    c.provider = counts->string(i, 0);
    c.state = counts->string(i, 1);
    c.count = std::llround(static_cast<double>(counts->int8(i, 2)) / share);
  }
  co_return out;
}

}  // namespace recibo::storage
