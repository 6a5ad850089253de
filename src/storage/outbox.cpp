#include "recibo/storage/outbox.hpp"

#include "again.hpp"
#include "by_index.hpp"
#include "outbox_order.hpp"
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
// OFFSET 0, here and below: looked up for the row in hand, and never made a list of all there are. IS NOT DISTINCT FROM: likewise
// by its key, as no index of what has that status serves.
const std::string by_time = "n.status = 'pending'", by_key = "n.status IS NOT DISTINCT FROM 'pending'";
std::string due_where(const std::string& is_pending) {
  return "SELECT n.operation, n.sequence, coalesce(n.next_attempt_at, n.created_at) AS due_at, $6 AND EXISTS (SELECT FROM "
         "recibo.notifications e WHERE e.operation = n.operation "
         "AND e.destination = n.destination AND e.sequence < n.sequence AND e.status IN ('dead', 'held') OFFSET 0) AS stopped "
         "FROM recibo.notifications n WHERE n.destination = $1 AND " +
         is_pending +
         " AND (NOT $7 OR EXISTS (SELECT FROM recibo.destinations d WHERE d.name = $1 AND d.breaker = 'half_open' "
         "AND d.retry_at = now() + $4 * interval '1 millisecond')) "
         "AND coalesce(n.next_attempt_at, n.created_at) >= $2 "
         "AND coalesce(n.next_attempt_at, n.created_at) <= now() + interval '10 seconds' "
         "AND (n.next_attempt_at IS NULL OR n.next_attempt_at <= now()) AND (n.lease_until IS NULL OR n.lease_until < now()) "
         "AND NOT EXISTS (SELECT FROM recibo.notifications e WHERE e.operation = n.operation AND e.destination = n.destination "
         "AND e.sequence < n.sequence AND e.status IS NOT DISTINCT FROM 'pending' OFFSET 0) ";
}
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
const statement claim{"claim_notifications", claim_of("due AS MATERIALIZED (" + due_where(by_time) + oldest_due), claim_types};
// First goes one that was tried before: else each probe would be a new one's first attempt, and what waits for its second would
// wait for the whole backlog. After a probe in vain new ones and others have their turn, so that one that fails whatever the
// destination does keeps no breaker open. Chosen among the first thousand that are due and the first thousand that were put off.
const statement claim_probe{
    "claim_probe",
    claim_of(
        "turn AS MATERIALIZED (SELECT d.openings % 2 = 1 AS tried FROM recibo.destinations d WHERE d.name = $1), "
        "first AS MATERIALIZED (SELECT n.operation, n.sequence, n.next_attempt_at, n.created_at, n.attempts > n.attempts_before "
        "AS tried FROM recibo.notifications n WHERE n.destination = $1 AND n.status = 'pending' "
        "AND coalesce(n.next_attempt_at, n.created_at) >= $2 AND coalesce(n.next_attempt_at, n.created_at) <= now() + interval "
        "'10 seconds' AND (n.next_attempt_at IS NULL OR n.next_attempt_at <= now()) "
        "AND (n.lease_until IS NULL OR n.lease_until < now()) ORDER BY coalesce(n.next_attempt_at, n.created_at) LIMIT 1000), "
        "waiting AS MATERIALIZED (SELECT n.operation, n.sequence, n.next_attempt_at, n.created_at, n.attempts > "
        "n.attempts_before AS tried FROM recibo.notifications n WHERE n.destination = $1 AND n.status = 'pending' "
        "AND n.next_attempt_at IS NOT NULL ORDER BY n.created_at LIMIT 1000), "
        "either AS MATERIALIZED (SELECT f.* FROM first f UNION SELECT w.* FROM waiting w WHERE w.next_attempt_at <= now()), "
        "due AS MATERIALIZED (SELECT one.* FROM (SELECT s.operation, s.sequence FROM either s CROSS JOIN turn t "
        "ORDER BY s.tried <> t.tried, CASE WHEN s.tried THEN random() END, coalesce(s.next_attempt_at, s.created_at)) s "
        "CROSS JOIN LATERAL (" +
        due_where(by_key) +
        "AND n.operation = s.operation AND n.sequence = s.sequence OFFSET 0 FOR UPDATE OF n SKIP LOCKED) one LIMIT $3)"),
    claim_types};

// What somebody holds just now is left out, here and when an outcome is settled: one such row holds up none of the others.
const std::string free_of_m =
    "(SELECT x.operation, x.sequence FROM recibo.notifications x WHERE x.operation = m.operation AND x.sequence = m.sequence "
    "AND x.destination = $1 AND x.status IS NOT DISTINCT FROM 'pending' AND x.leased_by = $2 AND x.attempts = m.attempt "
    "OFFSET 0 FOR UPDATE SKIP LOCKED) f ";
const statement extend{
    "extend_leases",
    "WITH mine AS MATERIALIZED (SELECT f.operation, f.sequence FROM unnest($4, $5, $6) AS m(operation, sequence, attempt) "
    "CROSS JOIN LATERAL " +
        free_of_m +
        ") UPDATE recibo.notifications n SET lease_until = now() + $3 * interval '1 millisecond' FROM mine m "
        "WHERE n.operation = m.operation AND n.sequence = m.sequence AND n.destination = $1",
    {oid::text, oid::uuid, oid::int8, oid::uuid_array, oid::int4_array, oid::int4_array}};

// It answers with those that somebody holds: they are this claim's, and are not settled.
const statement settle{
    "settle_notifications",
    "WITH seen AS MATERIALIZED (SELECT m.*, f.operation IS NOT NULL AS free FROM unnest($3, $4, $5, $6, $7, $8, $9, $10) AS "
    "m(operation, sequence, attempt, status, wait_ms, reason, reason_class, sent) LEFT JOIN LATERAL " +
        free_of_m +
        "ON true), settled AS (UPDATE recibo.notifications n SET status = m.status, lease_until = NULL, leased_by = NULL, "
        "delivered_at = CASE WHEN m.status = 'delivered' THEN now() END, dead_at = CASE WHEN m.status = 'dead' THEN now() END, "
        "next_attempt_at = CASE WHEN m.wait_ms > 0 THEN now() + m.wait_ms * interval '1 millisecond' END, "
        "attempts_before = n.attempts_before + (CASE WHEN m.sent THEN 0 ELSE 1 END), "
        "reason = CASE WHEN m.status = 'delivered' THEN NULL ELSE m.reason END, "
        "reason_class = CASE WHEN m.status = 'delivered' THEN NULL ELSE m.reason_class END "
        "FROM seen m WHERE m.free AND n.operation = m.operation AND n.sequence = m.sequence AND n.destination = $1) "
        "SELECT m.operation, m.sequence FROM seen m WHERE NOT m.free AND EXISTS (SELECT FROM recibo.notifications x WHERE "
        "x.operation = m.operation AND x.sequence = m.sequence AND x.destination = $1 AND x.status IS NOT DISTINCT FROM "
        "'pending' "
        "AND x.leased_by = $2 AND x.attempts = m.attempt OFFSET 0)",
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

// Returns which of the answers is that of `settle`.
std::size_t append_outcomes(pipeline& to, const std::string& destination, dispatcher_id by, std::vector<attempt_outcome> all) {
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
  const std::size_t settle_at = to.steps().size();
  to.add(settle, std::move(settled));
  if (over.size() > 0) append_wake_behind(to, destination, std::move(over), std::move(over_at));
  if (tried) {
    parameters seen;
    seen.array(std::move(ids)).array(std::move(numbers)).array(std::move(durations)).array(std::move(answers));
    seen.array(std::move(outcomes)).array(std::move(excerpts)).text(destination);
    to.add(insert_attempts, std::move(seen));
  }
  return settle_at;
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
  with.text(destination).uuid(by).int8(lease.count());
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
  std::optional<std::size_t> settle_at;
  if (!done.empty()) settle_at = append_outcomes(work, destination, by, std::move(done));
  if (next && next->put_behind > 0) {
    append_put_behind(work, destination, next->due_since.value_or(sys_micros{}), next->put_behind);
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
  if (settle_at) {
    const auto& busy = ran.answers[*settle_at];
    for (int i = 0; i < busy.size(); ++i) out.busy.push_back({busy.id<operation_id>(i, 0), busy.int4(i, 1)});
  }
  if (!next) co_return out;
  if (next->put_behind > 0) out.put_behind = ran.answers[probe_at - 1].affected();
  const auto& rows = ran.answers[probe_at + (next->probe ? 1 : 0)];
  out.all.reserve(static_cast<std::size_t>(rows.size()));
  for (int i = 0; i < rows.size(); ++i) out.all.push_back(read_claimed(rows, i));
  if (next->probe && !ran.answers[probe_at].empty() && ran.answers.back().empty())
    out.probe_until = ran.answers[probe_at].time(0, 0);
  co_return out;
}

awaitable<result<std::int64_t>> sweep_attempts(postgres::pool& pool, std::chrono::seconds keep, deadline until) {
  parameters with;
  with.int8(keep.count());
  pipeline work;
  work.add(sweep, std::move(with));
  auto running = run_again(pool, work, until);
  const auto done = co_await std::move(running);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return done.answers.front().int4(0, 0);
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
