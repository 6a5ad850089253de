#include "recibo/storage/activity.hpp"

#include "recibo/postgres/sqlstate.hpp"

#include <utility>

namespace recibo::storage {
namespace {

namespace oid = postgres::oid;
using boost::asio::awaitable;
using postgres::binary_array;
using postgres::parameters;
using postgres::statement;

// $1 provider, $2 alert, $3 resend gap in seconds, $4 heard so many ms ago, $5 the gap of watching in seconds. A provider is
// silent once it was quiet for its alert; after nobody was there to hear it, not before its next attempt should have come. Only
// being heard ends it. Rows that say nothing new are left alone for two seconds. now() is the mark by which the statement that
// changed it knows its own work.
const statement watch{
    "watch_providers",
    "INSERT INTO recibo.provider_activity AS p (provider, heard_at, since, watched_at, resumed_at, alert_s) "
    "SELECT w.provider, now() - w.ago_ms * interval '1 millisecond', now(), now(), now(), w.alert_s "
    "FROM unnest($1, $2, $3, $4) AS w(provider, alert_s, gap_s, ago_ms) ORDER BY w.provider "
    "ON CONFLICT (provider) DO UPDATE SET heard_at = greatest(p.heard_at, excluded.heard_at), watched_at = now(), "
    "resumed_at = CASE WHEN p.watched_at < now() - $5 * interval '1 second' THEN now() ELSE p.resumed_at END, "
    "alert_s = excluded.alert_s WHERE excluded.heard_at IS NOT NULL OR p.watched_at < now() - interval '2 seconds' "
    "OR p.watched_at > now() + interval '2 seconds' OR p.alert_s IS DISTINCT FROM excluded.alert_s",
    {oid::text_array, oid::int8_array, oid::int8_array, oid::int8_array, oid::int8}};

const statement judge_silence{
    "judge_silence",
    "WITH due AS MATERIALIZED (SELECT p.provider, p.silent_at AS was, extract(epoch FROM now() - coalesce(p.heard_at, "
    "p.since))::bigint AS quiet_s, "
    "CASE WHEN p.alert_s IS NULL OR p.heard_at > p.silent_at OR p.heard_at >= now() - p.alert_s * interval '1 second' THEN NULL "
    "WHEN p.silent_at IS NOT NULL THEN p.silent_at "
    "WHEN coalesce(p.heard_at, p.since) < now() - p.alert_s * interval '1 second' "
    "AND p.resumed_at < now() - least(p.alert_s, w.gap_s) * interval '1 second' THEN now() END AS will_be, p.alert_s "
    "FROM recibo.provider_activity p JOIN unnest($1, $2) AS w(provider, gap_s) ON w.provider = p.provider "
    "ORDER BY p.provider), "
    "changed AS (UPDATE recibo.provider_activity p SET silent_at = due.will_be, "
    "spoke_at = CASE WHEN due.will_be IS NULL AND due.alert_s IS NOT NULL THEN now() ELSE p.spoke_at END "
    "FROM due WHERE p.provider = due.provider AND due.was IS DISTINCT FROM due.will_be AND p.silent_at IS NOT DISTINCT FROM "
    "due.was "
    "RETURNING p.provider, due.will_be IS NOT NULL AS silent, due.quiet_s, due.alert_s) "
    "SELECT provider, silent, quiet_s FROM changed WHERE alert_s IS NOT NULL ORDER BY provider",
    {oid::text_array, oid::int8_array}};

const statement select_activity{
    "read_provider_activity",
    "SELECT p.provider, p.heard_at, p.silent_at, p.spoke_at, "
    "(greatest(extract(epoch FROM now() - coalesce(p.heard_at, p.since)), 0) * 1000)::bigint FROM recibo.provider_activity p",
    {}};

}  // namespace

awaitable<result<std::vector<provider_change>>> watch_providers(postgres::pool& pool, std::vector<provider_watch> all,
                                                                postgres::deadline until) {
  binary_array providers(oid::text), alerts(oid::int8), gaps(oid::int8), heard(oid::int8), judged(oid::text), waits(oid::int8);
  for (const auto& one : all) {
    providers.add(one.provider);
    judged.add(one.provider);
    alerts.add_int8(one.alert ? std::optional<std::int64_t>(one.alert->count()) : std::nullopt);
    gaps.add_int8(one.resend_gap.count());
    waits.add_int8(one.resend_gap.count());
    heard.add_int8(one.heard_since ? std::optional<std::int64_t>(one.heard_since->count()) : std::nullopt);
  }
  parameters known, by;
  known.array(std::move(providers))
      .array(std::move(alerts))
      .array(std::move(gaps))
      .array(std::move(heard))
      .int8(watch_gap.count());
  by.array(std::move(judged)).array(std::move(waits));
  postgres::pipeline work;
  work.add(watch, std::move(known)).add(judge_silence, std::move(by));
  const auto done = co_await pool.run(work, until);
  if (!done.ok()) co_return postgres::to_error(done);
  std::vector<provider_change> out;
  const auto& changed = done.answers.back();
  for (int i = 0; i < changed.size(); ++i)
    out.push_back({changed.string(i, 0), changed.boolean(i, 1), std::chrono::seconds(changed.int8(i, 2))});
  co_return out;
}

awaitable<result<std::vector<provider_activity>>> read_provider_activity(postgres::pool& pool, postgres::deadline until) {
  auto found = co_await pool.query(select_activity, {}, until);
  if (!found) co_return found.error();
  std::vector<provider_activity> out;
  for (int i = 0; i < found->size(); ++i)
    out.push_back({found->string(i, 0), found->time_or_null(i, 1), found->time_or_null(i, 2), found->time_or_null(i, 3),
                   static_cast<double>(found->int8(i, 4)) / 1000});
  co_return out;
}

}  // namespace recibo::storage
