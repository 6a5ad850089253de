#include "recibo/storage/outbox.hpp"

#include "again.hpp"
#include "by_index.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::binary_array;
using postgres::deadline;
using postgres::parameters;
using postgres::pipeline;
using postgres::statement;

// $1 destination, $2 due since, $3 limit, $4 lease in ms, $5 dispatcher, $6 hold, $7 only with the probe that was taken in the
// same transaction: its time says so. The service's clock made created_at, so that it may be a little ahead of the database's.
// OFFSET 0, here and below: looked up for the row in hand, and never made a list of all there are.
const std::string what_is_due =
    "SELECT n.operation, n.sequence, coalesce(n.next_attempt_at, n.created_at) AS due_at, $6 AND EXISTS (SELECT FROM "
    "recibo.notifications e WHERE e.operation = n.operation "
    "AND e.destination = n.destination AND e.sequence < n.sequence AND e.status IN ('dead', 'held') OFFSET 0) AS stopped "
    "FROM recibo.notifications n WHERE n.destination = $1 AND n.status = 'pending' "
    "AND (NOT $7 OR EXISTS (SELECT FROM recibo.destinations d WHERE d.name = $1 AND d.breaker = 'half_open' "
    "AND d.retry_at = now() + $4 * interval '1 millisecond')) "
    "AND coalesce(n.next_attempt_at, n.created_at) >= $2 "
    "AND coalesce(n.next_attempt_at, n.created_at) <= now() + interval '10 seconds' "
    "AND (n.next_attempt_at IS NULL OR n.next_attempt_at <= now()) AND (n.lease_until IS NULL OR n.lease_until < now()) "
    "AND NOT EXISTS (SELECT FROM recibo.notifications e WHERE e.operation = n.operation AND e.destination = n.destination "
    "AND e.sequence < n.sequence AND e.status = 'pending' OFFSET 0) ";
const std::string oldest_due = "ORDER BY coalesce(n.next_attempt_at, n.created_at) LIMIT $3 FOR UPDATE OF n SKIP LOCKED)";
std::string claim_of(const std::string& due) {
  return "WITH " + due +
         ", holding AS (UPDATE recibo.notifications n SET status = 'held', lease_until = NULL, leased_by = NULL, behind = false "
         "FROM due "
         "WHERE due.stopped AND n.operation = due.operation AND n.sequence = due.sequence AND n.destination = $1), "
         "mine AS (UPDATE recibo.notifications n SET lease_until = now() + $4 * interval '1 millisecond', leased_by = $5, "
         "behind = false, attempts = n.attempts + 1 FROM due WHERE NOT due.stopped AND n.operation = due.operation AND "
         "n.sequence = due.sequence "
         "AND n.destination = $1 RETURNING n.id, n.operation, n.sequence, n.type, n.attempts, n.attempts_before, n.created_at, "
         "due.due_at) "
         "SELECT mine.*, t.event, t.from_state, t.to_state, t.item_id, last.to_state, last.result, last.version::int8, last.at, "
         "pe.provider, pe.reason, pe.silent_since, pe.heard_at, said.result "
         "FROM mine LEFT JOIN recibo.provider_events pe ON pe.key = mine.operation AND pe.sequence = mine.sequence LEFT JOIN "
         "recibo.transitions t ON t.operation = mine.operation AND t.sequence = mine.sequence "
         "LEFT JOIN LATERAL (SELECT s.to_state, s.result, s.version, s.at FROM recibo.transitions s WHERE s.operation = "
         "mine.operation "
         "AND s.sequence <= mine.sequence AND s.item_id IS NULL ORDER BY s.sequence DESC LIMIT 1) last ON true "
         "LEFT JOIN LATERAL (SELECT s.result FROM recibo.transitions s WHERE t.item_id IS NOT NULL AND (SELECT i.result IS NOT "
         "NULL "
         "FROM recibo.items i WHERE i.operation = t.operation AND i.item_id = t.item_id) AND s.operation = mine.operation "
         "AND s.sequence <= mine.sequence AND s.item_id = t.item_id AND s.result IS NOT NULL ORDER BY s.sequence DESC LIMIT 1) "
         "said "
         "ON true ORDER BY mine.id";
}
const std::vector<std::uint32_t> claim_types = {oid::text, oid::timestamptz, oid::int8,   oid::int8,
                                                oid::uuid, oid::boolean,     oid::boolean};
const statement claim{"claim_notifications", claim_of("due AS MATERIALIZED (" + what_is_due + oldest_due), claim_types};
// What was tried before goes first: else each probe would be a new one's first attempt, and what waits for its second would wait
// for the whole backlog.
const statement claim_probe{
    "claim_probe",
    claim_of("tried AS MATERIALIZED (" + what_is_due +
             "AND n.next_attempt_at IS NOT NULL AND n.attempts > n.attempts_before ORDER BY n.created_at LIMIT $3 "
             "FOR UPDATE OF n SKIP LOCKED), "
             "fresh AS MATERIALIZED (" +
             what_is_due + "AND NOT EXISTS (SELECT FROM tried) " + oldest_due +
             ", due AS MATERIALIZED (SELECT * FROM tried UNION ALL SELECT * FROM fresh)"),
    claim_types};

// $1 destination, $2 due since. What waits behind an attempt that is put off is put off with it, so that claims do not look at it
// again and again. The one before it is locked meanwhile: whoever ends it waits, and wakes what was put off by then. Both are
// left to whoever holds them. The margin is for the attempt itself; what nobody wakes is found when it is over.
const statement put_behind{
    "put_behind_notifications",
    "WITH due AS MATERIALIZED (SELECT n.operation, n.sequence FROM recibo.notifications n WHERE n.destination = $1 "
    "AND n.status = 'pending' AND coalesce(n.next_attempt_at, n.created_at) >= $2 "
    "AND coalesce(n.next_attempt_at, n.created_at) <= now() + interval '10 seconds' "
    "AND (n.next_attempt_at IS NULL OR n.next_attempt_at <= now()) AND (n.lease_until IS NULL OR n.lease_until < now()) "
    "ORDER BY coalesce(n.next_attempt_at, n.created_at) LIMIT $3), "
    "waits AS MATERIALIZED (SELECT d.operation, d.sequence, e.next_attempt_at FROM due d CROSS JOIN LATERAL (SELECT "
    "x.next_attempt_at FROM recibo.notifications x WHERE x.operation = d.operation AND x.sequence < d.sequence "
    "AND x.destination = $1 AND x.status = 'pending' AND NOT x.behind AND x.next_attempt_at > now() "
    "ORDER BY x.sequence LIMIT 1 FOR SHARE SKIP LOCKED) e), "
    "mine AS MATERIALIZED (SELECT n.operation, n.sequence, w.next_attempt_at FROM waits w CROSS JOIN LATERAL (SELECT "
    "x.operation, x.sequence FROM recibo.notifications x WHERE x.operation = w.operation AND x.sequence = w.sequence "
    "AND x.destination = $1 AND x.status = 'pending' AND (x.lease_until IS NULL OR x.lease_until < now()) "
    "OFFSET 0 FOR UPDATE SKIP LOCKED) n) "
    "UPDATE recibo.notifications n SET next_attempt_at = m.next_attempt_at + interval '10 seconds', behind = true FROM mine m "
    "WHERE n.operation = m.operation AND n.sequence = m.sequence AND n.destination = $1",
    {oid::text, oid::timestamptz, oid::int8}};
// After the statement that ended the one before: it sees what was put off until then. In the order of the locks.
const statement wake_behind{
    "wake_behind_notifications",
    "UPDATE recibo.notifications n SET next_attempt_at = now(), behind = false FROM unnest($2, $3) AS m(operation, sequence) "
    "CROSS JOIN LATERAL (SELECT x.operation, x.sequence FROM recibo.notifications x WHERE x.operation = m.operation "
    "AND x.sequence > m.sequence AND x.destination = $1 AND x.status = 'pending' AND x.behind ORDER BY x.sequence "
    "OFFSET 0 FOR UPDATE) w WHERE n.operation = w.operation AND n.sequence = w.sequence AND n.destination = $1",
    {oid::text, oid::uuid_array, oid::int4_array}};

const statement extend{
    "extend_leases",
    "UPDATE recibo.notifications n SET lease_until = now() + $2 * interval '1 millisecond' FROM unnest($4, $5, $6) AS "
    "m(operation, sequence, attempt) WHERE n.operation = m.operation AND n.sequence = m.sequence AND n.destination = $3 "
    "AND n.status = 'pending' AND n.leased_by = $1 AND n.attempts = m.attempt",
    {oid::uuid, oid::int8, oid::text, oid::uuid_array, oid::int4_array, oid::int4_array}};

const statement settle{
    "settle_notifications",
    "UPDATE recibo.notifications n SET status = m.status, lease_until = NULL, leased_by = NULL, "
    "delivered_at = CASE WHEN m.status = 'delivered' THEN now() END, dead_at = CASE WHEN m.status = 'dead' THEN now() END, "
    "next_attempt_at = CASE WHEN m.wait_ms > 0 THEN now() + m.wait_ms * interval '1 millisecond' END, "
    "attempts_before = n.attempts_before + (CASE WHEN m.sent THEN 0 ELSE 1 END), "
    "reason = CASE WHEN m.status = 'delivered' THEN NULL ELSE m.reason END, "
    "reason_class = CASE WHEN m.status = 'delivered' THEN NULL ELSE m.reason_class END "
    "FROM unnest($3, $4, $5, $6, $7, $8, $9, $10) AS m(operation, sequence, attempt, status, wait_ms, reason, reason_class, "
    "sent) "
    "WHERE n.operation = m.operation AND n.sequence = m.sequence AND n.destination = $1 AND n.status = 'pending' "
    "AND n.leased_by = $2 AND n.attempts = m.attempt",
    {oid::text, oid::uuid, oid::uuid_array, oid::int4_array, oid::int4_array, oid::text_array, oid::int8_array, oid::text_array,
     oid::text_array, oid::boolean_array}};

const statement insert_attempts{
    "insert_notification_attempts",
    "INSERT INTO recibo.notification_attempts (notification, attempt, destination, at, duration_ms, answer_status, outcome, "
    "excerpt) "
    "SELECT m.notification, m.attempt, $7, now(), m.duration_ms, m.answer_status, m.outcome, m.excerpt "
    "FROM unnest($1, $2, $3, $4, $5, $6) AS m(notification, attempt, duration_ms, answer_status, outcome, excerpt) "
    "ON CONFLICT DO NOTHING",
    {oid::uuid_array, oid::int4_array, oid::int4_array, oid::int4_array, oid::text_array, oid::text_array, oid::text}};

// $3, $4: behind that place, $5 rows at most. What somebody else has in hand just now is left to the next sweep: it waits for
// nobody.
const statement release{
    "release_held",
    "WITH seen AS MATERIALIZED (SELECT x.operation, x.sequence FROM recibo.notifications x WHERE x.destination = $1 "
    "AND x.status IN ('held', 'dead') AND (x.operation, x.sequence) > ($3, $4) ORDER BY x.operation, x.sequence LIMIT $5), "
    "free AS MATERIALIZED (SELECT x.operation, x.sequence FROM seen s CROSS JOIN LATERAL (SELECT y.operation, y.sequence FROM "
    "recibo.notifications y WHERE y.operation = s.operation AND y.sequence = s.sequence AND y.destination = $1 "
    "AND y.status = 'held' AND NOT ($2 AND EXISTS (SELECT FROM recibo.notifications e WHERE e.operation = y.operation "
    "AND e.destination = y.destination AND e.sequence < y.sequence AND e.status = 'dead' OFFSET 0)) "
    "OFFSET 0 FOR UPDATE SKIP LOCKED) x), "
    "freed AS (UPDATE recibo.notifications n SET status = 'pending' FROM free "
    "WHERE n.operation = free.operation AND n.sequence = free.sequence AND n.destination = $1 AND n.status = 'held' RETURNING 1) "
    "SELECT (SELECT count(*) FROM freed), (SELECT count(*) FROM seen), last.operation, last.sequence FROM (VALUES (1)) AS always "
    "LEFT JOIN (SELECT s.operation, s.sequence FROM seen s ORDER BY s.operation DESC, s.sequence DESC LIMIT 1) last ON true",
    {oid::text, oid::boolean, oid::uuid, oid::int4, oid::int8}};

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

const statement probe{
    "take_probe",
    "UPDATE recibo.destinations SET breaker = 'half_open', retry_at = now() + $2 * interval '1 millisecond' "
    "WHERE name = $1 AND breaker <> 'closed' AND retry_at <= now() AND EXISTS (SELECT FROM recibo.notifications n "
    "WHERE n.destination = $1 AND n.status = 'pending' AND coalesce(n.next_attempt_at, n.created_at) <= now() + "
    "interval '10 seconds' AND (n.next_attempt_at IS NULL OR n.next_attempt_at <= now()) "
    "AND (n.lease_until IS NULL OR n.lease_until < now())) RETURNING retry_at",
    {oid::text, oid::int8}};

// $1 destination, $2 dispatcher, $3 lease in ms. In the transaction of the probe and the claim: there was nothing to send.
const statement unused_probe{
    "put_down_probe",
    "UPDATE recibo.destinations SET retry_at = now() WHERE name = $1 AND breaker = 'half_open' "
    "AND retry_at = now() + $3 * interval '1 millisecond' AND NOT EXISTS (SELECT FROM recibo.notifications n "
    "WHERE n.destination = $1 AND n.status = 'pending' AND n.leased_by = $2 AND n.lease_until = now() + $3 * interval '1 "
    "millisecond') RETURNING true",
    {oid::text, oid::uuid, oid::int8}};
const statement return_probe{"give_back_probe",
                             "UPDATE recibo.destinations SET retry_at = now() WHERE name = $1 AND breaker = 'half_open' "
                             "AND retry_at = $2 AND retry_at > now()",
                             {oid::text, oid::timestamptz}};

const statement close{"close_breaker",
                      "UPDATE recibo.destinations SET breaker = 'closed', breaker_since = NULL, retry_at = NULL, openings = 0 "
                      "WHERE name = $1 AND breaker <> 'closed'",
                      {oid::text}};
// $2, $3 first and longest interval of the retries in ms. What was tried and became due meanwhile would come in one moment, which
// the jitter of its waits was to prevent: each gets a place of its own in its next interval.
const statement spread{
    "spread_retries",
    "UPDATE recibo.notifications n SET next_attempt_at = now() + (late.place - random()) / late.places * "
    "least($3::float8, $2::float8 * power(2::float8, least(greatest(n.attempts - n.attempts_before - 1, 0), 30)::float8)) * "
    "interval '1 millisecond' FROM (SELECT x.operation, x.sequence, row_number() OVER (ORDER BY random()) AS place, "
    "count(*) OVER () AS places FROM (SELECT w.operation, w.sequence FROM recibo.notifications w WHERE w.destination = $1 "
    "AND w.status = 'pending' AND w.next_attempt_at IS NOT NULL AND w.next_attempt_at <= now() "
    "AND coalesce(w.next_attempt_at, w.created_at) <= now() AND w.attempts > w.attempts_before "
    "AND (w.lease_until IS NULL OR w.lease_until < now()) ORDER BY w.operation, w.sequence FOR UPDATE SKIP LOCKED) x) late "
    "WHERE n.operation = late.operation AND n.sequence = late.sequence AND n.destination = $1",
    {oid::text, oid::int8, oid::int8}};

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

// They lock the row only where that is news.
const statement begin_failing{
    "begin_failing",
    "INSERT INTO recibo.destinations AS d (name, failing_since) SELECT $1, now() WHERE NOT EXISTS (SELECT FROM "
    "recibo.destinations x WHERE x.name = $1 AND x.failing_since IS NOT NULL) "
    "ON CONFLICT (name) DO UPDATE SET failing_since = now() WHERE d.failing_since IS NULL",
    {oid::text}};
const statement end_failing{"end_failing",
                            "UPDATE recibo.destinations SET failing_since = NULL WHERE name = $1 AND failing_since IS NOT NULL",
                            {oid::text}};

const statement sweep{"sweep_attempts",
                      "SELECT recibo.sweep_notification_attempts(make_interval(secs => $1::double precision), 5000)",
                      {oid::int8}};

// It makes nobody wait for a disk, least of all those who commit callbacks: a word that is lost is found by looking.
const statement no_wait{"no_wait_for_disk", "SELECT set_config('synchronous_commit', 'off', true)", {}};
const statement ring{"ring_outbox", "SELECT pg_notify('recibo_outbox', $1)", {oid::text}};
const statement listen{"", "LISTEN recibo_outbox", {}};

std::string or_empty(const postgres::rows& from, int row, int column) {
  return from.text_or_null(row, column).value_or(std::string());
}

claimed_notification read_claimed(const postgres::rows& from, int row) {
  claimed_notification n;
  n.id = from.id<notification_id>(row, 0);
  n.operation = from.id<operation_id>(row, 1);
  n.sequence = from.int4(row, 2);
  n.type = from.string(row, 3);
  n.attempts = from.int4(row, 4);
  n.attempts_before = from.int4(row, 5);
  n.created_at = from.time(row, 6);
  n.due_at = from.time(row, 7);
  n.event = or_empty(from, row, 8);
  n.from = or_empty(from, row, 9);
  n.to = or_empty(from, row, 10);
  n.item_id = or_empty(from, row, 11);
  n.state = or_empty(from, row, 12);
  n.result = or_empty(from, row, 13);
  n.version = from.int8_or_null(row, 14).value_or(0);
  n.state_at = from.time_or_null(row, 15);
  if (const auto provider = from.text_or_null(row, 16))
    n.of_provider = {*provider, from.string(row, 17), from.time(row, 18), from.time_or_null(row, 19)};
  n.item_result = or_empty(from, row, 20);
  return n;
}

std::string_view status_of(attempt_outcome::next what) noexcept {
  switch (what) {
    case attempt_outcome::next::delivered: return "delivered";
    case attempt_outcome::next::dead: return "dead";
    case attempt_outcome::next::retry:
    case attempt_outcome::next::returned: break;
  }
  return "pending";
}

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

// What they say of the destination, before their own rows: its row is locked first by everybody. One that was taken ends the
// trouble, whatever failed beside it.
void append_trouble(pipeline& to, const std::string& destination, const std::vector<attempt_outcome>& all) {
  const auto says = [&](bool what) {
    return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.taken == what; });
  };
  const bool taken = says(true);
  if (!taken && !says(false)) return;
  parameters name;
  name.text(destination);
  to.add(taken ? end_failing : begin_failing, std::move(name));
}

void append_outcomes(pipeline& to, const std::string& destination, dispatcher_id by, std::vector<attempt_outcome> all) {
  // Rows are locked in one order by everybody.
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return std::tie(a.operation, a.sequence) < std::tie(b.operation, b.sequence); });
  append_trouble(to, destination, all);
  binary_array operations(oid::uuid), sequences(oid::int4), attempts(oid::int4), statuses(oid::text), waits(oid::int8),
      reasons(oid::text), classes(oid::text), sent(oid::boolean);
  binary_array ids(oid::uuid), numbers(oid::int4), durations(oid::int4), answers(oid::int4), outcomes(oid::text),
      excerpts(oid::text);
  binary_array over(oid::uuid), over_at(oid::int4);
  bool tried = false;
  for (const auto& one : all) {
    // Only one that was put off has put others off.
    if (one.attempt > 1 && (one.what == attempt_outcome::next::delivered || one.what == attempt_outcome::next::dead)) {
      over.add(one.operation.binary());
      over_at.add_int4(one.sequence);
    }
    operations.add(one.operation.binary());
    sequences.add_int4(one.sequence);
    attempts.add_int4(one.attempt);
    statuses.add(status_of(one.what));
    waits.add_int8(one.wait.count());
    reasons.add(one.reason);
    classes.add(one.theirs ? "theirs" : "ours");
    sent.add_bool(one.what != attempt_outcome::next::returned);
    if (one.what == attempt_outcome::next::returned) continue;
    tried = true;
    ids.add(one.id.binary());
    numbers.add_int4(one.attempt);
    durations.add_int4(static_cast<std::int32_t>(one.duration.count()));
    if (one.answer_status) {
      answers.add_int4(*one.answer_status);
    } else {
      answers.add_null();
    }
    outcomes.add(one.reason);
    excerpts.add(one.excerpt.empty() ? std::optional<std::string>() : std::optional(one.excerpt));
  }
  parameters settled;
  settled.text(destination).uuid(by).array(std::move(operations)).array(std::move(sequences)).array(std::move(attempts));
  settled.array(std::move(statuses)).array(std::move(waits)).array(std::move(reasons)).array(std::move(classes));
  settled.array(std::move(sent));
  to.add(settle, std::move(settled));
  if (over.size() > 0) {
    parameters ended;
    ended.text(destination).array(std::move(over)).array(std::move(over_at));
    to.add(wake_behind, std::move(ended));
  }
  if (tried) {
    parameters seen;
    seen.array(std::move(ids)).array(std::move(numbers)).array(std::move(durations)).array(std::move(answers));
    seen.array(std::move(outcomes)).array(std::move(excerpts)).text(destination);
    to.add(insert_attempts, std::move(seen));
  }
}

}  // namespace

awaitable<result<void>> extend_leases(postgres::pool& pool, std::string destination, dispatcher_id by,
                                      std::vector<held_claim> in_hand, std::chrono::milliseconds lease, deadline until) {
  std::sort(in_hand.begin(), in_hand.end(),
            [](const auto& a, const auto& b) { return std::tie(a.operation, a.sequence) < std::tie(b.operation, b.sequence); });
  binary_array operations(oid::uuid), sequences(oid::int4), attempts(oid::int4);
  for (const auto& one : in_hand) {
    operations.add(one.operation.binary());
    sequences.add_int4(one.sequence);
    attempts.add_int4(one.attempt);
  }
  parameters with;
  with.uuid(by).int8(lease.count()).text(destination);
  with.array(std::move(operations)).array(std::move(sequences)).array(std::move(attempts));
  pipeline work;
  work.add(by_index).add(extend, std::move(with));
  const auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return result<void>();
}

awaitable<result<claims>> exchange_outbox(postgres::pool& pool, std::string destination, dispatcher_id by,
                                          std::vector<attempt_outcome> done, std::optional<claim_query> next, deadline until) {
  pipeline work;
  work.add(by_index);
  if (!done.empty()) append_outcomes(work, destination, by, std::move(done));
  if (next && next->put_behind > 0) {
    parameters waits;
    waits.text(destination).time(next->due_since.value_or(sys_micros{})).int8(next->put_behind);
    work.add(put_behind, std::move(waits));
  }
  const std::size_t probe_at = work.steps().size();
  if (next) {
    if (next->probe) {
      parameters mine;
      mine.text(destination).int8(next->lease.count());
      work.add(probe, std::move(mine));
    }
    parameters with;
    with.text(destination).time(next->due_since.value_or(sys_micros{})).int8(next->limit).int8(next->lease.count());
    with.uuid(by).boolean(next->hold).boolean(next->probe);
    work.add(next->probe ? claim_probe : claim, std::move(with));
    if (next->probe) {
      parameters unused;
      unused.text(destination).uuid(by).int8(next->lease.count());
      work.add(unused_probe, std::move(unused));
    }
  }
  auto running = run_again(pool, work, until);
  const auto ran = co_await std::move(running);
  if (!ran.ok()) co_return postgres::to_error(ran);
  claims out;
  if (!next) co_return out;
  if (next->put_behind > 0) out.put_behind = ran.answers[probe_at - 1].affected();
  const auto& rows = ran.answers[probe_at + (next->probe ? 1 : 0)];
  out.all.reserve(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.size(); ++i) out.all.push_back(read_claimed(rows, i));
  if (next->probe && !ran.answers[probe_at].empty() && ran.answers.back().empty())
    out.probe_until = ran.answers[probe_at].time(0, 0);
  co_return out;
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
  out.paused_by = or_empty(*found, 0, 4);
  out.paused_reason = or_empty(*found, 0, 5);
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

awaitable<result<void>> close_breaker(postgres::pool& pool, std::string name, std::chrono::milliseconds first,
                                      std::chrono::milliseconds longest, deadline until) {
  parameters with, late;
  with.text(name);
  late.text(name).int8(first.count()).int8(longest.count());
  pipeline work;
  work.add(by_index).add(close, std::move(with)).add(spread, std::move(late));
  auto running = run_again(pool, work, until);
  const auto done = co_await std::move(running);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return result<void>();
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

awaitable<result<std::int64_t>> sweep_attempts(postgres::pool& pool, std::chrono::seconds keep, deadline until) {
  parameters with;
  with.int8(keep.count());
  const auto done = co_await run_one(pool, sweep, std::move(with), until);
  if (!done) co_return done.error();
  co_return done->answers.front().int4(0, 0);
}

awaitable<result<void>> ring_outbox(postgres::pool& pool, std::string word, deadline until) {
  parameters with;
  with.text(word);
  pipeline work;
  work.add(no_wait).add(ring, std::move(with));
  const auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return result<void>();
}

awaitable<bool> listen_to_outbox(postgres::connection& on, deadline until) {
  pipeline work;
  work.add(listen);
  const auto done = co_await on.run(work, until);
  co_return done.ok();
}

void append_ring(pipeline& to) {
  parameters any;
  any.text("-:*");
  to.add(ring, std::move(any));
}

}  // namespace recibo::storage
