#include "recibo/process/rematch.hpp"

#include "recibo/observe/log.hpp"

namespace recibo::process {
namespace {

namespace oid = postgres::oid;
constexpr std::chrono::seconds time_limit{5};
constexpr std::int32_t operations_max = 100;
// Names that one pass looks at: some milliseconds of the database.
constexpr std::int64_t names_max = 5'000;

// $3 to $6: behind that name, $7 names at most; each is looked for by the key of what it may name.
const postgres::statement find_missed{
    "find_missed",
    "WITH seen AS MATERIALIZED (SELECT i.provider, i.kind, i.identity, i.parked FROM recibo.parked_identities i "
    "WHERE (i.provider, i.kind, i.identity, i.parked) > ($3, $4, $5, $6) ORDER BY i.provider, i.kind, i.identity, i.parked "
    "LIMIT $7), "
    "last AS (SELECT * FROM seen s ORDER BY s.provider DESC, s.kind DESC, s.identity DESC, s.parked DESC LIMIT 1), "
    "missed AS (SELECT o.request_id FROM seen i CROSS JOIN LATERAL (SELECT x.request_id, x.provider FROM recibo.operations x "
    "WHERE x.request_id = i.identity OFFSET 0) o WHERE i.kind = 'request_id' AND i.provider = ANY($2) AND o.provider = "
    "i.provider "
    "UNION "
    "SELECT o.request_id FROM seen i "
    "CROSS JOIN LATERAL (SELECT FROM recibo.parked x WHERE x.id = i.parked AND x.request_id IS NULL OFFSET 0) p "
    "CROSS JOIN LATERAL (SELECT x.operation FROM recibo.aliases x WHERE x.provider = i.provider AND x.alias = i.identity OFFSET "
    "0) a "
    "CROSS JOIN LATERAL (SELECT x.request_id FROM recibo.operations x WHERE x.id = a.operation OFFSET 0) o "
    "WHERE i.kind = 'reference' AND i.provider = ANY($2)) "
    "SELECT m.request_id, (SELECT count(*) FROM seen), l.provider, l.kind, l.identity, l.parked FROM (VALUES (1)) AS always "
    "LEFT JOIN last l ON true LEFT JOIN (SELECT * FROM missed LIMIT $1) m ON true",
    {oid::int4, oid::text_array, oid::text, oid::text, oid::text, oid::uuid, oid::int8}};

}  // namespace

boost::asio::awaitable<int> rematch_once(postgres::pool& pool, const config::snapshot& settings, const record_function& record,
                                         rematch_place& at) {
  postgres::parameters with;
  // Of providers that are still configured: for others nobody can say what an event means.
  postgres::binary_array providers(oid::text);
  for (const auto& [name, p] : settings.get()->providers) providers.add(name);
  with.int4(operations_max).array(std::move(providers)).text(at.provider).text(at.kind).text(at.identity).uuid(at.parked);
  with.int8(names_max);
  const auto missed = co_await pool.query(find_missed, std::move(with), std::chrono::steady_clock::now() + time_limit);
  if (!missed) co_return 0;
  if (missed->size() < operations_max) {
    const bool more = missed->int8(0, 1) >= names_max;
    at = more ? rematch_place{missed->string(0, 2), missed->string(0, 3), missed->string(0, 4), missed->id<delivery_id>(0, 5)}
              : rematch_place{};
  }
  int done = 0;
  for (int i = 0; i < missed->size(); ++i) {
    if (missed->is_null(i, 0)) continue;
    record::rematch work;
    work.settings = settings.get();
    work.request_id = missed->string(i, 0);
    const auto applied = co_await record(std::move(work), std::chrono::steady_clock::now() + time_limit);
    if (!applied) {
      log::warn("re-match put off", {{"code", code_word(applied.error().code)}});
      continue;
    }
    log::warn("parked callbacks were met late", {{"request_id", applied->request_id}});
    ++done;
  }
  co_return done;
}

}  // namespace recibo::process
