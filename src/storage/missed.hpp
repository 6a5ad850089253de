// SQL that asks about what a provider could not deliver, by the statement that finds out that it is back (R44). Private to
// storage/.
#pragma once

#include <string>

namespace recibo::storage {

// A UUID of version 4 whose first 48 bits are a time in milliseconds, and whose bits 52 and 53 are set, is one of version 7
// (RFC 9562).
inline constexpr const char* uuid_now =
    "encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing substring(int8send(floor(extract(epoch FROM now()) * "
    "1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1), 'hex')::uuid";

// All of them: however long ago they were accepted.
inline constexpr const char* all_open_since = "timestamptz '1970-01-01 00:00:00+00'";

// A catch-up that is under way begins anew, from the newest on, down to where it was; the old walk goes on from there beside it.
// A list begins anew with all its attempts. Whoever holds a page of it finds it claimed by nobody; what he has recorded of it is
// counted by who reads it next.
inline constexpr const char* catch_up_anew =
    "ON CONFLICT (provider) WHERE listed_at IS NULL DO UPDATE SET place = least(c.place, excluded.place), below = NULL, "
    "head_end = coalesce(c.tail, c.below), tail = coalesce(c.tail, c.below), since = least(c.since, excluded.since)";
inline constexpr const char* event_list_anew =
    "ON CONFLICT (provider) WHERE ended_at IS NULL DO UPDATE SET since = least(e.since, excluded.since), cursor = '', pages = 0, "
    "attempts = 0, rounds = 0, next_attempt_at = NULL, reason = NULL, "
    "lease_until = NULL, leased_by = NULL";

// Three CTEs; the last, `ended_downtimes`, has provider and began_at of the outages that ended here, each once, whoever else
// looks at the same time. `of`: a relation with the providers that are back. One of less than a minute leaves no row: nothing
// reads it, and a breaker that flaps would write thousands a day. Neither does one that began later than now, while the clock was
// wrong.
inline std::string end_downtimes(const std::string& of, const std::string& cause) {
  const std::string open = " WHERE d.provider = o.provider AND d.cause = '" + cause + "' AND d.ended_at IS NULL AND d.began_at ";
  return "ended AS (UPDATE recibo.provider_downtimes d SET ended_at = least(now(), d.known_until) FROM " + of + " o" + open +
         "< now() - interval '1 minute' RETURNING d.provider, d.began_at), "
         "too_short AS (DELETE FROM recibo.provider_downtimes d USING " +
         of + " o" + open +
         ">= now() - interval '1 minute' RETURNING d.provider, d.began_at), "
         "ended_downtimes AS (SELECT provider, began_at FROM ended UNION ALL SELECT provider, began_at FROM too_short)";
}

// Two CTEs, with a comma behind each. `of`: a relation with provider and began_at. `look_ups`, `event_list`: conditions, of `m`,
// for whether a provider can be asked and lists its events. An event is listed by when it happened, which may be a while before
// it is sent.
inline std::string ask_about_missed(const std::string& of, const std::string& look_ups, const std::string& event_list) {
  const std::string id = uuid_now, since = all_open_since;
  return "missed_asked AS (INSERT INTO recibo.catch_ups AS c (id, provider, started_at, started_by, since, place) SELECT " + id +
         ", m.provider, now(), 'outage', " + since + ", '00000000-0000-0000-0000-000000000000' FROM " + of + " m WHERE " +
         look_ups + " ORDER BY m.provider " + catch_up_anew +
         "), missed_listed AS (INSERT INTO recibo.event_lists AS e (id, provider, started_at, started_by, since) SELECT " + id +
         ", m.provider, now(), 'outage', m.began_at - interval '1 hour' FROM " + of + " m WHERE " + event_list +
         " ORDER BY m.provider " + event_list_anew + ") ";
}

}  // namespace recibo::storage
