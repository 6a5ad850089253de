#include "recibo/storage/outbox.hpp"

#include "again.hpp"
#include "by_index.hpp"
#include "outbox_order.hpp"
#include "recibo/postgres/sqlstate.hpp"
#include "recibo/storage/outbox.hpp"

#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::deadline;
using postgres::parameters;
using postgres::pipeline;
using postgres::statement;

// $1 destination, $2 due since. What waits behind an attempt that is put off is put off with it, so that claims do not look at it
// again and again. The one before it is locked meanwhile: whoever ends it waits, and wakes what was put off by then. Both are
// left to whoever holds them. The margin is for the attempt itself; what nobody wakes is found when it is over.
// An attempt was made and nobody is making one: so the one that ends it is not the first, and wakes what waits behind it.
const statement put_behind{
    "put_behind_notifications",
    "WITH due AS MATERIALIZED (SELECT n.operation, n.sequence FROM recibo.notifications n WHERE n.destination = $1 "
    "AND n.status = 'pending' AND coalesce(n.next_attempt_at, n.created_at) >= $2 "
    "AND coalesce(n.next_attempt_at, n.created_at) <= now() + interval '10 seconds' "
    "AND (n.next_attempt_at IS NULL OR n.next_attempt_at <= now()) AND (n.lease_until IS NULL OR n.lease_until < now()) "
    "ORDER BY coalesce(n.next_attempt_at, n.created_at) LIMIT $3), "
    "waits AS MATERIALIZED (SELECT d.operation, d.sequence, e.next_attempt_at FROM due d CROSS JOIN LATERAL (SELECT "
    "x.next_attempt_at FROM recibo.notifications x WHERE x.operation = d.operation AND x.sequence < d.sequence "
    "AND x.destination = $1 AND x.status IS NOT DISTINCT FROM 'pending' AND NOT x.behind AND x.next_attempt_at > now() "
    "AND x.attempts > 0 AND x.lease_until IS NULL "
    "ORDER BY x.sequence LIMIT 1 FOR SHARE SKIP LOCKED) e), "
    "mine AS MATERIALIZED (SELECT n.operation, n.sequence, w.next_attempt_at FROM waits w CROSS JOIN LATERAL (SELECT "
    "x.operation, x.sequence FROM recibo.notifications x WHERE x.operation = w.operation AND x.sequence = w.sequence "
    "AND x.destination = $1 AND x.status IS NOT DISTINCT FROM 'pending' AND (x.lease_until IS NULL OR x.lease_until < now()) "
    "OFFSET 0 FOR UPDATE SKIP LOCKED) n) "
    "UPDATE recibo.notifications n SET next_attempt_at = m.next_attempt_at + interval '10 seconds', behind = true FROM mine m "
    "WHERE n.operation = m.operation AND n.sequence = m.sequence AND n.destination = $1",
    {oid::text, oid::timestamptz, oid::int8}};
// After the statement that ended the one before: it sees what was put off until then. It waits for nobody: one that somebody
// holds just now is found when its time comes.
const statement wake_behind{
    "wake_behind_notifications",
    "UPDATE recibo.notifications n SET next_attempt_at = now(), behind = false FROM unnest($2, $3) AS m(operation, sequence) "
    "CROSS JOIN LATERAL (SELECT x.operation, x.sequence FROM recibo.notifications x WHERE x.operation = m.operation "
    "AND x.sequence > m.sequence AND x.destination = $1 AND x.status IS NOT DISTINCT FROM 'pending' AND x.behind ORDER BY "
    "x.sequence "
    "OFFSET 0 FOR UPDATE SKIP LOCKED) w WHERE n.operation = w.operation AND n.sequence = w.sequence AND n.destination = $1",
    {oid::text, oid::uuid_array, oid::int4_array}};

// $3, $4: behind that place, $5 rows at most. What somebody else has in hand just now is left to the next sweep: it waits for
// nobody.
const statement release{
    "release_held",
    "WITH seen AS MATERIALIZED (SELECT x.operation, x.sequence FROM recibo.notifications x WHERE x.destination = $1 "
    "AND x.status IN ('held', 'dead') AND (x.operation, x.sequence) > ($3, $4) ORDER BY x.operation, x.sequence LIMIT $5), "
    "free AS MATERIALIZED (SELECT x.operation, x.sequence FROM seen s CROSS JOIN LATERAL (SELECT y.operation, y.sequence FROM "
    "recibo.notifications y WHERE y.operation = s.operation AND y.sequence = s.sequence AND y.destination = $1 "
    "AND y.status IS NOT DISTINCT FROM 'held' AND NOT ($2 AND EXISTS (SELECT FROM recibo.notifications e WHERE e.operation = "
    "y.operation "
    "AND e.destination = y.destination AND e.sequence < y.sequence AND e.status = 'dead' OFFSET 0)) "
    "OFFSET 0 FOR UPDATE SKIP LOCKED) x), "
    "freed AS (UPDATE recibo.notifications n SET status = 'pending' FROM free "
    "WHERE n.operation = free.operation AND n.sequence = free.sequence AND n.destination = $1 RETURNING 1) "
    "SELECT (SELECT count(*) FROM freed), (SELECT count(*) FROM seen), last.operation, last.sequence FROM (VALUES (1)) AS always "
    "LEFT JOIN (SELECT s.operation, s.sequence FROM seen s ORDER BY s.operation DESC, s.sequence DESC LIMIT 1) last ON true",
    {oid::text, oid::boolean, oid::uuid, oid::int4, oid::int8}};

}  // namespace

void append_put_behind(pipeline& to, const std::string& destination, sys_micros due_since, int most) {
  parameters with;
  with.text(destination).time(due_since).int8(most);
  to.add(put_behind, std::move(with));
}

void append_wake_behind(pipeline& to, const std::string& destination, postgres::binary_array operations,
                        postgres::binary_array sequences) {
  parameters with;
  with.text(destination).array(std::move(operations)).array(std::move(sequences));
  to.add(wake_behind, std::move(with));
}

awaitable<result<held_step>> release_held(postgres::pool& pool, std::string destination, bool hold, held_place after, int limit,
                                          deadline until) {
  parameters with;
  with.text(destination).boolean(hold).uuid(after.operation).int4(after.sequence).int8(limit);
  pipeline work;
  work.add(by_index).add(release, std::move(with));
  auto running = run_again(pool, work, until);
  const auto done = co_await std::move(running);
  if (!done.ok()) co_return postgres::to_error(done);
  const auto& rows = done.answers.back();
  held_step out;
  out.freed = rows.int8(0, 0);
  if (rows.int8(0, 1) >= limit) out.next = held_place{rows.id<operation_id>(0, 2), rows.int4(0, 3)};
  co_return out;
}

}  // namespace recibo::storage
