// Named SQL of lists of notifications and destinations, and of what people do about them (R20). A replay or discard is one
// transaction; it touches the outbox alone, never the business state.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/destinations.hpp"
#include "recibo/storage/outbox.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace recibo::storage {

struct outbox_view {
  notification_id id;
  // Of the operation, or the provider that it speaks of.
  std::optional<std::string> request_id, provider;
  std::string destination, type, status;
  std::int64_t sequence = 0, attempts = 0;
  sys_micros created_at{};
  std::optional<sys_micros> next_attempt_at, delivered_at, dead_at;
  std::optional<std::string> reason, reason_class;
};

struct attempt_view {
  std::int64_t attempt = 0, duration_ms = 0;
  sys_micros at{};
  std::optional<std::int64_t> answer_status;
  std::string outcome;
  std::optional<std::string> excerpt;
};

struct action_view {
  std::string action, kind, actor, reason;
  sys_micros at{};
};

struct outbox_details {
  outbox_view notification;
  std::vector<attempt_view> attempts;  // oldest first, at most the last 100
  std::vector<action_view> actions;    // oldest first
};

// Which notifications; absent: any.
struct outbox_filter {
  std::optional<std::string> status, destination, type, reason, reason_class, request_id;
  std::optional<sys_micros> created_after, created_before, dead_after, dead_before;
};

struct outbox_query {
  outbox_filter filter;
  std::optional<notification_id> after;  // where the page before ended
  int limit = 50;
};

struct outbox_page {
  std::vector<outbox_view> notifications;
  // Where the next page begins; it may be there although this one is not full: the search was cut off.
  std::optional<notification_id> next;
};
// Newest first. Filters that no index serves are looked for in windows, for a bounded time. Errors of the pool.
boost::asio::awaitable<result<outbox_page>> list_notifications(postgres::pool& pool, outbox_query what, postgres::deadline until);
// nullopt: no such notification.
boost::asio::awaitable<result<std::optional<outbox_details>>> find_notification(postgres::pool& pool, notification_id id,
                                                                                postgres::deadline until);

// Who acts, and why.
struct outbox_action {
  notification_action_id id;
  std::string actor, reason;
};

// Dead ones that the filter names (its status is not looked at).
boost::asio::awaitable<result<std::int64_t>> count_dead(postgres::pool& pool, outbox_filter which, postgres::deadline until);
// The same by destination and reason, the most first.
struct dead_group {
  std::string destination, reason, reason_class;
  std::int64_t count = 0;
};
boost::asio::awaitable<result<std::vector<dead_group>>> group_dead(postgres::pool& pool, outbox_filter which,
                                                                   postgres::deadline until);
// Makes up to `limit` of them pending again, the oldest first, and what was held behind them. Returns how many dead ones it
// moved. In steps with one action each is moved once: what died again meanwhile stays dead.
boost::asio::awaitable<result<std::int64_t>> replay_dead(postgres::pool& pool, outbox_filter which, outbox_action why, int limit,
                                                         postgres::deadline until);
// A replay of many under a key, as it stands.
struct replay_begun {
  bool again = false;         // the key was used before
  bool same_body = true;      // for the same request
  sys_micros began_at{};      // the first time
  std::int64_t replayed = 0;  // so far
};
// Notes that a replay begins, once. `body`: of the request.
boost::asio::awaitable<result<replay_begun>> begin_replay(postgres::pool& pool, notification_action_id id, sha256_digest body,
                                                          postgres::deadline until);
// One; false: it is not dead.
boost::asio::awaitable<result<bool>> replay_notification(postgres::pool& pool, notification_id id, outbox_action why,
                                                         postgres::deadline until);
// One that is dead, held or waits for a later attempt; what was held behind it goes on. False: it is delivered, discarded, or
// being sent right now.
boost::asio::awaitable<result<bool>> discard_notification(postgres::pool& pool, notification_id id, outbox_action why,
                                                          postgres::deadline until);

struct destination_view {
  destination_row row;
  std::int64_t pending = 0, held = 0, dead = 0;
  std::optional<sys_micros> oldest_pending_at;
  // Attempts of the last five minutes, and how many of them were delivered.
  std::int64_t attempts = 0, delivered = 0;
};
// Of the names that are given, and of others that had trouble once.
boost::asio::awaitable<result<std::vector<destination_view>>> list_destinations(postgres::pool& pool,
                                                                                std::vector<std::string> names,
                                                                                postgres::deadline until);

}  // namespace recibo::storage
