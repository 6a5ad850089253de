#include "recibo/storage/destinations.hpp"

#include "again.hpp"
#include "by_index.hpp"
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

const statement select_destination{
    "read_destination",
    "SELECT d.name, d.paused_at, d.breaker_since, d.retry_at, d.paused_by, d.paused_reason, d.breaker, d.openings, "
    "coalesce(d.retry_at <= now(), false), extract(epoch FROM now() - d.failing_since)::int8 FROM recibo.destinations d "
    "WHERE d.name = $1",
    {oid::text}};

// Several replicas may find out at once: the one that comes first counts.
const statement open{"open_breaker",
                     "INSERT INTO recibo.destinations AS d (name, breaker, breaker_since, retry_at, openings) "
                     "VALUES ($1, 'open', now(), now() + $2 * interval '1 millisecond', 1) "
                     "ON CONFLICT (name) DO UPDATE SET breaker = 'open', breaker_since = coalesce(d.breaker_since, now()), "
                     "retry_at = excluded.retry_at, openings = d.openings + 1 WHERE d.breaker <> 'open'",
                     {oid::text, oid::int8}};

const statement put_off{
    "leave_destination_alone",
    "INSERT INTO recibo.destinations AS d (name, breaker, breaker_since, retry_at, openings) "
    "VALUES ($1, 'open', now(), now() + $2 * interval '1 millisecond', 1) "
    "ON CONFLICT (name) DO UPDATE SET breaker = 'open', breaker_since = coalesce(d.breaker_since, now()), "
    "retry_at = greatest(d.retry_at, excluded.retry_at), openings = greatest(d.openings, 1) WHERE d.breaker <> 'half_open'",
    {oid::text, oid::int8}};

const statement return_probe{"give_back_probe",
                             "UPDATE recibo.destinations SET retry_at = now() WHERE name = $1 AND breaker = 'half_open' "
                             "AND retry_at = $2 AND retry_at > now()",
                             {oid::text, oid::timestamptz}};

const statement close{"close_breaker",
                      "UPDATE recibo.destinations SET breaker = 'closed', breaker_since = NULL, retry_at = NULL, openings = 0 "
                      "WHERE name = $1 AND breaker <> 'closed'",
                      {oid::text}};
// One step: behind $4, $6 rows at most. $2, $3 first and longest interval of the retries in ms; $5 as few come at once anyway.
// An attempt before the breaker's trouble has been spread already, or has a time of its own by chance.
const statement spread{
    "spread_retries",
    "WITH opened AS MATERIALIZED (SELECT d.breaker_since - interval '1 minute' AS since, least(interval '1 minute', now() - "
    "d.breaker_since) AS longest FROM recibo.destinations d WHERE d.name = $1 AND d.breaker_since IS NOT NULL), "
    "seen AS MATERIALIZED (SELECT x.id, x.operation, x.sequence, x.created_at, x.next_attempt_at, x.lease_until, x.attempts, "
    "x.attempts_before FROM recibo.notifications x WHERE x.destination = $1 AND x.status = 'pending' "
    "AND x.next_attempt_at IS NOT NULL AND x.created_at > $4 ORDER BY x.created_at LIMIT $6), "
    "late AS MATERIALIZED (SELECT s.operation, s.sequence, least(o.longest, least($3::float8, $2::float8 * power(2::float8, "
    "least(greatest(s.attempts - s.attempts_before - 1, 0), 30)::float8)) * interval '1 millisecond') AS longest "
    "FROM seen s CROSS JOIN opened o WHERE s.next_attempt_at <= now() AND s.attempts > s.attempts_before "
    "AND (s.lease_until IS NULL OR s.lease_until < now()) AND EXISTS (SELECT FROM recibo.notification_attempts a "
    "WHERE a.notification = s.id AND a.attempt = s.attempts AND a.at >= o.since OFFSET 0)), "
    "free AS MATERIALIZED (SELECT f.operation, f.sequence, l.longest FROM late l CROSS JOIN LATERAL (SELECT y.operation, "
    "y.sequence FROM recibo.notifications y WHERE y.operation = l.operation AND y.sequence = l.sequence AND y.destination = $1 "
    "AND y.status IS NOT DISTINCT FROM 'pending' AND y.next_attempt_at <= now() AND (y.lease_until IS NULL OR y.lease_until < "
    "now()) "
    "OFFSET 0 FOR UPDATE SKIP LOCKED) f WHERE (SELECT count(*) FROM late) > $5), "
    "placed AS (SELECT f.operation, f.sequence, f.longest, row_number() OVER (ORDER BY random()) AS place, count(*) OVER () AS "
    "places FROM free f), "
    "put AS (UPDATE recibo.notifications n SET next_attempt_at = now() + (p.place - random()) / p.places * p.longest "
    "FROM placed p WHERE n.operation = p.operation AND n.sequence = p.sequence AND n.destination = $1 RETURNING 1) "
    "SELECT (SELECT count(*) FROM put), (SELECT count(*) FROM seen), (SELECT max(s.created_at) FROM seen s)",
    {oid::text, oid::int8, oid::int8, oid::timestamptz, oid::int8, oid::int8}};

const statement pause{
    "pause_destination",
    "INSERT INTO recibo.destinations AS d (name, paused_at, paused_by, paused_reason) VALUES ($1, now(), $2, $3) "
    "ON CONFLICT (name) DO UPDATE SET paused_at = now(), paused_by = $2, paused_reason = $3 "
    "WHERE d.paused_at IS NULL",
    {oid::text, oid::text, oid::text}};

const statement pause_where_failing{
    "pause_failing_destination",
    "UPDATE recibo.destinations SET paused_at = now(), paused_by = 'recibo', paused_reason = 'failing' WHERE name = $1 "
    "AND paused_at IS NULL AND failing_since <= now() - $2 * interval '1 second'",
    {oid::text, oid::int8}};

const statement resume{"resume_destination",
                       "UPDATE recibo.destinations SET paused_at = NULL, paused_by = NULL, paused_reason = NULL, "
                       "breaker = 'closed', breaker_since = NULL, retry_at = NULL, openings = 0, failing_since = NULL "
                       "WHERE name = $1 AND (paused_at IS NOT NULL OR breaker <> 'closed')",
                       {oid::text}};

awaitable<result<postgres::outcome>> run_one(postgres::pool& pool, const statement& what, parameters with, deadline until) {
  pipeline work;
  work.add(what, std::move(with));
  auto running = run_again(pool, work, until);
  auto done = co_await std::move(running);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return done;
}

awaitable<result<void>> run_quietly(postgres::pool& pool, const statement& what, parameters with, deadline until) {
  const auto done = co_await run_one(pool, what, std::move(with), until);
  if (!done) co_return done.error();
  co_return result<void>();
}

awaitable<result<bool>> run_and_tell(postgres::pool& pool, const statement& what, parameters with, deadline until) {
  const auto done = co_await run_one(pool, what, std::move(with), until);
  if (!done) co_return done.error();
  co_return done->answers.front().affected() > 0;
}

}  // namespace

awaitable<result<destination_row>> read_destination(postgres::pool& pool, std::string name, deadline until) {
  parameters with;
  with.text(name);
  auto found = co_await pool.query(select_destination, std::move(with), until);
  if (!found) co_return found.error();
  destination_row out;
  out.name = std::move(name);
  if (found->empty()) co_return out;
  out.paused_at = found->time_or_null(0, 1);
  out.breaker_since = found->time_or_null(0, 2);
  out.retry_at = found->time_or_null(0, 3);
  out.paused_by = found->text_or_null(0, 4).value_or(std::string());
  out.paused_reason = found->text_or_null(0, 5).value_or(std::string());
  out.breaker = found->string(0, 6);
  out.openings = found->int4(0, 7);
  out.retry_due = found->boolean(0, 8);
  if (const auto seconds = found->int8_or_null(0, 9)) out.failing_for = std::chrono::seconds(*seconds);
  co_return out;
}

awaitable<result<void>> open_breaker(postgres::pool& pool, std::string name, std::chrono::milliseconds wait, deadline until) {
  parameters with;
  with.text(name).int8(wait.count());
  return run_quietly(pool, open, std::move(with), until);
}

awaitable<result<bool>> leave_alone(postgres::pool& pool, std::string name, std::chrono::milliseconds wait, deadline until) {
  parameters with;
  with.text(name).int8(wait.count());
  return run_and_tell(pool, put_off, std::move(with), until);
}

awaitable<result<void>> give_back_probe(postgres::pool& pool, std::string name, sys_micros taken, deadline until) {
  parameters with;
  with.text(name).time(taken);
  return run_quietly(pool, return_probe, std::move(with), until);
}

awaitable<result<void>> close_breaker(postgres::pool& pool, std::string name, deadline until) {
  parameters with;
  with.text(name);
  return run_quietly(pool, close, std::move(with), until);
}

awaitable<result<spread_step>> spread_retries(postgres::pool& pool, std::string name, spread_rule rule, sys_micros after,
                                              int limit, deadline until) {
  parameters with;
  with.text(name).int8(rule.first.count()).int8(rule.longest.count()).time(after).int8(rule.few).int8(limit);
  pipeline work;
  work.add(by_index).add(spread, std::move(with));
  auto running = run_again(pool, work, until);
  const auto done = co_await std::move(running);
  if (!done.ok()) co_return postgres::to_error(done);
  const auto& rows = done.answers.back();
  spread_step out;
  out.spread = rows.int8(0, 0);
  if (rows.int8(0, 1) >= limit) out.next = rows.time(0, 2);
  co_return out;
}

awaitable<result<bool>> pause_destination(postgres::pool& pool, std::string name, std::string by, std::string reason,
                                          deadline until) {
  parameters with;
  with.text(name).text(by).text(reason);
  return run_and_tell(pool, pause, std::move(with), until);
}

awaitable<result<bool>> pause_failing(postgres::pool& pool, std::string name, std::chrono::seconds after, deadline until) {
  parameters with;
  with.text(name).int8(after.count());
  return run_and_tell(pool, pause_where_failing, std::move(with), until);
}

awaitable<result<bool>> resume_destination(postgres::pool& pool, std::string name, deadline until) {
  parameters with;
  with.text(name);
  pipeline work;
  work.add(resume, std::move(with));
  append_ring(work);
  const auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return done.answers.front().affected() > 0;
}

}  // namespace recibo::storage
