// Look-ups about all open operations of a provider, after an outage (R44).
#include "recibo/storage/look_ups.hpp"

#include "columns.hpp"
#include "missed.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <algorithm>
#include <vector>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::binary_array;
using postgres::deadline;
using postgres::parameters;
using postgres::pipeline;
using postgres::statement;

// Operations that a step of a catch-up reads, whosever they are, and look-ups that it asks for.
constexpr int catch_up_step = 5'000, catch_up_asks = 500;

const statement insert_catch_up{
    "insert_catch_up",
    "INSERT INTO recibo.catch_ups AS c (id, provider, started_at, started_by, since, place) VALUES ($1, $2, now(), $3, $4, $5) " +
        std::string(catch_up_anew) + " RETURNING c.id",
    {oid::uuid, oid::text, oid::text, oid::timestamptz, oid::uuid}};

// $1 provider, $2 operations to read, $3 backlog, $4 IDs for what is asked, in their order, $5 how many. Downwards from the
// newest: what an outage has hit is the newest, and has the limits that run out first. Reads by the operations' own IDs, so that
// a step costs the same however few of them are the provider's. One that began anew ends where the walk before had come to
// (`head_end`), which goes on (`tail`) in every second step: what is oldest is reached however often it begins anew. `place` is
// where a binary before this one has come to, upwards.
const statement advance_listing{
    "advance_catch_up",
    "WITH run AS MATERIALIZED (SELECT c.id, c.started_by, x.in_tail, CASE WHEN x.in_tail THEN c.tail ELSE coalesce(c.below, "
    "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid) END AS below, greatest((lpad(to_hex(greatest(floor(extract(epoch FROM "
    "c.since) * 1000), 0)::bigint), 12, '0') || repeat('0', 20))::uuid, CASE WHEN NOT x.in_tail THEN c.head_end END) AS bottom "
    "FROM recibo.catch_ups c CROSS JOIN LATERAL (SELECT c.tail IS NOT NULL AND (c.tail_next OR coalesce(c.below <= c.head_end, "
    "false)) AS in_tail) x WHERE c.provider = $1 "
    "AND c.listed_at IS NULL AND (SELECT count(*) FROM (SELECT FROM recibo.look_ups q WHERE q.provider = $1 AND q.status IN "
    "('queued', 'asking') AND q.status <> 'asking' ORDER BY (q.cause = 'catch_up'), q.id LIMIT $3) q) < $3 FOR UPDATE OF c SKIP "
    "LOCKED), "
    "seen AS MATERIALIZED (SELECT o.id, o.provider, o.state, o.workflow FROM recibo.operations o "
    "WHERE o.id < (SELECT run.below FROM run) AND o.id >= (SELECT run.bottom FROM run) ORDER BY o.id DESC LIMIT $2), "
    // Each table is taken apart once, however many live by it.
    "ended AS MATERIALIZED (SELECT w.version_key, x.value ->> 'name' AS state FROM recibo.workflow_versions w "
    "CROSS JOIN LATERAL jsonb_array_elements(w.definition::jsonb -> 'states') AS x(value) WHERE w.version_key IN "
    "(SELECT s.workflow FROM seen s WHERE s.provider = $1) AND coalesce((x.value ->> 'terminal')::boolean, false)), "
    "wanted AS MATERIALIZED (SELECT s.id, row_number() OVER (ORDER BY s.id DESC) AS n FROM seen s WHERE s.provider = $1 "
    "AND NOT EXISTS (SELECT FROM ended e WHERE e.version_key = s.workflow AND e.state = s.state) ORDER BY s.id DESC LIMIT $5), "
    "asked AS (INSERT INTO recibo.look_ups AS l (id, operation, provider, cause, asked_by, asked_at, catch_up) "
    "SELECT i.id, w.id, $1, 'catch_up', run.started_by, now(), run.id FROM wanted w "
    "JOIN unnest($4) WITH ORDINALITY AS i(id, n) ON i.n = w.n, run ORDER BY w.id "
    "ON CONFLICT (operation, reference) WHERE status = 'queued' DO UPDATE SET times = l.times + 1, catch_up = excluded.catch_up "
    "RETURNING 1), "
    "took AS MATERIALIZED (SELECT (SELECT count(*) FROM wanted) = $5 AS full_, (SELECT count(*) FROM seen) < $2 AS all_), "
    "went AS MATERIALIZED (SELECT CASE WHEN took.full_ THEN (SELECT w.id FROM wanted w ORDER BY w.id LIMIT 1) "
    "ELSE (SELECT s.id FROM seen s ORDER BY s.id LIMIT 1) END AS down_to, took.all_ AND NOT took.full_ AS at_end FROM took) "
    "UPDATE recibo.catch_ups c SET asked = c.asked + (SELECT count(*) FROM asked), tail_next = NOT run.in_tail, "
    "below = CASE WHEN run.in_tail THEN c.below WHEN went.at_end THEN coalesce(c.head_end, went.down_to, c.below) "
    "ELSE went.down_to END, "
    "tail = CASE WHEN NOT run.in_tail THEN c.tail WHEN NOT went.at_end THEN went.down_to END, "
    "listed_at = CASE WHEN went.at_end AND (CASE WHEN run.in_tail THEN coalesce(c.below <= c.head_end, false) "
    "ELSE c.tail IS NULL END) THEN now() END "
    "FROM run, went WHERE c.id = run.id RETURNING c.listed_at IS NULL",
    {oid::text, oid::int8, oid::int8, oid::uuid_array, oid::int8}};

const statement select_catch_up{
    "read_catch_up",
    "SELECT c.id, c.provider, c.started_by, c.started_at, c.since, c.listed_at, c.asked, "
    "count(l.id) FILTER (WHERE l.status IN ('queued', 'asking')), count(l.id) FILTER (WHERE l.status = 'answered'), "
    "count(l.id) FILTER (WHERE l.disposition IN ('applied', 'partial')), count(l.id) FILTER (WHERE l.disposition = 'review'), "
    "count(l.id) FILTER (WHERE l.status = 'failed') "
    "FROM recibo.catch_ups c LEFT JOIN recibo.look_ups l ON l.catch_up = c.id WHERE c.id = $1 GROUP BY c.id",
    {oid::uuid}};

awaitable<result<postgres::outcome>> run_catch_up_step(postgres::pool& pool, pipeline work, deadline until) {
  auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return done;
}

// The smallest ID of that instant: IDs are in the order in which operations were accepted.
operation_id first_operation_at(sys_micros at) {
  operation_id out;
  const auto ms = static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(at).time_since_epoch().count());
  for (int i = 0; i < 6; ++i) out.bytes[static_cast<std::size_t>(i)] = static_cast<std::uint8_t>(ms >> (8 * (5 - i)));
  return out;
}

}  // namespace

awaitable<result<catch_up_id>> start_catch_up(postgres::pool& pool, std::string provider, std::string by, sys_micros since,
                                              deadline until) {
  parameters with;
  with.uuid(make_id<catch_up_id>(now())).text(provider).text(by).time(since).uuid(first_operation_at(since));
  pipeline work;
  work.add(insert_catch_up, std::move(with));
  const auto done = co_await run_catch_up_step(pool, std::move(work), until);
  if (!done) co_return done.error();
  co_return done->answers.front().id<catch_up_id>(0, 0);
}

awaitable<result<std::optional<bool>>> advance_catch_up(postgres::pool& pool, std::string provider, int backlog, deadline until) {
  std::vector<look_up_id> made;
  const auto at = now();
  for (int i = 0; i < catch_up_asks; ++i) made.push_back(make_id<look_up_id>(at));
  std::sort(made.begin(), made.end());
  binary_array ids(oid::uuid);
  for (const auto& id : made) ids.add(id.binary());
  parameters with;
  with.text(provider).int8(catch_up_step).int8(backlog).array(std::move(ids)).int8(catch_up_asks);
  pipeline work;
  work.add(advance_listing, std::move(with));
  const auto done = co_await run_catch_up_step(pool, std::move(work), until);
  if (!done) co_return done.error();
  const auto& rows = done->answers.front();
  if (rows.empty()) co_return std::optional<bool>();
  co_return std::optional(rows.boolean(0, 0));
}

awaitable<result<std::optional<catch_up_report>>> read_catch_up(postgres::pool& pool, catch_up_id id, deadline until) {
  parameters with;
  with.uuid(id);
  const auto found = co_await pool.query(select_catch_up, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<catch_up_report>();
  catch_up_report out;
  out.id = found->id<catch_up_id>(0, 0);
  out.provider = found->string(0, 1);
  out.started_by = found->string(0, 2);
  out.started_at = found->time(0, 3);
  out.since = found->time(0, 4);
  out.listed_at = found->time_or_null(0, 5);
  out.asked = found->int8(0, 6);
  out.open = found->int8(0, 7);
  out.answered = found->int8(0, 8);
  out.healed = found->int8(0, 9);
  out.review = found->int8(0, 10);
  out.failed = found->int8(0, 11);
  co_return std::optional(std::move(out));
}

}  // namespace recibo::storage
