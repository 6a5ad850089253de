#include "recibo/storage/reads_outbox.hpp"

#include "again.hpp"
#include "recibo/postgres/sqlstate.hpp"
#include "search.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <initializer_list>
#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::deadline;
using postgres::parameters;
using postgres::pipeline;
using postgres::rows;
using postgres::statement;

const std::string outbox_columns =
    "n.id, o.request_id, n.destination, n.type, n.status, n.sequence::int8, n.attempts::int8, n.created_at, n.next_attempt_at, "
    "n.delivered_at, n.dead_at, n.reason, n.reason_class, e.provider";
constexpr int outbox_column_count = 14;
// Its operation, or the event of a provider.
const std::string outbox_source =
    " FROM recibo.notifications n LEFT JOIN recibo.operations o ON o.id = n.operation "
    "LEFT JOIN recibo.provider_events e ON e.key = n.operation AND e.sequence = n.sequence WHERE ";

// $1 destination, $2 type, $3 reason, $4 request ID, $5 created after, $6 created before, $7 reason class, $8 dead after, $9 dead
// before.
const std::string outbox_filtered =
    "($1 IS NULL OR n.destination = $1) AND ($2 IS NULL OR n.type = $2) AND ($3 IS NULL OR n.reason = $3) "
    "AND ($4 IS NULL OR n.operation = (SELECT x.id FROM recibo.operations x WHERE x.request_id = $4)) "
    "AND ($5 IS NULL OR n.created_at >= $5) AND ($6 IS NULL OR n.created_at < $6) AND ($7 IS NULL OR n.reason_class = $7) "
    "AND ($8 IS NULL OR n.dead_at >= $8) AND ($9 IS NULL OR n.dead_at < $9) ";
// Types of the filter's parameters, and of those that follow it.
std::vector<std::uint32_t> filter_and(std::initializer_list<std::uint32_t> more) {
  std::vector<std::uint32_t> out = {oid::text,        oid::text, oid::text,        oid::text,       oid::timestamptz,
                                    oid::timestamptz, oid::text, oid::timestamptz, oid::timestamptz};
  out.insert(out.end(), more);
  return out;
}

// Where the rows of a list come from: what they are looked for in, one by one, newest first.
enum class outbox_origin {
  window,     // the table, a window after the other
  operation,  // $4, by its key
  stopped,    // what is held or dead, in its own index
  pending,    // all of it, sorted, as long as it is little
};
constexpr std::size_t outbox_origin_count = 4;
// Above it a window of the table finds what is pending.
constexpr std::int64_t pending_sorted_max = 5'000;

const std::string listed_columns =
    "s.id, s.operation, s.sequence, s.destination, s.type, s.status, s.attempts, s.created_at, s.next_attempt_at, "
    "s.delivered_at, "
    "s.dead_at, s.reason, s.reason_class";
std::string outbox_candidates(outbox_origin from) {
  switch (from) {
    case outbox_origin::window: return "recibo.notifications s WHERE ";
    case outbox_origin::operation:
      return "(SELECT * FROM recibo.notifications x WHERE x.operation = (SELECT p.id FROM recibo.operations p WHERE p.request_id "
             "= $4) OFFSET 0) s WHERE ";
    // A literal, so that the small index serves.
    case outbox_origin::stopped: return "recibo.notifications s WHERE s.status IN ('held', 'dead') AND ";
    case outbox_origin::pending: return "c s WHERE ";
  }
  return "";
}

// One look at up to $11 rows before $10, of which up to $12 that pass come back, each with where the look ended, how many it saw,
// and how many there were to sort. Bounds of the destination that serve the index, whether one is asked for or not.
statement list_from(outbox_origin from) {
  const bool sorts = from == outbox_origin::pending;
  std::string sql = "WITH ";
  if (sorts)
    sql +=
        "c AS MATERIALIZED (SELECT * FROM recibo.notifications x WHERE x.status = 'pending' AND x.destination >= coalesce($1, "
        "'') AND x.destination <= coalesce($1, chr(1114111)) LIMIT " +
        std::to_string(pending_sorted_max) + "), ";
  sql += "w AS MATERIALIZED (SELECT " + listed_columns + " FROM " + outbox_candidates(from) +
         "s.id < $10 ORDER BY s.id DESC LIMIT $11), "
         "page AS MATERIALIZED (SELECT n.* FROM w n WHERE " +
         outbox_filtered + "AND ($13 IS NULL OR n.status = $13) ORDER BY n.id DESC LIMIT $12) SELECT " + outbox_columns +
         ", (SELECT w.id FROM w ORDER BY w.id LIMIT 1), (SELECT count(*) FROM w), " +
         (sorts ? "(SELECT count(*) FROM c)" : "0::int8") +
         " FROM (VALUES (1)) AS always LEFT JOIN (page n LEFT JOIN recibo.operations o ON o.id = n.operation "
         "LEFT JOIN recibo.provider_events e ON e.key = n.operation AND e.sequence = n.sequence) ON true ORDER BY n.id DESC";
  return {"list_notifications_" + std::to_string(static_cast<int>(from)), sql,
          filter_and({oid::uuid, oid::int8, oid::int8, oid::text})};
}
const std::array<statement, outbox_origin_count> lists{list_from(outbox_origin::window), list_from(outbox_origin::operation),
                                                       list_from(outbox_origin::stopped), list_from(outbox_origin::pending)};

outbox_origin origin_of(const outbox_filter& f) noexcept {
  if (f.request_id) return outbox_origin::operation;
  if (f.status == "dead" || f.status == "held") return outbox_origin::stopped;
  return f.status == "pending" ? outbox_origin::pending : outbox_origin::window;
}

const statement select_outbox_one{"find_notification", "SELECT " + outbox_columns + outbox_source + "n.id = $1", {oid::uuid}};
const statement select_attempts{
    "find_notification_attempts",
    "SELECT * FROM (SELECT a.attempt::int8, a.duration_ms::int8, a.at, a.answer_status::int8, a.outcome, a.excerpt "
    "FROM recibo.notification_attempts a WHERE a.notification = $1 ORDER BY a.attempt DESC LIMIT 100) last ORDER BY 1",
    {oid::uuid}};
const statement select_actions{"find_notification_actions",
                               "SELECT a.action::text, a.kind, a.actor, a.reason, a.at FROM recibo.notification_actions a "
                               "WHERE a.notification = $1 ORDER BY a.at, a.action LIMIT 1000",
                               {oid::uuid}};
const statement insert_replay{
    "begin_notification_replay",
    "INSERT INTO recibo.notification_replays (action, body_digest) VALUES ($1, $2) ON CONFLICT DO NOTHING "
    "RETURNING 1",
    {oid::uuid, oid::bytea}};
// A second statement, so that it sees who was quicker.
const statement select_replay{"find_notification_replay",
                              "SELECT r.began_at, r.body_digest = $2, (SELECT count(*) FROM recibo.notification_actions a "
                              "WHERE a.action = $1) FROM recibo.notification_replays r WHERE r.action = $1",
                              {oid::uuid, oid::bytea}};

const std::string dead_ones = "FROM recibo.notifications n WHERE n.status = 'dead' AND n.status IN ('held', 'dead') AND ";
const statement count_them{"count_dead_notifications", "SELECT count(*) " + dead_ones + outbox_filtered, filter_and({})};
const statement group_them{"group_dead_notifications",
                           "SELECT n.destination, coalesce(n.reason, ''), coalesce(n.reason_class, ''), count(*) " + dead_ones +
                               outbox_filtered + "GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2 LIMIT 1000",
                           filter_and({})};

// What moves a dead one and puts the action on record; `chosen` says which, $a action, $b actor, $c reason.
std::string replay_of(const std::string& chosen, const std::string& a, const std::string& b, const std::string& c) {
  return "WITH chosen AS MATERIALIZED (" + chosen +
         "), moved AS (UPDATE recibo.notifications n SET status = 'pending', next_attempt_at = NULL, dead_at = NULL, "
         "attempts_before = n.attempts FROM chosen c WHERE n.operation = c.operation AND n.sequence = c.sequence "
         "AND n.destination = c.destination RETURNING n.id, n.operation, n.sequence, n.destination), "
         "noted AS (INSERT INTO recibo.notification_actions (action, notification, kind, actor, reason, at) "
         "SELECT " +
         a + ", moved.id, 'replay', " + b + ", " + c +
         ", now() FROM moved), "
         "freed AS (UPDATE recibo.notifications n SET status = 'pending' FROM (SELECT DISTINCT moved.operation, "
         "moved.destination FROM "
         "moved ORDER BY moved.operation, moved.destination) m CROSS JOIN LATERAL (SELECT x.operation, x.sequence, x.destination "
         "FROM recibo.notifications x WHERE x.operation = m.operation AND x.destination = m.destination AND x.status = 'held' "
         "ORDER BY x.sequence OFFSET 0 FOR UPDATE) behind "
         "WHERE n.operation = behind.operation AND n.sequence = behind.sequence AND n.destination = behind.destination) "
         "SELECT count(*) FROM moved";
}
const statement replay_many{
    "replay_dead_notifications",
    replay_of(
        "SELECT n.operation, n.sequence, n.destination " + dead_ones + outbox_filtered +
            "AND NOT EXISTS (SELECT FROM recibo.notification_actions a WHERE a.notification = n.id AND a.action = $10 OFFSET 0) "
            "ORDER BY n.operation, n.sequence, n.destination LIMIT $13 FOR UPDATE",
        "$10", "$11", "$12"),
    filter_and({oid::uuid, oid::text, oid::text, oid::int8})};
const statement replay_one{"replay_notification",
                           replay_of("SELECT n.operation, n.sequence, n.destination FROM recibo.notifications n WHERE n.id = $1 "
                                     "AND n.status IS NOT DISTINCT FROM 'dead' FOR UPDATE",
                                     "$2", "$3", "$4"),
                           {oid::uuid, oid::uuid, oid::text, oid::text}};

const statement discard_one{
    "discard_notification",
    "WITH moved AS (UPDATE recibo.notifications n SET status = 'discarded', next_attempt_at = NULL, lease_until = NULL, "
    "leased_by = NULL WHERE n.id = $1 "
    "AND (n.status IN ('dead', 'held') OR (n.status = 'pending' AND (n.lease_until IS NULL OR n.lease_until < now()))) "
    "RETURNING n.id), noted AS (INSERT INTO recibo.notification_actions (action, notification, kind, actor, reason, at) "
    "SELECT $2, moved.id, 'discard', $3, $4, now() FROM moved) SELECT count(*) FROM moved",
    {oid::uuid, oid::uuid, oid::text, oid::text}};
// A second statement, so that it sees the first.
const statement free_behind{
    "free_behind_notification",
    "UPDATE recibo.notifications n SET status = 'pending' FROM recibo.notifications d CROSS JOIN LATERAL (SELECT "
    "x.operation, x.sequence, x.destination FROM recibo.notifications x WHERE x.operation = d.operation "
    "AND x.destination = d.destination AND x.status = 'held' AND x.sequence > d.sequence "
    "AND NOT EXISTS (SELECT FROM recibo.notifications e WHERE e.operation = x.operation AND e.destination = x.destination "
    "AND e.sequence < x.sequence AND e.status = 'dead' OFFSET 0) ORDER BY x.sequence OFFSET 0 FOR UPDATE) behind "
    "WHERE d.id = $1 AND d.status = 'discarded' AND n.operation = behind.operation AND n.sequence = behind.sequence "
    "AND n.destination = behind.destination",
    {oid::uuid}};

const statement select_destinations{
    "list_destinations",
    "WITH p AS MATERIALIZED (SELECT n.destination, count(*) AS n FROM recibo.notifications n "
    "WHERE n.status = 'pending' GROUP BY 1), "
    "s AS MATERIALIZED (SELECT n.destination, count(*) FILTER (WHERE n.status = 'held') AS held, "
    "count(*) FILTER (WHERE n.status = 'dead') AS dead FROM recibo.notifications n WHERE n.status IN ('held', 'dead') GROUP BY "
    "1) "
    "SELECT names.name, d.paused_at, d.breaker_since, d.retry_at, d.paused_by, d.paused_reason, d.breaker, d.openings::int8, "
    "coalesce(p.n, 0), least((SELECT coalesce(n.next_attempt_at, n.created_at) FROM recibo.notifications n WHERE n.destination = "
    "names.name AND n.status = 'pending' ORDER BY coalesce(n.next_attempt_at, n.created_at) LIMIT 1), "
    "(SELECT n.created_at FROM recibo.notifications n WHERE n.destination = names.name AND n.status = 'pending' "
    "AND n.next_attempt_at IS NOT NULL ORDER BY n.created_at LIMIT 1)), coalesce(s.held, 0), coalesce(s.dead, 0), "
    "coalesce(r.tried, 0), coalesce(r.passed, 0) FROM "
    "(SELECT unnest($1) AS name UNION SELECT x.name FROM recibo.destinations x "
    "UNION SELECT p.destination FROM p UNION SELECT s.destination FROM s) names "
    "LEFT JOIN recibo.destinations d ON d.name = names.name "
    "LEFT JOIN p ON p.destination = names.name LEFT JOIN s ON s.destination = names.name "
    "LEFT JOIN (SELECT a.destination, count(*) AS tried, count(*) FILTER (WHERE a.outcome = 'delivered') AS passed "
    "FROM recibo.notification_attempts a WHERE a.at > now() - interval '5 minutes' GROUP BY 1) r ON r.destination = names.name "
    "ORDER BY names.name",
    {oid::text_array}};

// A second statement here too.
const statement wake_behind_discarded{
    "wake_behind_discarded",
    "UPDATE recibo.notifications n SET next_attempt_at = now(), behind = false FROM recibo.notifications d CROSS JOIN LATERAL ("
    "SELECT x.operation, x.sequence, x.destination FROM recibo.notifications x WHERE x.operation = d.operation "
    "AND x.destination = d.destination AND x.sequence > d.sequence AND x.status IS NOT DISTINCT FROM 'pending' AND x.behind "
    "ORDER BY x.sequence OFFSET 0 FOR UPDATE) w WHERE d.id = $1 AND d.status = 'discarded' AND n.operation = w.operation "
    "AND n.sequence = w.sequence AND n.destination = w.destination",
    {oid::uuid}};

parameters with_filter(const outbox_filter& f) {
  parameters with;
  with.text(f.destination).text(f.type).text(f.reason).text(f.request_id).time(f.created_after).time(f.created_before);
  with.text(f.reason_class).time(f.dead_after).time(f.dead_before);
  return with;
}

outbox_view read_outbox_view(const rows& from, int row) {
  outbox_view v;
  v.id = from.id<notification_id>(row, 0);
  v.request_id = from.text_or_null(row, 1);
  v.destination = from.string(row, 2);
  v.type = from.string(row, 3);
  v.status = from.string(row, 4);
  v.sequence = from.int8(row, 5);
  v.attempts = from.int8(row, 6);
  v.created_at = from.time(row, 7);
  v.next_attempt_at = from.time_or_null(row, 8);
  v.delivered_at = from.time_or_null(row, 9);
  v.dead_at = from.time_or_null(row, 10);
  v.reason = from.text_or_null(row, 11);
  v.reason_class = from.text_or_null(row, 12);
  v.provider = from.text_or_null(row, 13);
  return v;
}

// The count in the first statement's one row.
awaitable<result<std::int64_t>> run_counted(postgres::pool& pool, pipeline work, deadline until) {
  auto running = run_again(pool, work, until);
  const auto done = co_await std::move(running);
  if (!done.ok()) co_return postgres::to_error(done);
  co_return done.answers.front().int8(0, 0);
}

}  // namespace

awaitable<result<outbox_page>> list_notifications(postgres::pool& pool, outbox_query what, deadline until) {
  auto from = what.after;
  auto origin = origin_of(what.filter);
  const auto give_up = std::min(until, std::chrono::steady_clock::now() + search_time);
  const auto wanted = static_cast<std::size_t>(what.limit);
  outbox_page page;
  for (std::size_t step = 0;; ++step) {
    const auto window = windows[std::min(step, windows.size() - 1)];
    notification_id last;
    last.bytes.fill(0xff);
    auto with = with_filter(what.filter);
    with.uuid(from.value_or(last)).int8(window).int8(static_cast<std::int64_t>(wanted + 1 - page.notifications.size()));
    with.text(what.filter.status);
    auto found = co_await pool.query(lists[static_cast<std::size_t>(origin)], std::move(with), until);
    if (!found) co_return found.error();
    if (found->int8(0, outbox_column_count + 2) >= pending_sorted_max) {
      origin = outbox_origin::window;
      continue;
    }
    for (int i = 0; i < found->size(); ++i)
      if (!found->is_null(i, 0)) page.notifications.push_back(read_outbox_view(*found, i));
    if (page.notifications.size() > wanted) {
      page.notifications.resize(wanted);
      page.next = page.notifications.back().id;
      co_return page;
    }
    if (found->int8(0, outbox_column_count + 1) < window) co_return page;
    from = found->id<notification_id>(0, outbox_column_count);
    if (std::chrono::steady_clock::now() >= give_up) {
      page.next = from;
      co_return page;
    }
  }
}

awaitable<result<std::optional<outbox_details>>> find_notification(postgres::pool& pool, notification_id id, deadline until) {
  const auto one = [&] {
    parameters with;
    with.uuid(id);
    return with;
  };
  pipeline look;
  look.add(select_outbox_one, one()).add(select_attempts, one()).add(select_actions, one());
  const auto found = co_await pool.run(look, until);
  if (!found.ok()) co_return postgres::to_error(found);
  if (found.answers[0].empty()) co_return std::optional<outbox_details>();
  outbox_details out;
  out.notification = read_outbox_view(found.answers[0], 0);
  const auto& attempts = found.answers[1];
  for (int i = 0; i < attempts.size(); ++i) {
    auto& a = out.attempts.emplace_back();
    a.attempt = attempts.int8(i, 0);
    a.duration_ms = attempts.int8(i, 1);
    a.at = attempts.time(i, 2);
    a.answer_status = attempts.int8_or_null(i, 3);
    a.outcome = attempts.string(i, 4);
    a.excerpt = attempts.text_or_null(i, 5);
  }
  const auto& actions = found.answers[2];
  for (int i = 0; i < actions.size(); ++i)
    out.actions.push_back(
        {actions.string(i, 0), actions.string(i, 1), actions.string(i, 2), actions.string(i, 3), actions.time(i, 4)});
  co_return std::optional<outbox_details>(std::move(out));
}

awaitable<result<std::int64_t>> count_dead(postgres::pool& pool, outbox_filter which, deadline until) {
  auto found = co_await pool.query(count_them, with_filter(which), until);
  if (!found) co_return found.error();
  co_return found->int8(0, 0);
}

awaitable<result<std::vector<dead_group>>> group_dead(postgres::pool& pool, outbox_filter which, deadline until) {
  auto found = co_await pool.query(group_them, with_filter(which), until);
  if (!found) co_return found.error();
  std::vector<dead_group> out;
  for (int i = 0; i < found->size(); ++i)
    out.push_back({found->string(i, 0), found->string(i, 1), found->string(i, 2), found->int8(i, 3)});
  co_return out;
}

awaitable<result<std::int64_t>> replay_dead(postgres::pool& pool, outbox_filter which, outbox_action why, int limit,
                                            deadline until) {
  auto with = with_filter(which);
  with.uuid(why.id).text(why.actor).text(why.reason).int8(limit);
  pipeline work;
  work.add(replay_many, std::move(with));
  append_ring(work);
  auto running = run_counted(pool, std::move(work), until);
  co_return co_await std::move(running);
}

awaitable<result<replay_begun>> begin_replay(postgres::pool& pool, notification_action_id id, sha256_digest body,
                                             deadline until) {
  const auto named = [&] {
    parameters with;
    with.uuid(id).bytes(binary(body));
    return with;
  };
  pipeline work;
  work.add(insert_replay, named()).add(select_replay, named());
  auto running = run_again(pool, work, until);
  const auto done = co_await std::move(running);
  if (!done.ok()) co_return postgres::to_error(done);
  const auto& found = done.answers[1];
  replay_begun out;
  out.again = done.answers[0].empty();
  out.began_at = found.time(0, 0);
  out.same_body = found.boolean(0, 1);
  out.replayed = found.int8(0, 2);
  co_return out;
}

awaitable<result<bool>> replay_notification(postgres::pool& pool, notification_id id, outbox_action why, deadline until) {
  parameters with;
  with.uuid(id).uuid(why.id).text(why.actor).text(why.reason);
  pipeline work;
  work.add(replay_one, std::move(with));
  append_ring(work);
  auto running = run_counted(pool, std::move(work), until);
  const auto moved = co_await std::move(running);
  if (!moved) co_return moved.error();
  co_return *moved > 0;
}

awaitable<result<bool>> discard_notification(postgres::pool& pool, notification_id id, outbox_action why, deadline until) {
  parameters with, behind, waits;
  with.uuid(id).uuid(why.id).text(why.actor).text(why.reason);
  behind.uuid(id);
  waits.uuid(id);
  pipeline work;
  work.add(discard_one, std::move(with)).add(free_behind, std::move(behind)).add(wake_behind_discarded, std::move(waits));
  append_ring(work);
  auto running = run_counted(pool, std::move(work), until);
  const auto moved = co_await std::move(running);
  if (!moved) co_return moved.error();
  co_return *moved > 0;
}

awaitable<result<std::vector<destination_view>>> list_destinations(postgres::pool& pool, std::vector<std::string> names,
                                                                   deadline until) {
  postgres::binary_array wanted(oid::text);
  for (const auto& name : names) wanted.add(name);
  parameters with;
  with.array(std::move(wanted));
  auto found = co_await pool.query(select_destinations, std::move(with), until);
  if (!found) co_return found.error();
  std::vector<destination_view> out;
  for (int i = 0; i < found->size(); ++i) {
    auto& d = out.emplace_back();
    d.row.name = found->string(i, 0);
    d.row.paused_at = found->time_or_null(i, 1);
    d.row.breaker_since = found->time_or_null(i, 2);
    d.row.retry_at = found->time_or_null(i, 3);
    d.row.paused_by = found->text_or_null(i, 4).value_or("");
    d.row.paused_reason = found->text_or_null(i, 5).value_or("");
    d.row.breaker = found->text_or_null(i, 6).value_or("closed");
    d.row.openings = static_cast<int>(found->int8_or_null(i, 7).value_or(0));
    d.pending = found->int8(i, 8);
    d.oldest_pending_at = found->time_or_null(i, 9);
    d.held = found->int8(i, 10);
    d.dead = found->int8(i, 11);
    d.attempts = found->int8(i, 12);
    d.delivered = found->int8(i, 13);
  }
  co_return out;
}

}  // namespace recibo::storage
