#include "recibo/storage/look_ups.hpp"

#include "by_index.hpp"
#include "columns.hpp"
#include "missed.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <algorithm>
#include <cmath>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::binary_array;
using postgres::deadline;
using postgres::parameters;
using postgres::pipeline;
using postgres::statement;

const statement insert_look_ups{
    "insert_look_ups",
    "WITH wanted AS (SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9) "
    "AS u(id, operation, provider, reference, cause, asked_by, times, at, sequence)), "
    // Who asks does not want to wait for the end of a back-off; a hint must not end it.
    "hastened AS (UPDATE recibo.look_ups l SET next_attempt_at = NULL FROM wanted w CROSS JOIN LATERAL (SELECT x.id FROM "
    "recibo.look_ups x WHERE x.operation = w.operation AND x.reference = w.reference AND x.status = 'asking' "
    "AND x.lease_until IS NULL OFFSET 0 FOR UPDATE) known WHERE w.cause = 'request' AND l.id = known.id) "
    "INSERT INTO recibo.look_ups AS l (id, operation, provider, reference, cause, asked_by, times, asked_at, sequence) "
    "SELECT * FROM wanted ORDER BY operation, reference "
    "ON CONFLICT (operation, reference) WHERE status = 'queued' DO UPDATE SET times = l.times + excluded.times, "
    "cause = CASE WHEN l.cause = 'catch_up' OR excluded.cause = 'retry' THEN excluded.cause ELSE l.cause END, "
    "asked_by = CASE WHEN l.cause = 'catch_up' OR excluded.cause = 'retry' THEN excluded.asked_by ELSE l.asked_by END, "
    "sequence = coalesce(excluded.sequence, l.sequence)",
    {oid::uuid_array, oid::uuid_array, oid::text_array, oid::text_array, oid::text_array, oid::text_array, oid::int4_array,
     oid::timestamptz_array, oid::int4_array}};

const statement find_retry_look_ups{
    "find_retry_look_ups",
    "SELECT l.operation, l.sequence, (SELECT max(t.sequence) FROM recibo.transitions t WHERE t.operation = l.operation), "
    "l.status, "
    "coalesce(l.reason, ''), coalesce(l.disposition, ''), coalesce(l.repeatable, ''), "
    "coalesce(l.settled_at > now() - interval '30 seconds', false), coalesce(l.asked_by = 'clock' AND l.settled_at > now() - "
    "interval '5 minutes' AND (l.status = 'answered' OR l.reason = 'not_found'), false) FROM unnest($1) AS w(operation) "
    "CROSS JOIN LATERAL (SELECT * FROM recibo.look_ups x WHERE x.operation = w.operation AND x.sequence IS NOT NULL "
    "AND x.reference = '' ORDER BY x.id DESC LIMIT 1) l",
    {oid::uuid_array}};
const statement select_retry_status{
    "retry_look_up_status",
    "SELECT l.status FROM recibo.look_ups l WHERE l.operation = (SELECT o.id FROM recibo.operations o WHERE o.request_id = $1) "
    "AND l.sequence IS NOT NULL AND l.reference = '' ORDER BY l.id DESC LIMIT 1",
    {oid::text}};

// A provider that asked for time has it: that is kept with its lane.
const statement hasten_look_ups{
    "hasten_look_ups",
    "UPDATE recibo.look_ups l SET next_attempt_at = least(l.next_attempt_at, now() + interval '5 seconds') "
    "FROM unnest($1) AS u(operation) CROSS JOIN LATERAL (SELECT x.id FROM recibo.look_ups x WHERE x.operation = u.operation "
    "AND x.status = 'asking' AND x.sequence IS NOT NULL AND x.lease_until IS NULL OFFSET 0 FOR UPDATE) known "
    "WHERE l.id = known.id",
    {oid::uuid_array}};

const statement answer_look_ups{
    "answer_look_ups",
    "WITH told AS (SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) "
    "AS u(id, holder, attempt, status, outcome, disposition, host, delivery, duration_ms, answer_status, at, repeatable)), "
    "settled AS (UPDATE recibo.look_ups l SET status = t.status, settled_at = now(), lease_until = NULL, leased_by = NULL, "
    "reason = CASE WHEN t.status = 'failed' THEN t.outcome END, delivery = t.delivery, disposition = t.disposition, "
    "repeatable = nullif(t.repeatable, '') FROM told t "
    "WHERE l.id = t.id AND l.status IS NOT DISTINCT FROM 'asking' AND l.leased_by = t.holder AND l.attempts = t.attempt) "
    "INSERT INTO recibo.look_up_attempts (look_up, attempt, at, host, duration_ms, answer_status, outcome) "
    "SELECT t.id, t.attempt, t.at, t.host, t.duration_ms, t.answer_status, t.outcome FROM told t ON CONFLICT DO NOTHING",
    {oid::uuid_array, oid::uuid_array, oid::int4_array, oid::text_array, oid::text_array, oid::text_array, oid::text_array,
     oid::uuid_array, oid::int4_array, oid::int4_array, oid::timestamptz_array, oid::text_array}};

const statement make_lane{"make_look_up_lane",
                          "INSERT INTO recibo.look_up_lanes (provider, tokens, tokens_at) VALUES ($1, $2::float8 / 1000, now()) "
                          "ON CONFLICT DO NOTHING",
                          {oid::text, oid::int8}};

const statement peek_lane{
    "peek_look_ups",
    "SELECT EXISTS (SELECT FROM recibo.look_ups l WHERE l.provider = $1 AND l.status IN ('queued', 'asking') "
    "AND (l.next_attempt_at IS NULL OR l.next_attempt_at <= now()) AND (l.lease_until IS NULL OR l.lease_until < now())) "
    "AND NOT coalesce(n.breaker <> 'closed' AND n.retry_at > now(), false) AND NOT coalesce(n.asked_until > now(), false), "
    "EXISTS (SELECT FROM recibo.catch_ups c WHERE c.provider = $1 AND c.listed_at IS NULL), coalesce(n.breaker, 'closed') "
    "FROM (SELECT) x LEFT JOIN recibo.look_up_lanes n ON n.provider = $1",
    {oid::text}};

// Replicas claim one after the other: the next statement counts what the one before has taken.
const statement lock_lane{"lock_look_up_lane",
                          "SELECT breaker, openings, breaker <> 'closed' AND retry_at <= now() FROM recibo.look_up_lanes "
                          "WHERE provider = $1 FOR UPDATE",
                          {oid::text}};

// What is due in the order of look_ups_next, what is held by look_ups_leased: a claim reads what it takes, and what waits before
// it. $1 provider, $2 holder, $3 lease in ms, $4 per thousand seconds, $5 burst in thousandths, $6 concurrency, $7 limit.
const statement claim_due{
    "claim_look_ups",
    "WITH lane AS MATERIALIZED (SELECT breaker, retry_at, coalesce(asked_until > now(), false) AS left_alone, "
    "least($5::float8 / 1000, tokens + greatest(0, extract(epoch FROM now() - tokens_at)::float8) * $4 / 1000) AS tokens "
    "FROM recibo.look_up_lanes WHERE provider = $1), "
    "room AS MATERIALIZED (SELECT CASE WHEN lane.left_alone THEN 0 WHEN lane.breaker = 'closed' THEN greatest(0, least($7, "
    "floor(lane.tokens)::int8, $6 - "
    "(SELECT count(*) FROM recibo.look_ups h WHERE h.provider = $1 AND h.lease_until >= now()))) "
    "WHEN lane.retry_at <= now() THEN 1 ELSE 0 END AS free FROM lane), "
    "due AS MATERIALIZED (SELECT l.id FROM recibo.look_ups l WHERE l.provider = $1 AND l.status IN ('queued', 'asking') "
    "AND (l.next_attempt_at IS NULL OR l.next_attempt_at <= now()) AND (l.lease_until IS NULL OR l.lease_until < now()) "
    "AND (l.status = 'asking' OR NOT EXISTS (SELECT FROM recibo.look_ups a WHERE a.operation = l.operation "
    "AND a.reference = l.reference AND a.status = 'asking' OFFSET 0)) "
    "ORDER BY (l.cause = 'catch_up'), l.id LIMIT (SELECT free FROM room) FOR UPDATE OF l SKIP LOCKED), "
    "mine AS (UPDATE recibo.look_ups l SET status = 'asking', lease_until = now() + $3 * interval '1 millisecond', "
    "leased_by = $2, attempts = l.attempts + 1 FROM due WHERE l.id = due.id "
    "RETURNING l.id, l.operation, l.reference, l.cause, l.reason, l.attempts, l.times), "
    "paid AS (UPDATE recibo.look_up_lanes n SET tokens = greatest(0, lane.tokens - (SELECT count(*) FROM mine)), tokens_at = "
    "now(), "
    "breaker = CASE WHEN n.breaker <> 'closed' AND EXISTS (SELECT FROM mine) THEN 'half_open' ELSE n.breaker END, "
    "retry_at = CASE WHEN n.breaker <> 'closed' AND EXISTS (SELECT FROM mine) THEN now() + $3 * interval '1 millisecond' "
    "ELSE n.retry_at END FROM lane WHERE n.provider = $1 AND EXISTS (SELECT FROM mine)) "
    "SELECT m.id, o.request_id, CASE WHEN m.reference <> '' THEN m.reference ELSE coalesce(r.reference, "
    "(SELECT a.alias FROM recibo.aliases a WHERE a.operation = m.operation ORDER BY a.learned_at, a.alias LIMIT 1), '') END, "
    "m.cause, coalesce(m.reason, ''), m.attempts, m.times FROM mine m JOIN recibo.operations o ON o.id = m.operation "
    "LEFT JOIN recibo.registrations r ON r.operation = m.operation ORDER BY m.id",
    {oid::text, oid::uuid, oid::int8, oid::int8, oid::int8, oid::int8, oid::int8}};

const statement settle_one{
    "settle_look_up",
    "UPDATE recibo.look_ups SET status = $4, lease_until = NULL, leased_by = NULL, reason = $5, "
    "next_attempt_at = now() + $6 * interval '1 millisecond', settled_at = CASE WHEN $4 = 'failed' THEN now() END, "
    "attempts = attempts - $7 WHERE id = $1 AND leased_by = $2 AND attempts = $3 AND status IS NOT DISTINCT FROM 'asking'",
    {oid::uuid, oid::uuid, oid::int4, oid::text, oid::text, oid::int8, oid::int4}};

const statement insert_attempt{
    "insert_look_up_attempt",
    "INSERT INTO recibo.look_up_attempts (look_up, attempt, at, host, duration_ms, answer_status, outcome) "
    "VALUES ($1, $2, now(), $3, $4, $5, $6) ON CONFLICT DO NOTHING",
    {oid::uuid, oid::int4, oid::text, oid::int4, oid::int4, oid::text}};

// Several replicas may find out at once: the one that comes first counts. What is known holds for as long as nobody tries, and
// a little longer, until the next attempt has been made; and for a day at most.
const statement open_lane{
    "open_look_up_breaker",
    "WITH opened AS (UPDATE recibo.look_up_lanes SET breaker = 'open', retry_at = now() + $2 * interval '1 millisecond', "
    "openings = openings + 1 WHERE provider = $1 AND breaker <> 'open' RETURNING provider) "
    "INSERT INTO recibo.provider_downtimes AS d (provider, cause, began_at, known_until) SELECT o.provider, 'look_ups', now(), "
    "now() + $2 * interval '1 millisecond' + interval '1 minute' FROM opened o WHERE $3 "
    "ON CONFLICT (provider, cause) WHERE ended_at IS NULL DO UPDATE SET "
    "known_until = greatest(d.known_until, least(excluded.known_until, d.began_at + interval '1 day'))",
    {oid::text, oid::int8, oid::boolean}};
// $1 provider, $2 it can be asked, $3 it lists its events.
const statement close_lane{
    "close_look_up_breaker",
    "WITH closed AS (UPDATE recibo.look_up_lanes SET breaker = 'closed', retry_at = NULL, openings = 0 "
    "WHERE provider = $1 AND breaker <> 'closed' RETURNING provider), " +
        end_downtimes("closed", "look_ups") +
        ", missed AS (SELECT b.provider, b.began_at FROM ended_downtimes b WHERE b.began_at < now() - interval '5 minutes'), " +
        ask_about_missed("missed", "$2", "$3") + "SELECT count(*) FROM closed",
    {oid::text, oid::boolean, oid::boolean}};

const statement hold_lane{"hold_look_ups",
                          "UPDATE recibo.look_up_lanes SET asked_until = greatest(asked_until, now() + $2 * interval "
                          "'1 millisecond') WHERE provider = $1",
                          {oid::text, oid::int8}};

const statement select_latest{
    "find_latest_look_up",
    "SELECT l.id FROM recibo.look_ups l JOIN recibo.operations o ON o.id = l.operation WHERE o.request_id = $1 "
    "ORDER BY l.id DESC LIMIT 1",
    {oid::text}};

awaitable<result<postgres::outcome>> run_look_ups(postgres::pool& pool, pipeline work, deadline until) {
  auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return done;
}

awaitable<result<void>> change_lane(postgres::pool& pool, const statement& what, parameters with, deadline until) {
  pipeline work;
  work.add(what, std::move(with));
  const auto done = co_await run_look_ups(pool, std::move(work), until);
  if (!done) co_return done.error();
  co_return result<void>();
}

std::int64_t thousandths(double number) { return std::llround(number * 1000); }

std::string_view look_up_status(look_up_outcome::next what) noexcept {
  return what == look_up_outcome::next::failed ? "failed" : "asking";
}

}  // namespace

new_look_ups::new_look_ups() : rows(insert_look_ups) {}
void new_look_ups::add(const look_up_row& r, sys_micros at) {
  const auto id = make_id<look_up_id>(at);
  rows.next().add(id.binary());
  rows.next().add(r.operation.binary());
  rows.next().add(r.provider);
  rows.next().add(r.reference);
  rows.next().add(r.cause);
  rows.next().add(r.asked_by);
  rows.next().add_int4(r.times);
  rows.next().add_time(at);
  add_number_or_null(rows.next(), r.sequence);
}

void append_find_retry_look_ups(checked_pipeline& to, const std::vector<operation_id>& operations) {
  binary_array ids(oid::uuid);
  for (const auto& id : operations) ids.add(id.binary());
  parameters with;
  with.array(std::move(ids));
  to.add(find_retry_look_ups, std::move(with));
}

std::vector<retry_look_up> read_retry_look_ups(const postgres::rows& from) {
  std::vector<retry_look_up> out;
  for (int i = 0; i < from.size(); ++i) {
    auto& one = out.emplace_back();
    one.operation = from.id<operation_id>(i, 0);
    one.sequence = from.int4(i, 1);
    if (!from.is_null(i, 2)) one.moved = from.int4(i, 2);
    one.status = from.string(i, 3);
    one.reason = from.string(i, 4);
    one.disposition = from.string(i, 5);
    one.repeatable = from.string(i, 6);
    one.fresh = from.boolean(i, 7);
    one.by_clock = from.boolean(i, 8);
  }
  return out;
}

awaitable<result<std::optional<std::string>>> retry_look_up_status(postgres::pool& pool, std::string request_id, deadline until) {
  parameters with;
  with.text(request_id);
  const auto found = co_await pool.query(select_retry_status, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<std::string>();
  co_return std::optional(found->string(0, 0));
}

hastened_look_ups::hastened_look_ups() : rows(hasten_look_ups) {}
void hastened_look_ups::add(const operation_id& operation) { rows.next().add(operation.binary()); }

answered_look_ups::answered_look_ups() : rows(answer_look_ups) {}
void answered_look_ups::add(const row& r, sys_micros at) {
  rows.next().add(r.id.binary());
  rows.next().add(r.holder);
  rows.next().add_int4(r.attempt);
  rows.next().add(r.status);
  rows.next().add(r.outcome);
  rows.next().add(r.disposition);
  rows.next().add(r.host);
  rows.next().add(r.delivery.binary());
  rows.next().add_int4(r.duration_ms);
  add_number_or_null(rows.next(), r.answer_status);
  rows.next().add_time(at);
  rows.next().add(r.repeatable);
}

awaitable<result<look_up_peek>> peek_look_ups(postgres::pool& pool, std::string provider, deadline until) {
  parameters with;
  with.text(provider);
  const auto found = co_await pool.query(peek_lane, std::move(with), until);
  if (!found) co_return found.error();
  look_up_peek out;
  out.due = found->boolean(0, 0);
  out.listing = found->boolean(0, 1);
  out.breaker = found->string(0, 2);
  co_return out;
}

awaitable<result<claimed_look_ups>> claim_look_ups(postgres::pool& pool, look_up_claim what, deadline until) {
  parameters made, locked, claimed;
  made.text(what.provider).int8(thousandths(what.burst));
  locked.text(what.provider);
  claimed.text(what.provider).uuid(what.by).int8(what.lease.count());
  claimed.int8(thousandths(what.per_second)).int8(thousandths(what.burst)).int8(what.concurrency).int8(what.limit);
  pipeline work;
  work.add(by_index).add(make_lane, std::move(made)).add(lock_lane, std::move(locked)).add(claim_due, std::move(claimed));
  const auto done = co_await run_look_ups(pool, std::move(work), until);
  if (!done) co_return done.error();
  claimed_look_ups out;
  const auto& lane = done->answers.at(2);
  out.breaker = lane.string(0, 0);
  out.openings = lane.int4(0, 1);
  const auto& rows = done->answers.at(3);
  if (!rows.empty() && lane.boolean(0, 2)) out.breaker = "half_open";
  for (int i = 0; i < rows.size(); ++i) {
    auto& one = out.all.emplace_back();
    one.id = rows.id<look_up_id>(i, 0);
    one.request_id = rows.string(i, 1);
    one.reference = rows.string(i, 2);
    one.cause = rows.string(i, 3);
    one.reason = rows.string(i, 4);
    one.attempts = rows.int4(i, 5);
    one.times = rows.int4(i, 6);
  }
  co_return out;
}

awaitable<result<void>> settle_look_up(postgres::pool& pool, look_up_holder by, look_up_outcome what, deadline until) {
  const bool returned = what.what == look_up_outcome::next::returned;
  parameters settled;
  settled.uuid(what.id).uuid(by).int4(what.attempt).text(look_up_status(what.what)).text(what.reason).int8(what.wait.count());
  settled.int4(returned ? 1 : 0);
  pipeline work;
  work.add(settle_one, std::move(settled));
  if (!returned) {
    parameters tried;
    tried.uuid(what.id).int4(what.attempt).text(what.host).int4(static_cast<std::int32_t>(what.duration.count()));
    if (what.answer_status) {
      tried.int4(*what.answer_status);
    } else {
      tried.null();
    }
    tried.text(what.reason);
    work.add(insert_attempt, std::move(tried));
  }
  const auto done = co_await run_look_ups(pool, std::move(work), until);
  if (!done) co_return done.error();
  co_return result<void>();
}

awaitable<result<void>> open_look_up_breaker(postgres::pool& pool, std::string provider, std::chrono::milliseconds wait,
                                             bool theirs, deadline until) {
  parameters with;
  with.text(provider).int8(wait.count()).boolean(theirs);
  return change_lane(pool, open_lane, std::move(with), until);
}

awaitable<result<void>> close_look_up_breaker(postgres::pool& pool, std::string provider, missed_by ask, deadline until) {
  parameters with;
  with.text(provider).boolean(ask.look_ups).boolean(ask.event_list);
  return change_lane(pool, close_lane, std::move(with), until);
}

awaitable<result<void>> hold_look_ups(postgres::pool& pool, std::string provider, std::chrono::milliseconds wait,
                                      deadline until) {
  parameters with;
  with.text(provider).int8(wait.count());
  return change_lane(pool, hold_lane, std::move(with), until);
}

awaitable<result<std::optional<look_up_id>>> find_latest_look_up(postgres::pool& pool, std::string request_id, deadline until) {
  parameters with;
  with.text(request_id);
  const auto found = co_await pool.query(select_latest, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<look_up_id>();
  co_return std::optional(found->id<look_up_id>(0, 0));
}

}  // namespace recibo::storage
