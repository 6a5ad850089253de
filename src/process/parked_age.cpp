#include "recibo/process/parked_age.hpp"

#include "recibo/observe/log.hpp"

namespace recibo::process {
namespace {

namespace oid = postgres::oid;
constexpr std::chrono::seconds round_limit{5};
constexpr std::int32_t callbacks_max = 100;

// By providers, which the index begins with: what is young is not read.
const postgres::statement find_old_parked{
    "find_old_parked",
    "WITH RECURSIVE names AS ((SELECT p.provider FROM recibo.parked p ORDER BY p.provider LIMIT 1) UNION ALL "
    "SELECT n.provider FROM names m CROSS JOIN LATERAL (SELECT p.provider FROM recibo.parked p WHERE p.provider > m.provider "
    "ORDER BY p.provider LIMIT 1) n) SELECT p.id FROM names m CROSS JOIN LATERAL (SELECT x.id, x.parked_at FROM recibo.parked x "
    "WHERE x.provider = m.provider AND x.disposition = 'parked' AND x.parked_at < now() - $1 * interval '1 second' "
    "AND NOT EXISTS (SELECT FROM recibo.reviews v WHERE v.delivery = x.id AND v.kind = 'parked_age' OFFSET 0) "
    "ORDER BY x.parked_at LIMIT $2) p ORDER BY p.parked_at LIMIT $2",
    {oid::int8, oid::int4}};

}  // namespace

boost::asio::awaitable<int> review_old_parked(postgres::pool& pool, const config::snapshot& settings,
                                              const record_function& record) {
  postgres::parameters with;
  with.int8(settings.get()->reviews.parked_after.count()).int4(callbacks_max);
  const auto old = co_await pool.query(find_old_parked, std::move(with), std::chrono::steady_clock::now() + round_limit);
  if (!old) co_return 0;
  int done = 0;
  for (int i = 0; i < old->size(); ++i) {
    record::parked_review work;
    work.settings = settings.get();
    work.parked = old->id<delivery_id>(i, 0);
    const auto reviewed = co_await record(std::move(work), std::chrono::steady_clock::now() + round_limit);
    if (!reviewed) {
      log::warn("the age of a parked callback could not be reviewed", {{"code", code_word(reviewed.error().code)}});
      co_return done;
    }
    if (reviewed->disposition != transition::disposition::review) continue;
    log::warn("a parked callback waits too long", {{"delivery_id", to_string(reviewed->delivery)}});
    ++done;
  }
  co_return done;
}

}  // namespace recibo::process
