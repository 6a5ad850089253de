#include "recibo/storage/event_lists.hpp"

#include "columns.hpp"
#include "missed.hpp"
#include "recibo/postgres/sqlstate.hpp"

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::binary_array;
using postgres::deadline;
using postgres::parameters;
using postgres::pipeline;
using postgres::statement;

// It begins anew: what is newer may stand before the page that it has reached, and what it has read already is on record. Whoever
// holds a page of it finds it claimed by nobody.
const statement insert_event_list{
    "insert_event_list",
    "INSERT INTO recibo.event_lists AS e (id, provider, started_at, started_by, since) VALUES ($1, $2, now(), $3, $4) " +
        std::string(event_list_anew) + " RETURNING e.id",
    {oid::uuid, oid::text, oid::text, oid::timestamptz}};

const statement claim_one_page{
    "claim_page",
    "WITH due AS MATERIALIZED (SELECT e.id FROM recibo.event_lists e WHERE e.provider = $1 AND e.ended_at IS NULL "
    "AND (e.next_attempt_at IS NULL OR e.next_attempt_at <= now()) AND (e.lease_until IS NULL OR e.lease_until < now()) "
    "AND NOT EXISTS (SELECT FROM recibo.look_up_lanes n WHERE n.provider = $1 AND n.asked_until > now()) "
    "FOR UPDATE SKIP LOCKED) "
    "UPDATE recibo.event_lists e SET lease_until = now() + $3 * interval '1 millisecond', leased_by = $2, "
    "attempts = e.attempts + 1 FROM due WHERE e.id = due.id RETURNING e.id, e.since, e.cursor, e.pages, e.attempts, e.rounds",
    {oid::text, oid::uuid, oid::int8}};

// $1 ID, $2 holder, $3 attempts, $4 a page is on record, $5 it has ended, $6 cursor, $7 reason, $8 wait in ms, $9 attempts that
// do not count, $10 to $14 events, known, parked, review, failed, $15 deliveries, $16 a round of attempts was in vain. What moved
// something is kept until the end of the list, so that it counts once, however often its page is read.
const statement settle_one_page{
    "settle_page",
    "WITH held AS MATERIALIZED (SELECT e.id FROM recibo.event_lists e WHERE e.id = $1 AND e.leased_by = $2 AND e.attempts = $3 "
    "AND e.ended_at IS NULL FOR UPDATE), "
    "moved AS MATERIALIZED (SELECT held.id, d.id AS delivery FROM recibo.deliveries d, held WHERE d.id = ANY($15) "
    "AND d.look_up = $1 AND d.disposition IN ('applied', 'partial') AND NOT EXISTS (SELECT FROM recibo.event_list_healed h "
    "WHERE h.list = $1 AND h.delivery = d.id OFFSET 0)), "
    "kept AS (INSERT INTO recibo.event_list_healed (list, delivery) SELECT m.id, m.delivery FROM moved m WHERE NOT $5), "
    "forgotten AS (DELETE FROM recibo.event_list_healed h USING held WHERE h.list = held.id AND h.list = $1 AND $5), "
    "mine AS MATERIALIZED (SELECT count(*) AS n FROM moved) "
    "UPDATE recibo.event_lists e SET lease_until = NULL, leased_by = NULL, "
    "cursor = CASE WHEN $4 THEN $6 ELSE e.cursor END, pages = e.pages + CASE WHEN $4 THEN 1 ELSE 0 END, "
    "attempts = CASE WHEN ($4 AND NOT $5) OR $16 THEN 0 ELSE e.attempts - $9 END, "
    "rounds = CASE WHEN $4 THEN 0 WHEN $16 THEN e.rounds + 1 ELSE e.rounds END, "
    "ended_at = CASE WHEN $5 THEN now() END, reason = $7, next_attempt_at = now() + $8 * interval '1 millisecond', "
    "events = e.events + $10, healed = e.healed + mine.n, known = e.known + greatest($11 - mine.n, 0), "
    "parked = e.parked + $12, review = e.review + $13, failed = e.failed + $14 "
    "FROM mine, held WHERE e.id = held.id",
    {oid::uuid, oid::uuid, oid::int4, oid::boolean, oid::boolean, oid::text, oid::text, oid::int8, oid::int4, oid::int8,
     oid::int8, oid::int8, oid::int8, oid::int8, oid::uuid_array, oid::boolean}};

const statement select_event_list{
    "read_event_list",
    "SELECT id, provider, started_by, started_at, since, ended_at, reason, pages::int8, events, healed, known, parked, review, "
    "failed, CASE WHEN ended_at IS NULL THEN next_attempt_at END FROM recibo.event_lists WHERE id = $1",
    {oid::uuid}};

awaitable<result<postgres::outcome>> run_event_lists(postgres::pool& pool, pipeline work, deadline until) {
  auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return done;
}

}  // namespace

awaitable<result<look_up_id>> start_event_list(postgres::pool& pool, std::string provider, std::string by, sys_micros since,
                                               deadline until) {
  parameters with;
  with.uuid(make_id<look_up_id>(now())).text(provider).text(by).time(since);
  pipeline work;
  work.add(insert_event_list, std::move(with));
  const auto done = co_await run_event_lists(pool, std::move(work), until);
  if (!done) co_return done.error();
  co_return done->answers.front().id<look_up_id>(0, 0);
}

awaitable<result<std::optional<claimed_page>>> claim_page(postgres::pool& pool, std::string provider, look_up_holder by,
                                                          std::chrono::milliseconds lease, deadline until) {
  parameters with;
  with.text(provider).uuid(by).int8(lease.count());
  pipeline work;
  work.add(claim_one_page, std::move(with));
  const auto done = co_await run_event_lists(pool, std::move(work), until);
  if (!done) co_return done.error();
  const auto& rows = done->answers.front();
  if (rows.empty()) co_return std::optional<claimed_page>();
  claimed_page out;
  out.id = rows.id<look_up_id>(0, 0);
  out.since = rows.time(0, 1);
  out.cursor = rows.string(0, 2);
  out.pages = rows.int4(0, 3);
  out.attempts = rows.int4(0, 4);
  out.rounds = rows.int4(0, 5);
  co_return std::optional(std::move(out));
}

awaitable<result<void>> settle_page(postgres::pool& pool, look_up_holder by, page_outcome what, deadline until) {
  using next = page_outcome::next;
  const bool recorded = what.what == next::on || what.what == next::done;
  const bool ended = what.what == next::done || what.what == next::failed;
  binary_array deliveries(oid::uuid);
  for (const auto& id : what.deliveries) deliveries.add(id.binary());
  parameters with;
  with.uuid(what.id).uuid(by).int4(what.attempts).boolean(recorded).boolean(ended).text(what.cursor);
  with.text(what.reason.empty() ? std::nullopt : std::optional(what.reason));
  with.int8(what.wait.count()).int4(what.what == next::cut ? 1 : 0);
  with.int8(what.events)
      .int8(what.known)
      .int8(what.parked)
      .int8(what.review)
      .int8(what.failed)
      .array(std::move(deliveries))
      .boolean(what.what == next::later);
  pipeline work;
  work.add(settle_one_page, std::move(with));
  const auto done = co_await run_event_lists(pool, std::move(work), until);
  if (!done) co_return done.error();
  co_return result<void>();
}

awaitable<result<std::optional<event_list_report>>> read_event_list(postgres::pool& pool, look_up_id id, deadline until) {
  parameters with;
  with.uuid(id);
  const auto found = co_await pool.query(select_event_list, std::move(with), until);
  if (!found) co_return found.error();
  if (found->empty()) co_return std::optional<event_list_report>();
  event_list_report out;
  out.id = found->id<look_up_id>(0, 0);
  out.provider = found->string(0, 1);
  out.started_by = found->string(0, 2);
  out.started_at = found->time(0, 3);
  out.since = found->time(0, 4);
  out.ended_at = found->time_or_null(0, 5);
  out.reason = found->text_or_null(0, 6);
  out.pages = found->int8(0, 7);
  out.events = found->int8(0, 8);
  out.healed = found->int8(0, 9);
  out.known = found->int8(0, 10);
  out.parked = found->int8(0, 11);
  out.review = found->int8(0, 12);
  out.failed = found->int8(0, 13);
  out.next_attempt_at = found->time_or_null(0, 14);
  co_return std::optional(std::move(out));
}

}  // namespace recibo::storage
