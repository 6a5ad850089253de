#include "recibo/storage/timers.hpp"

#include "columns.hpp"
#include "missed.hpp"

#include <string>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using postgres::binary_array;
using postgres::parameters;
using postgres::rows;
using postgres::statement;

// A sign of life that is later than the begin of the transaction may be the first one after a freeze. The outage that was noted
// with it ends later than now(), too, and would not be counted: nothing is due by it, before the next try.
const statement find_timers{
    "find_timers",
    "SELECT t.operation, t.kind, t.due_at, t.set_at, t.event, t.version, t.fired_at IS NOT NULL, t.due_at <= now() AND EXISTS "
    "(SELECT FROM recibo.intake i WHERE i.alive_at <= now() AND i.alive_at > now() - interval '" +
        std::to_string(intake_alive_for.count()) +
        " seconds'), now(), t.was_due_at FROM recibo.timers t WHERE t.operation = ANY($1)",
    {oid::uuid_array}};

// A provider that was out for seconds is no outage. One that ends, or begins, later than now was noted while the clock was wrong.
// Read by provider and by when it ended, so that it costs what there has been since the timer was set.
const statement find_downtimes{
    "find_downtimes",
    "WITH since AS MATERIALIZED (SELECT min(t.set_at) AS at FROM recibo.timers t WHERE t.operation = ANY($1)), "
    "theirs AS (SELECT x.* FROM (SELECT DISTINCT o.provider FROM recibo.operations o WHERE o.id = ANY($1)) o "
    "CROSS JOIN LATERAL (SELECT p.began_at, coalesce(p.ended_at, least(now(), p.known_until)) AS ended_at, p.provider, "
    "p.ended_at IS NULL AND p.known_until > now() AS goes_on FROM recibo.provider_downtimes p WHERE p.provider = o.provider "
    "AND coalesce(p.ended_at, p.known_until) > (SELECT since.at FROM since) AND p.began_at <= now() "
    "AND (p.ended_at IS NULL OR p.ended_at <= now()) OFFSET 0) x) "
    "SELECT d.began_at, d.ended_at, '', false FROM recibo.downtimes d WHERE d.ended_at > (SELECT since.at FROM since) "
    "AND d.ended_at <= now() "
    "UNION ALL SELECT t.began_at, t.ended_at, t.provider, t.goes_on FROM theirs t WHERE t.goes_on "
    "OR t.ended_at > t.began_at + interval '1 minute' ORDER BY 1",
    {oid::uuid_array}};

// Where no time is given it is set now: least() leaves out what is NULL.
const statement insert_timers{
    "set_timers",
    "INSERT INTO recibo.timers AS t (operation, kind, due_at, set_at, event, version, was_due_at) "
    "SELECT u.operation, u.kind, coalesce(u.at, now() + u.after_s * interval '1 second'), least(u.set_at, now()), "
    "u.event, u.version, u.was_due_at FROM unnest($1, $2, $3, $4, $5, $6, $7, $8) AS u(operation, kind, at, after_s, event, "
    "version, set_at, was_due_at) "
    "ON CONFLICT (operation, kind) DO UPDATE SET due_at = excluded.due_at, set_at = excluded.set_at, event = excluded.event, "
    "version = excluded.version, was_due_at = excluded.was_due_at, fired_at = NULL",
    {oid::uuid_array, oid::text_array, oid::timestamptz_array, oid::int8_array, oid::text_array, oid::int4_array,
     oid::timestamptz_array, oid::timestamptz_array}};

const statement end_timers{
    "end_timers",
    "DELETE FROM recibo.timers t USING unnest($1, $2) AS u(operation, kind) WHERE t.operation = u.operation AND t.kind = u.kind "
    "AND t.operation = ANY($1)",
    {oid::uuid_array, oid::text_array}};

const statement fire_timers{"fire_timers",
                            "UPDATE recibo.timers t SET fired_at = now() FROM unnest($1, $2) AS u(operation, kind) "
                            "WHERE t.operation = u.operation AND t.kind = u.kind AND t.operation = ANY($1)",
                            {oid::uuid_array, oid::text_array}};

const statement resume_deadlines{
    "resume_deadlines",
    "WITH resumed AS (INSERT INTO recibo.timers (operation, kind, due_at, set_at, event, version, fired_at) "
    "SELECT u.operation, 'deadline', d.deadline, now(), 'overdue', u.version, CASE WHEN d.deadline <= now() THEN now() END "
    "FROM unnest($1, $2, $3) AS u(operation, corrected, version) "
    "JOIN recibo.registrations r ON r.operation = u.operation "
    "LEFT JOIN recibo.corrections c ON c.operation = u.operation AND c.sequence = u.corrected "
    "CROSS JOIN LATERAL (SELECT CASE WHEN c.operation IS NULL THEN r.deadline ELSE c.deadline END AS deadline) d "
    "WHERE d.deadline IS NOT NULL ON CONFLICT (operation, kind) DO NOTHING RETURNING 1) SELECT count(*) FROM resumed",
    {oid::uuid_array, oid::int4_array, oid::int4_array}};

binary_array timer_operations(const std::vector<operation_id>& operations) {
  binary_array out(oid::uuid);
  for (const auto& id : operations) out.add(id.binary());
  return out;
}

}  // namespace

// An operation that somebody holds is passed over before the limit counts: however many are held, the others have their turn.
const statement select_due_timers{
    "select_due_timers",
    "SELECT o.request_id, t.kind FROM recibo.timers t CROSS JOIN LATERAL (SELECT x.request_id FROM recibo.operations x "
    "WHERE x.id = t.operation OFFSET 0 FOR NO KEY UPDATE OF x SKIP LOCKED) o "
    "WHERE t.fired_at IS NULL AND t.due_at <= now() ORDER BY t.due_at LIMIT $1",
    {oid::int8}};

const statement select_due_reviews{
    "select_due_reviews",
    "SELECT v.id, o.request_id, v.kind, v.owner FROM recibo.reviews v LEFT JOIN recibo.operations o ON o.id = v.operation "
    "WHERE v.status = 'open' AND v.reminded_at IS NULL AND v.due_at <= now() ORDER BY v.due_at LIMIT $1 FOR NO KEY UPDATE OF v "
    "SKIP LOCKED",
    {oid::int8}};

// The place is locked by who looks, operations by whom they get a timer for: both are left to whoever holds them. What is set
// names no event, so that it is judged by the configuration, and by the downtimes since the state was entered, when it is due;
// one too many does nothing.
const statement repair_timers{
    "repair_timers",
    "WITH own AS MATERIALIZED (SELECT * FROM unnest($3, $4, $5) AS u(provider, state, after_s)), "
    "run AS MATERIALIZED (SELECT CASE WHEN p.ended_at IS NULL THEN p.place ELSE "
    "'00000000-0000-0000-0000-000000000000'::uuid END AS place FROM recibo.timer_repairs p "
    "WHERE p.ended_at IS NULL OR p.ended_at < now() - $2 * interval '1 second' FOR UPDATE SKIP LOCKED), "
    // A bound of the index, not a condition of a join: between two passes nothing is read.
    "seen AS MATERIALIZED (SELECT o.id, o.state, o.provider, o.workflow, o.corrected FROM recibo.operations o "
    "WHERE o.id > (SELECT run.place FROM run) ORDER BY o.id LIMIT $1), "
    // Each table is taken apart once, however many live by it.
    "states AS MATERIALIZED (SELECT w.version_key, x.value ->> 'name' AS state, (x.value #>> '{limit,after_s}')::bigint AS "
    "after_s "
    "FROM recibo.workflow_versions w CROSS JOIN LATERAL jsonb_array_elements(w.definition::jsonb -> 'states') AS x(value) "
    "WHERE w.version_key IN (SELECT workflow FROM seen) AND NOT coalesce((x.value ->> 'terminal')::boolean, false)), "
    "lacking AS MATERIALIZED (SELECT s.id FROM seen s JOIN states t ON t.version_key = s.workflow AND t.state = s.state "
    "LEFT JOIN own ON own.provider = s.provider AND own.state = s.state "
    "LEFT JOIN recibo.registrations r ON r.operation = s.id "
    "LEFT JOIN recibo.corrections c ON c.operation = s.id AND c.sequence = s.corrected WHERE "
    "(CASE WHEN own.state IS NULL THEN t.after_s ELSE own.after_s END IS NOT NULL "
    "AND NOT EXISTS (SELECT FROM recibo.timers x WHERE x.operation = s.id AND x.kind = 'limit' OFFSET 0)) OR "
    "(CASE WHEN c.operation IS NULL THEN r.deadline ELSE c.deadline END IS NOT NULL "
    "AND NOT EXISTS (SELECT FROM recibo.timers x WHERE x.operation = s.id AND x.kind = 'deadline' OFFSET 0))), "
    "held AS MATERIALIZED (SELECT o.id, o.state, o.state_at, o.provider, o.workflow, o.version, o.corrected "
    // Rows beside it are of an older view than its lock: what was corrected in between is looked at by the next pass.
    "FROM recibo.operations o JOIN seen s ON s.id = o.id WHERE o.id IN (SELECT id FROM lacking) "
    "AND o.corrected IS NOT DISTINCT FROM s.corrected ORDER BY o.id FOR NO KEY UPDATE OF o SKIP LOCKED), "
    "wanted AS (SELECT h.id, h.version, h.state_at, CASE WHEN own.state IS NULL THEN t.after_s ELSE own.after_s END AS after_s, "
    "CASE WHEN c.operation IS NULL THEN r.deadline ELSE c.deadline END AS deadline "
    "FROM held h JOIN states t ON t.version_key = h.workflow AND t.state = h.state "
    "LEFT JOIN own ON own.provider = h.provider AND own.state = h.state "
    "LEFT JOIN recibo.registrations r ON r.operation = h.id "
    "LEFT JOIN recibo.corrections c ON c.operation = h.id AND c.sequence = h.corrected), "
    "given AS (INSERT INTO recibo.timers (operation, kind, due_at, set_at, event, version) "
    "SELECT id, 'limit', state_at + after_s * interval '1 second', state_at, NULL, version FROM wanted WHERE after_s IS NOT NULL "
    "UNION ALL SELECT id, 'deadline', deadline, state_at, 'overdue', version FROM wanted WHERE deadline IS NOT NULL "
    "ON CONFLICT (operation, kind) DO NOTHING RETURNING 1), "
    "moved AS (UPDATE recibo.timer_repairs p SET place = coalesce((SELECT s.id FROM seen s ORDER BY s.id DESC LIMIT 1), "
    "p.place), "
    "ended_at = CASE WHEN (SELECT count(*) FROM seen) < $1 THEN now() END FROM run RETURNING p.ended_at) "
    "SELECT (SELECT count(*) FROM given), coalesce((SELECT ended_at IS NULL FROM moved), false)",
    {oid::int8, oid::int8, oid::text_array, oid::text_array, oid::int8_array}};

// The row lock makes one replica the one that notes a downtime. Where somebody has just been here, nothing is written. Who can be
// asked is asked about what may have been missed, by the same statement: it cannot be noted and forgotten.
const statement beat_intake{
    "beat_intake",
    "WITH last AS MATERIALIZED (SELECT i.alive_at FROM recibo.intake i FOR UPDATE), "
    "beat AS (UPDATE recibo.intake i SET alive_at = now() FROM last WHERE last.alive_at IS NULL "
    "OR last.alive_at < now() - interval '1 second' OR last.alive_at > now() + interval '1 second'), "
    "noted AS (INSERT INTO recibo.downtimes (began_at, ended_at) SELECT last.alive_at, now() FROM last "
    "WHERE last.alive_at < now() - $1 * interval '1 second' ON CONFLICT DO NOTHING RETURNING began_at, ended_at), "
    "asked AS (INSERT INTO recibo.catch_ups AS c (id, provider, started_at, started_by, since, place) "
    "SELECT a.id, a.provider, now(), 'outage', s.since, (lpad(to_hex((extract(epoch FROM s.since) * 1000)::bigint), 12, '0') || "
    "repeat('0', 20))::uuid FROM noted, unnest($2, $3) AS a(provider, id), (SELECT " +
        std::string(all_open_since) + " AS since) s " + catch_up_anew +
        "), "
        // An event is listed by when it happened, which may be a while before it is sent.
        "listed AS (INSERT INTO recibo.event_lists AS e (id, provider, started_at, started_by, since) "
        "SELECT a.id, a.provider, now(), 'outage', noted.began_at - interval '1 hour' FROM noted, unnest($4, $5) AS a(provider, "
        "id) " +
        event_list_anew +
        ") "
        "SELECT noted.began_at, noted.ended_at FROM last LEFT JOIN noted ON true",
    {oid::int8, oid::text_array, oid::uuid_array, oid::text_array, oid::uuid_array}};

void append_find_timers(checked_pipeline& to, const std::vector<operation_id>& operations) {
  parameters with;
  with.array(timer_operations(operations));
  to.add(find_timers, std::move(with));
}

std::vector<timer_row> read_timers(const rows& from) {
  std::vector<timer_row> out;
  for (int i = 0; i < from.size(); ++i) {
    const auto kind = transition::parse_timer_kind(from.text(i, 1));
    if (!kind) continue;
    auto& t = out.emplace_back();
    t.operation = from.id<operation_id>(i, 0);
    t.kind = *kind;
    t.due_at = from.time(i, 2);
    t.set_at = from.time(i, 3);
    t.event = from.text_or_null(i, 4);
    t.version = from.int4(i, 5);
    t.fired = from.boolean(i, 6);
    t.due = from.boolean(i, 7);
    t.read_at = from.time(i, 8);
    t.was_due_at = from.time_or_null(i, 9);
  }
  return out;
}

void append_find_downtimes(checked_pipeline& to, const std::vector<operation_id>& operations) {
  parameters with;
  with.array(timer_operations(operations));
  to.add(find_downtimes, std::move(with));
}

std::vector<downtime_row> read_downtimes(const rows& from) {
  std::vector<downtime_row> out;
  for (int i = 0; i < from.size(); ++i)
    out.push_back({{from.time(i, 0), from.time(i, 1), from.boolean(i, 3)}, from.string(i, 2)});
  return out;
}

set_timers::set_timers() : rows(insert_timers) {}
void set_timers::add(const operation_id& id, transition::timer_kind kind, std::optional<sys_micros> at,
                     std::optional<std::chrono::seconds> after, std::string_view event, std::int32_t version,
                     std::optional<sys_micros> since, std::optional<sys_micros> was_due_at) {
  rows.next().add(id.binary());
  rows.next().add(to_string(kind));
  rows.next().add_time(at);
  rows.next().add_int8(after ? std::optional<std::int64_t>(after->count()) : std::nullopt);
  rows.next().add(event);
  rows.next().add_int4(version);
  rows.next().add_time(since);
  rows.next().add_time(was_due_at);
}

ended_timers::ended_timers() : rows(end_timers) {}
void ended_timers::add(const operation_id& id, transition::timer_kind kind) {
  rows.next().add(id.binary());
  rows.next().add(to_string(kind));
}

fired_timers::fired_timers() : rows(fire_timers) {}
void fired_timers::add(const operation_id& id, transition::timer_kind kind) {
  rows.next().add(id.binary());
  rows.next().add(to_string(kind));
}

resumed_deadlines::resumed_deadlines() : rows(resume_deadlines) {}
void resumed_deadlines::add(const operation_id& id, const std::optional<std::int32_t>& corrected, std::int32_t version) {
  rows.next().add(id.binary());
  add_number_or_null(rows.next(), corrected);
  rows.next().add_int4(version);
}

}  // namespace recibo::storage
