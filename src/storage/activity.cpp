#include "recibo/storage/activity.hpp"

#include "again.hpp"
#include "missed.hpp"
#include "recibo/postgres/sqlstate.hpp"
#include "recibo/storage/timers.hpp"

#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::binary_array;
using postgres::parameters;
using postgres::statement;

// $1 provider, $2 alert, $3 resend gap in seconds, $4 heard so many ms ago, $5 the gap of watching in seconds. A provider is
// silent once it was quiet for its alert, or said less than is expected in its window; after nobody was there to hear it, not
// before its next attempt should have come, or a whole window was heard. Only being heard, and often enough, ends it. Rows that
// say nothing new are left alone for two seconds. now() is the mark by which the statement that changed it knows its own work. $6
// the expected rate's window in seconds. Nothing has been later than now: a clock that was put right takes that back, so that
// nobody is deaf or stays silent by it. $7 for how many seconds a sign of life of intake holds: an outage is one as soon as it is
// over, whether it has been noted by then or not.
const statement watch{
    "watch_providers",
    "INSERT INTO recibo.provider_activity AS p (provider, heard_at, since, watched_at, resumed_at, alert_s, rate_within_s, "
    "rate_since) "
    "SELECT w.provider, now() - w.ago_ms * interval '1 millisecond', now(), now(), now(), w.alert_s, w.within_s, now() "
    "FROM unnest($1, $2, $3, $4, $6) AS w(provider, alert_s, gap_s, ago_ms, within_s) ORDER BY w.provider "
    "ON CONFLICT (provider) DO UPDATE SET heard_at = CASE WHEN greatest(p.heard_at, excluded.heard_at) > now() THEN now() ELSE "
    "greatest(p.heard_at, excluded.heard_at) END, watched_at = now(), since = least(p.since, now()), "
    "silent_at = CASE WHEN p.silent_at > now() THEN now() ELSE p.silent_at END, "
    "resumed_at = CASE WHEN p.watched_at < now() - $5 * interval '1 second' THEN now() ELSE greatest(least(p.resumed_at, now()), "
    // Its end may be noted a moment later than this began. One that ends much later was noted while the clock was wrong.
    "(SELECT least(x.ended_at, now()) FROM recibo.downtimes x WHERE x.ended_at < now() + $7 * interval '1 second' "
    "ORDER BY x.ended_at DESC LIMIT 1), "
    "(SELECT now() FROM recibo.intake i WHERE i.alive_at < now() - $7 * interval '1 second')) END, "
    // Nobody watched it, and callbacks could be taken for longer than that: it had been taken out of the configuration.
    "put_back_at = CASE WHEN now() - p.watched_at - (SELECT coalesce(sum(least(d.ended_at, now()) - greatest(d.began_at, "
    "p.watched_at)), interval '0') FROM (SELECT x.began_at, x.ended_at FROM recibo.downtimes x WHERE x.ended_at > p.watched_at "
    "UNION ALL SELECT i.alive_at, now() FROM recibo.intake i WHERE i.alive_at < now()) d WHERE d.began_at < now() "
    "AND d.ended_at > p.watched_at) > $5 * interval '1 second' OR p.put_back_at > now() THEN now() ELSE p.put_back_at "
    "END, "
    "alert_s = excluded.alert_s, rate_within_s = excluded.rate_within_s, rate_since = CASE WHEN p.rate_within_s IS DISTINCT FROM "
    "excluded.rate_within_s OR p.rate_since > now() THEN now() ELSE p.rate_since END "
    "WHERE excluded.heard_at IS NOT NULL OR p.watched_at < now() - interval '2 seconds' "
    "OR p.watched_at > now() + interval '2 seconds' OR p.alert_s IS DISTINCT FROM excluded.alert_s "
    "OR p.rate_within_s IS DISTINCT FROM excluded.rate_within_s",
    {oid::text_array, oid::int8_array, oid::int8_array, oid::int8_array, oid::int8, oid::int8_array, oid::int8}};

// Into slots of a sixtieth of the window, a second at least. $1 provider, $2 window in seconds, $3 how many.
const statement count_callbacks{
    "count_provider_callbacks",
    "INSERT INTO recibo.provider_counts AS c (provider, at, callbacks) SELECT w.provider, date_bin(greatest(w.within_s, 60) * "
    "interval '1 second' / 60, now(), timestamptz '2000-01-01 00:00:00+00'), w.callbacks FROM unnest($1, $2, $3) AS w(provider, "
    "within_s, callbacks) ORDER BY w.provider ON CONFLICT (provider, at) DO UPDATE SET callbacks = c.callbacks + "
    "excluded.callbacks",
    {oid::text_array, oid::int8_array, oid::int8_array}};
const statement sweep_counts{
    "sweep_provider_counts",
    "DELETE FROM recibo.provider_counts c USING (SELECT x.provider, x.at FROM unnest($1, $2) AS w(provider, within_s) JOIN "
    "recibo.provider_counts x ON x.provider = w.provider AND x.at < now() - 2 * greatest(w.within_s, 60) * interval '1 second' "
    "FOR UPDATE OF x SKIP LOCKED) old WHERE c.provider = old.provider AND c.at = old.at",
    {oid::text_array, oid::int8_array}};

// $1 provider, $2 resend gap in seconds, $3 how many are expected, $4 within so many seconds, $5 destination, $6 type that it
// wants to hear, $7 provider, $8 it can be asked, $9 it lists its events. The slot that reaches out of the window counts as
// within.
const statement judge_silence{
    "judge_silence",
    "WITH known AS MATERIALIZED (SELECT p.*, w.gap_s, w.at_least, w.within_s, d.began_at AS out_since, coalesce((SELECT "
    "sum(c.callbacks) FROM "
    "recibo.provider_counts c WHERE w.at_least IS NOT NULL AND c.provider = p.provider "
    "AND c.at > now() - (w.within_s + greatest(w.within_s, 60) / 60.0) * interval '1 second' AND c.at <= now()), 0) AS callbacks "
    "FROM recibo.provider_activity p JOIN unnest($1, $2, $3, $4) AS w(provider, gap_s, at_least, within_s) "
    "ON w.provider = p.provider LEFT JOIN recibo.provider_downtimes d ON d.provider = p.provider AND d.cause = 'silence' "
    "AND d.ended_at IS NULL), "
    "judged AS (SELECT k.*, k.alert_s IS NOT NULL OR k.at_least IS NOT NULL AS watched, "
    "coalesce(greatest(coalesce(k.heard_at, k.since), k.put_back_at) < now() - k.alert_s * interval '1 second' "
    "AND k.resumed_at < now() - least(k.alert_s, k.gap_s) * interval '1 second', false) AS quiet, "
    "coalesce(k.callbacks < k.at_least AND greatest(k.since, k.rate_since, k.resumed_at) < now() - k.within_s * interval '1 "
    "second', false) AS below, "
    "k.alert_s IS NULL OR coalesce(k.heard_at > k.silent_at OR k.heard_at >= now() - k.alert_s * interval '1 second', false) AS "
    "heard, k.at_least IS NULL OR k.callbacks >= k.at_least AS enough, "
    "greatest(coalesce(k.heard_at, k.since), k.put_back_at) AS last_at, "
    "k.alert_s IS NULL OR coalesce(k.heard_at > k.out_since OR k.heard_at >= now() - k.alert_s * interval '1 second', false) AS "
    "is_back FROM known k), "
    "due AS MATERIALIZED (SELECT j.provider, j.watched, j.silent_at AS was, j.silent_reason AS was_reason, "
    "extract(epoch FROM now() - coalesce(j.heard_at, j.since))::bigint AS quiet_s, "
    "CASE WHEN j.silent_at IS NULL THEN CASE WHEN j.quiet OR j.below THEN now() END "
    "WHEN NOT (j.heard AND j.enough) THEN j.silent_at END AS will_be, "
    "CASE WHEN j.quiet THEN 'quiet' ELSE 'below_rate' END AS why FROM judged j ORDER BY j.provider), "
    "changed AS (UPDATE recibo.provider_activity p SET silent_at = due.will_be, "
    "silent_reason = CASE WHEN due.will_be IS NOT NULL THEN due.why END, "
    "told = p.told + CASE WHEN due.watched THEN 1 ELSE 0 END, "
    "spoke_at = CASE WHEN due.will_be IS NULL AND due.watched THEN now() ELSE p.spoke_at END "
    "FROM due WHERE p.provider = due.provider AND due.was IS DISTINCT FROM due.will_be AND p.silent_at IS NOT DISTINCT FROM "
    "due.was RETURNING p.provider, p.key, p.told, p.heard_at, due.watched, "
    "coalesce(p.rate_within_s, p.alert_s, 0) AS span_s, "
    "due.quiet_s, coalesce(due.was, now()) AS since, "
    "due.will_be IS NOT NULL AS silent, CASE WHEN due.will_be IS NULL THEN coalesce(due.was_reason, 'quiet') ELSE due.why END AS "
    "reason, CASE WHEN due.will_be IS NULL THEN 'provider.resumed' ELSE 'provider.silent' END AS type), "
    "noted AS (INSERT INTO recibo.provider_events (key, sequence, provider, type, reason, at, silent_since, heard_at) "
    "SELECT c.key, c.told, c.provider, c.type, c.reason, now(), c.since, c.heard_at FROM changed c WHERE c.watched), "
    // Whether it is out is a matter of what was heard of it alone, whatever was told and whatever rate is expected. For a day at
    // most: a silence that lasts longer is a person's, and limits run again. Who never called is not known to be out.
    "down AS (INSERT INTO recibo.provider_downtimes (provider, cause, began_at, known_until) SELECT j.provider, 'silence', "
    "j.last_at, now() + interval '1 day' FROM judged j WHERE j.quiet AND j.out_since IS NULL AND j.heard_at IS NOT NULL "
    "AND j.last_at < now() ORDER BY j.provider ON CONFLICT (provider, cause) WHERE ended_at IS NULL DO NOTHING), "
    "spoke AS MATERIALIZED (SELECT j.provider FROM judged j WHERE j.out_since IS NOT NULL AND j.is_back), " +
        end_downtimes("spoke", "silence") +
        ", missed AS (SELECT m.provider, min(m.began_at) AS began_at, m.look_ups, m.event_list FROM (SELECT x.provider, "
        "x.began_at, a.look_ups, a.event_list FROM (SELECT e.provider, least(e.began_at, now()) AS began_at FROM ended_downtimes "
        "e UNION ALL SELECT c.provider, c.since - c.span_s * interval '1 second' FROM changed c WHERE c.watched AND NOT "
        "c.silent) x JOIN unnest($7, $8, $9) AS a(provider, look_ups, event_list) ON a.provider = x.provider) m "
        "GROUP BY m.provider, m.look_ups, m.event_list), " +
        ask_about_missed("missed", "m.look_ups", "m.event_list") +
        ", out AS (INSERT INTO recibo.notifications (id, operation, sequence, destination, type, created_at) SELECT " + uuid_now +
        ", c.key, c.told, l.destination, c.type, now() "
        "FROM changed c JOIN unnest($5, $6) AS l(destination, type) ON l.type = c.type WHERE c.watched) "
        "SELECT c.provider, c.silent, c.quiet_s, c.reason FROM changed c WHERE c.watched ORDER BY c.provider",
    {oid::text_array, oid::int8_array, oid::int8_array, oid::int8_array, oid::text_array, oid::text_array, oid::text_array,
     oid::boolean_array, oid::boolean_array}};

const statement select_activity{
    "read_provider_activity",
    "SELECT p.provider, p.heard_at, p.silent_at, p.spoke_at, "
    "(greatest(extract(epoch FROM now() - coalesce(p.heard_at, p.since)), 0) * 1000)::bigint, p.silent_reason FROM "
    "recibo.provider_activity p",
    {}};

}  // namespace

awaitable<result<std::vector<provider_change>>> watch_providers(postgres::pool& pool, std::vector<provider_watch> all,
                                                                std::vector<silence_listener> listeners,
                                                                postgres::deadline until) {
  binary_array providers(oid::text), alerts(oid::int8), gaps(oid::int8), heard(oid::int8), windows(oid::int8);
  binary_array judged(oid::text), waits(oid::int8), least(oid::int8), within(oid::int8);
  binary_array askers(oid::text), look_ups(oid::boolean), lists(oid::boolean);
  binary_array counted(oid::text), slots(oid::int8), callbacks(oid::int8), swept(oid::text), kept(oid::int8);
  bool any_heard = false, any_rate = false;
  for (const auto& one : all) {
    const auto window = one.at_least ? std::optional<std::int64_t>(one.within.count()) : std::nullopt;
    providers.add(one.provider);
    judged.add(one.provider);
    askers.add(one.provider);
    look_ups.add_bool(one.look_ups);
    lists.add_bool(one.event_list);
    alerts.add_int8(one.alert ? std::optional<std::int64_t>(one.alert->count()) : std::nullopt);
    gaps.add_int8(one.resend_gap.count());
    waits.add_int8(one.resend_gap.count());
    heard.add_int8(one.heard_since ? std::optional<std::int64_t>(one.heard_since->count()) : std::nullopt);
    windows.add_int8(window);
    least.add_int8(one.at_least);
    within.add_int8(window);
    if (!window) continue;
    any_rate = true;
    swept.add(one.provider);
    kept.add_int8(*window);
    if (one.callbacks == 0) continue;
    any_heard = true;
    counted.add(one.provider);
    slots.add_int8(*window);
    callbacks.add_int8(one.callbacks);
  }
  binary_array destinations(oid::text), types(oid::text);
  for (const auto& one : listeners) {
    destinations.add(one.destination);
    types.add(one.type);
  }
  parameters known, by;
  known.array(std::move(providers)).array(std::move(alerts)).array(std::move(gaps)).array(std::move(heard));
  known.int8(watch_gap.count()).array(std::move(windows)).int8(intake_alive_for.count());
  by.array(std::move(judged)).array(std::move(waits)).array(std::move(least)).array(std::move(within));
  by.array(std::move(destinations)).array(std::move(types));
  by.array(std::move(askers)).array(std::move(look_ups)).array(std::move(lists));
  postgres::pipeline work;
  work.add(watch, std::move(known));
  if (any_heard) {
    parameters more;
    more.array(std::move(counted)).array(std::move(slots)).array(std::move(callbacks));
    work.add(count_callbacks, std::move(more));
  }
  if (any_rate) {
    parameters old;
    old.array(std::move(swept)).array(std::move(kept));
    work.add(sweep_counts, std::move(old));
  }
  work.add(judge_silence, std::move(by));
  auto running = run_again(pool, work, until);
  const auto done = co_await std::move(running);
  if (!done.ok()) co_return postgres::to_error(done);
  std::vector<provider_change> out;
  const auto& changed = done.answers.back();
  for (int i = 0; i < changed.size(); ++i)
    out.push_back({changed.string(i, 0), changed.boolean(i, 1), std::chrono::seconds(changed.int8(i, 2)), changed.string(i, 3)});
  co_return out;
}

awaitable<result<std::vector<provider_activity>>> read_provider_activity(postgres::pool& pool, postgres::deadline until) {
  auto found = co_await pool.query(select_activity, {}, until);
  if (!found) co_return found.error();
  std::vector<provider_activity> out;
  for (int i = 0; i < found->size(); ++i)
    out.push_back({found->string(i, 0), found->time_or_null(i, 1), found->time_or_null(i, 2), found->time_or_null(i, 3),
                   static_cast<double>(found->int8(i, 4)) / 1000, found->text_or_null(i, 5)});
  co_return out;
}

}  // namespace recibo::storage
