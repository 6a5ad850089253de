#include "recibo/process/sweep.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/observe/log.hpp"

namespace recibo::process {
namespace {

namespace oid = postgres::oid;
constexpr std::chrono::seconds sweep_limit{5};
constexpr std::int64_t sweep_rows_max = 500;

// The operation's lock first: who decides by a key holds it, so that no key goes while it is looked at. A key that was repeated
// meanwhile is found changed and still expired.
const postgres::statement sweep_keys{
    "sweep_keys",
    "WITH due AS MATERIALIZED (SELECT k.operation FROM recibo.idempotency_keys k WHERE k.expires_at <= now() ORDER BY "
    "k.expires_at "
    "LIMIT $1), "
    "held AS MATERIALIZED (SELECT o.id FROM recibo.operations o WHERE o.id IN (SELECT operation FROM due) ORDER BY o.request_id "
    "FOR NO KEY UPDATE SKIP LOCKED), "
    "gone AS (DELETE FROM recibo.idempotency_keys k USING held WHERE k.operation = held.id AND k.expires_at <= now() "
    "RETURNING k.operation, k.delivery, k.key), "
    "signed AS (DELETE FROM recibo.signed_contents s USING gone WHERE s.owner = gone.operation AND s.key = gone.key), "
    "noted AS (INSERT INTO recibo.swept_keys AS s (operation, through, count, swept_at) "
    "SELECT operation, (array_agg(delivery ORDER BY delivery DESC))[1], count(*), now() FROM gone GROUP BY operation "
    "ON CONFLICT (operation) DO UPDATE SET through = greatest(s.through, excluded.through), count = s.count + excluded.count, "
    "swept_at = excluded.swept_at) "
    "SELECT count(*) FROM gone",
    {oid::int8}};

// Whoever applies one meanwhile has its row; then it is not here any more. What a person was asked about it is over with it ($4:
// IDs for that, as many as rows at most). A callback whose review somebody acts on just now is left for the next round: who
// holds a review may go on to its callback, so that here nothing is waited for.
const postgres::statement sweep_parked{
    "sweep_parked",
    "WITH old AS MATERIALIZED (SELECT p.id FROM unnest($1, $2) AS w(provider, seconds) CROSS JOIN LATERAL (SELECT x.id FROM "
    "recibo.parked x WHERE x.provider = w.provider AND x.parked_at < now() - w.seconds * interval '1 second' "
    "ORDER BY x.parked_at LIMIT $3 FOR UPDATE SKIP LOCKED) p LIMIT $3), "
    "asked AS MATERIALIZED (SELECT r.id, r.delivery FROM recibo.reviews r WHERE r.delivery IN (SELECT id FROM old) "
    "AND r.kind = 'parked_age' AND r.status IS NOT DISTINCT FROM 'open' FOR NO KEY UPDATE SKIP LOCKED), "
    "due AS MATERIALIZED (SELECT o.id FROM old o WHERE (SELECT count(*) FROM recibo.reviews r WHERE r.delivery = o.id "
    "AND r.kind = 'parked_age' AND r.status IS NOT DISTINCT FROM 'open') = (SELECT count(*) FROM asked a WHERE a.delivery = "
    "o.id)), "
    "names AS (DELETE FROM recibo.parked_identities i USING due WHERE i.parked = due.id), "
    "signed AS (DELETE FROM recibo.signed_contents s USING due WHERE s.owner = due.id), "
    "gone AS (DELETE FROM recibo.parked p USING due WHERE p.id = due.id RETURNING p.id, p.provider, p.request_id, p.parked_at), "
    "noted AS (INSERT INTO recibo.unclaimed (delivery, provider, request_id, parked_at, ended_at) "
    "SELECT id, provider, request_id, parked_at, now() FROM gone), "
    "closed AS (UPDATE recibo.reviews r SET status = 'resolved', resolved_at = now(), resolved_by = 'recibo', "
    "resolution = 'given_up', reason = 'no operation came in time' FROM gone JOIN asked ON asked.delivery = gone.id "
    "WHERE r.id = asked.id RETURNING r.id), "
    "acted AS (INSERT INTO recibo.review_actions (id, review, action, at, actor, resolution, reason) "
    "SELECT ($4)[row_number() OVER ()], id, 'resolved', now(), 'recibo', 'given_up', 'no operation came in time' FROM closed) "
    "SELECT provider, count(*) FROM gone GROUP BY provider ORDER BY provider",
    {oid::text_array, oid::int8_array, oid::int8, oid::uuid_array}};

}  // namespace

boost::asio::awaitable<swept> sweep_once(postgres::pool& pool, const config::snapshot& settings) {
  swept out;
  postgres::parameters rows;
  rows.int8(sweep_rows_max);
  const auto keys = co_await pool.query(sweep_keys, std::move(rows), std::chrono::steady_clock::now() + sweep_limit);
  if (!keys) co_return out;
  out.keys = keys->int8(0, 0);
  if (out.keys > 0) log::info("keys expired", {{"count", out.keys}});

  const auto now_in_force = settings.get();
  postgres::binary_array providers(oid::text), seconds(oid::int8);
  for (const auto& [name, p] : now_in_force->providers) {
    if (!p.parking.expire) continue;
    providers.add(name);
    seconds.add_int8(p.parking.expire->count());
  }
  if (providers.size() == 0) co_return out;
  postgres::parameters with;
  postgres::binary_array actions(oid::uuid);
  const auto at = std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  for (std::int64_t i = 0; i < sweep_rows_max; ++i) {
    const auto id = uuid_v7_bytes(at);
    actions.add(std::string_view(reinterpret_cast<const char*>(id.data()), id.size()));
  }
  with.array(std::move(providers)).array(std::move(seconds)).int8(sweep_rows_max).array(std::move(actions));
  const auto parked = co_await pool.query(sweep_parked, std::move(with), std::chrono::steady_clock::now() + sweep_limit);
  if (!parked) co_return out;
  for (int i = 0; i < parked->size(); ++i) {
    out.parked += parked->int8(i, 1);
    // Each of them was authentic, and nobody wanted it: worth a look.
    log::warn("parked callbacks given up", {{"provider", parked->text(i, 0)}, {"count", parked->int8(i, 1)}});
  }
  co_return out;
}

}  // namespace recibo::process
