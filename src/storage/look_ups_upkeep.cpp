// Upkeep of look-ups, catch-ups and lists of events: what nobody can ask any more ends, what is old goes, and how long the oldest
// have waited.
#include "columns.hpp"
#include "recibo/postgres/sqlstate.hpp"
#include "recibo/storage/look_ups.hpp"

#include <algorithm>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::binary_array;
using postgres::deadline;
using postgres::parameters;
using postgres::pipeline;
using postgres::statement;

// By providers, which the index begins with: what can be asked is not read, and of the others the oldest.
const statement end_unaskable{
    "end_unaskable_look_ups",
    "WITH RECURSIVE names AS ((SELECT l.provider FROM recibo.look_ups l WHERE l.status IN ('queued', 'asking') ORDER BY "
    "l.provider "
    "LIMIT 1) UNION ALL SELECT n.provider FROM names m CROSS JOIN LATERAL (SELECT l.provider FROM recibo.look_ups l "
    "WHERE l.status IN ('queued', 'asking') AND l.provider > m.provider ORDER BY l.provider LIMIT 1) n), "
    "due AS MATERIALIZED (SELECT d.id FROM names m CROSS JOIN LATERAL (SELECT l.id, greatest(l.asked_at, "
    "l.next_attempt_at, l.lease_until) AS at FROM recibo.look_ups l WHERE l.provider = m.provider "
    "AND l.status IN ('queued', 'asking') ORDER BY l.id LIMIT 500 FOR UPDATE SKIP LOCKED) d "
    "WHERE d.at < now() - $2 * interval '1 second' AND NOT (m.provider = ANY($1)) "
    "AND NOT EXISTS (SELECT FROM recibo.look_up_lanes n WHERE n.provider = m.provider "
    "AND greatest(n.tokens_at, n.retry_at, n.asked_until) > now() - $2 * interval '1 second') LIMIT 500), "
    "ended AS (UPDATE recibo.look_ups l SET status = 'failed', settled_at = now(), reason = 'no_status', lease_until = NULL, "
    "leased_by = NULL FROM due WHERE l.id = due.id RETURNING l.provider) "
    "SELECT provider, count(*) FROM ended GROUP BY provider ORDER BY provider",
    {oid::text_array, oid::int8}};
// What they have listed by then is looked at above.
const statement end_unaskable_listing{
    "end_unaskable_catch_ups",
    "UPDATE recibo.catch_ups c SET listed_at = now() WHERE c.listed_at IS NULL AND NOT (c.provider = ANY($1)) "
    "AND c.started_at < now() - $2 * interval '1 second' AND NOT EXISTS (SELECT FROM recibo.look_up_lanes n WHERE n.provider = "
    "c.provider AND greatest(n.tokens_at, n.retry_at, n.asked_until) > now() - $2 * interval '1 second')",
    {oid::text_array, oid::int8}};

// A list that is being read by somebody is left to them.
const statement end_unlisted{
    "end_unlisted_event_lists",
    "WITH ended AS (UPDATE recibo.event_lists e SET ended_at = now(), reason = 'no_list', lease_until = NULL, leased_by = NULL "
    "WHERE e.ended_at IS NULL AND NOT (e.provider = ANY($1)) AND greatest(e.started_at, e.next_attempt_at, e.lease_until) < "
    "now() - "
    "$2 * interval '1 second' RETURNING e.id) "
    "DELETE FROM recibo.event_list_healed h USING ended WHERE h.list = ended.id",
    {oid::text_array, oid::int8}};

const statement sweep_old_look_ups{
    "sweep_look_ups", "SELECT recibo.sweep_look_ups(make_interval(secs => $1::double precision), 5000)", {oid::int8}};
const statement sweep_old_downtimes{
    "sweep_downtimes", "SELECT recibo.sweep_downtimes(make_interval(secs => $1::double precision), 5000)", {oid::int8}};

// One after the other by the index, however many are asked: the first is the oldest, as IDs are made when they are asked for.
const statement select_oldest{
    "oldest_look_ups",
    "WITH RECURSIVE first AS ((SELECT l.provider, l.asked_at FROM recibo.look_ups l WHERE l.status IN ('queued', 'asking') "
    "ORDER BY l.provider, l.id LIMIT 1) UNION ALL SELECT n.provider, n.asked_at FROM first f CROSS JOIN LATERAL (SELECT "
    "l.provider, l.asked_at FROM recibo.look_ups l WHERE l.status IN ('queued', 'asking') AND l.provider > f.provider "
    "ORDER BY l.provider, l.id LIMIT 1) n) SELECT provider, extract(epoch FROM now() - asked_at)::text FROM first",
    {}};

const statement select_unread_lists{
    "unread_event_lists",
    "SELECT e.provider, extract(epoch FROM now() - e.started_at)::text FROM (SELECT DISTINCT ON (x.provider) x.provider, "
    "x.started_at, x.ended_at, x.reason FROM recibo.event_lists x ORDER BY x.provider, x.id DESC) e "
    "WHERE e.ended_at IS NULL OR e.reason IS NOT NULL",
    {}};

awaitable<result<postgres::outcome>> run_look_up_upkeep(postgres::pool& pool, pipeline work, deadline until) {
  auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return done;
}

}  // namespace

awaitable<result<std::vector<std::pair<std::string, std::int64_t>>>> end_unaskable_look_ups(postgres::pool& pool,
                                                                                            std::vector<std::string> askable,
                                                                                            std::vector<std::string> listed_by,
                                                                                            std::chrono::seconds grace,
                                                                                            deadline until) {
  binary_array names(oid::text), again(oid::text);
  for (const auto& name : askable) {
    names.add(name);
    again.add(name);
  }
  binary_array lists(oid::text);
  for (const auto& name : listed_by) lists.add(name);
  parameters ended, listed, unlisted;
  unlisted.array(std::move(lists)).int8(grace.count());
  ended.array(std::move(names)).int8(grace.count());
  listed.array(std::move(again)).int8(grace.count());
  pipeline work;
  work.add(end_unaskable, std::move(ended)).add(end_unaskable_listing, std::move(listed)).add(end_unlisted, std::move(unlisted));
  const auto done = co_await run_look_up_upkeep(pool, std::move(work), until);
  if (!done) co_return done.error();
  std::vector<std::pair<std::string, std::int64_t>> out;
  const auto& rows = done->answers.front();
  for (int i = 0; i < rows.size(); ++i) out.emplace_back(rows.string(i, 0), rows.int8(i, 1));
  co_return out;
}

awaitable<result<std::int64_t>> sweep_look_ups(postgres::pool& pool, std::chrono::seconds keep, deadline until) {
  parameters with, too;
  with.int8(keep.count());
  too.int8(keep.count());
  pipeline work;
  work.add(sweep_old_look_ups, std::move(with)).add(sweep_old_downtimes, std::move(too));
  const auto done = co_await run_look_up_upkeep(pool, std::move(work), until);
  if (!done) co_return done.error();
  co_return std::int64_t{done->answers.front().int4(0, 0)};
}

awaitable<result<std::vector<std::pair<std::string, double>>>> unread_event_lists(postgres::pool& pool, deadline until) {
  const auto found = co_await pool.query(select_unread_lists, parameters(), until);
  if (!found) co_return found.error();
  std::vector<std::pair<std::string, double>> out;
  for (int i = 0; i < found->size(); ++i) out.emplace_back(found->string(i, 0), std::max(0.0, std::stod(found->string(i, 1))));
  co_return out;
}

awaitable<result<std::vector<std::pair<std::string, double>>>> oldest_look_ups(postgres::pool& pool, deadline until) {
  const auto found = co_await pool.query(select_oldest, parameters(), until);
  if (!found) co_return found.error();
  std::vector<std::pair<std::string, double>> out;
  for (int i = 0; i < found->size(); ++i) out.emplace_back(found->string(i, 0), std::max(0.0, std::stod(found->string(i, 1))));
  co_return out;
}

}  // namespace recibo::storage
