// Reads of what came in and what became of it: deliveries, payloads, reviews, failed callbacks, and the facts of one case.
// All are bounded, and none takes a lock.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace recibo::storage {

struct delivery_view {
  delivery_id id;
  std::string provider, disposition;
  sys_micros received_at{};
  std::optional<std::string> request_id;  // of its operation, else as the callback said it
  std::optional<operation_id> operation;
  std::optional<std::string> key;  // length-prefixed fields
  std::optional<std::string> event;
  std::optional<sys_micros> occurred_at;
  std::optional<std::int64_t> provider_sequence;
  std::string body_digest;  // 32 bytes
  delivery_id payload;
  std::optional<std::int64_t> payload_size;  // none: purged
  std::optional<std::string> content_type;
  std::string secret, peer;
  std::int32_t answer_status = 0;
  std::optional<std::string> trace_id;
  std::optional<std::string> items;       // what was decided about each item, JSON text
  std::optional<sys_micros> given_up_at;  // it was parked, and no operation came in time
  std::optional<std::string> look_up;     // it was fetched; then `peer` is the host that was asked
};

boost::asio::awaitable<result<std::optional<delivery_view>>> find_delivery(postgres::pool& pool, delivery_id id,
                                                                           postgres::deadline until);

struct delivery_query {
  std::optional<std::string> provider, request_id, disposition;
  // Those alone that wait for their operation, or that were given up; not together with `request_id`.
  enum class parked { any, waiting, given_up };
  parked which = parked::any;
  // For `request_id`: what is parked is found by provider and name.
  std::vector<std::string> providers;
  std::optional<delivery_id> after;
  int limit = 50;
};
struct delivery_page {
  std::vector<delivery_view> deliveries;  // newest first
  std::optional<delivery_id> next;        // as operation_page::next
};
boost::asio::awaitable<result<delivery_page>> list_deliveries(postgres::pool& pool, delivery_query what,
                                                              postgres::deadline until);

// The raw body; nullopt: purged.
boost::asio::awaitable<result<std::optional<std::string>>> read_payload(postgres::pool& pool, delivery_id payload,
                                                                        postgres::deadline until);

struct review_view {
  review_id id;
  std::string provider, kind, detail, owner, status;
  // Of its operation; a parked callback whose age is reviewed has none, and says its request ID itself, where it has one.
  std::optional<std::string> request_id;
  std::string state, present_state;
  std::optional<std::int64_t> workflow;
  std::int64_t revision = 0;
  std::int64_t count = 0;
  sys_micros opened_at{}, last_seen_at{};
  std::optional<sys_micros> due_at, resolved_at;
  std::optional<std::string> assigned_to, resolved_by, resolution, reason;
  delivery_id delivery;
  std::optional<delivery_id> first_delivery;
  std::string digest;                       // content digest of `delivery`
  std::optional<std::string> first_digest;  // content digest of `first_delivery`
  std::optional<std::string> body_digest, first_body_digest;
  std::optional<std::string> item_id;  // none: it is about the operation
};

boost::asio::awaitable<result<std::optional<review_view>>> find_review(postgres::pool& pool, review_id id,
                                                                       postgres::deadline until);

struct review_query {
  std::optional<std::string> status, provider, request_id, owner, assigned_to;
  std::optional<bool> overdue;
  std::optional<review_id> after;
  int limit = 50;
};
// One thing that was done about a review.
struct review_action_view {
  std::string action, actor;
  sys_micros at{};
  std::optional<std::string> assignee, resolution, reason;
  // The transition that was made with it: its event, and the sequence of its audit row.
  std::optional<std::string> event;
  std::optional<std::int64_t> transition;
};
// Oldest first, at most 1000.
boost::asio::awaitable<result<std::vector<review_action_view>>> list_review_actions(postgres::pool& pool, review_id id,
                                                                                    postgres::deadline until);
struct review_page {
  std::vector<review_view> reviews;  // newest first
  std::optional<review_id> next;     // as operation_page::next
};
boost::asio::awaitable<result<review_page>> list_reviews(postgres::pool& pool, review_query what, postgres::deadline until);

struct failed_view {
  failed_callback_id id;
  std::string provider, disposition, reason, detail;
  delivery_id delivery;
  std::string body_digest;
  std::optional<std::string> request_id, event;
  std::int32_t answer_status = 0;
  std::int64_t count = 0, attempts = 0;
  sys_micros first_seen_at{}, last_seen_at{};
  std::optional<sys_micros> last_attempt_at;
};

boost::asio::awaitable<result<std::optional<failed_view>>> find_failed_callback(postgres::pool& pool, failed_callback_id id,
                                                                                postgres::deadline until);

struct failed_query {
  std::optional<std::string> provider, disposition, reason, event;
  std::optional<failed_callback_id> after;
  int limit = 50;
};
struct failed_page {
  std::vector<failed_view> failed;         // newest first
  std::optional<failed_callback_id> next;  // as operation_page::next
};
boost::asio::awaitable<result<failed_page>> list_failed_callbacks(postgres::pool& pool, failed_query what,
                                                                  postgres::deadline until);

// One audit row with the rows that it is about.
struct fact_view {
  std::int64_t sequence = 0;
  std::string kind, actor;
  sys_micros at{};
  std::optional<delivery_id> delivery;
  // Of the delivery; empty where there is none, or where it has been retired.
  std::optional<sys_micros> received_at;
  std::string disposition, secret, key, provider_event, look_up;
  std::optional<std::int64_t> answer_status;
  // Of the transition; `event` is empty where there is none.
  std::string event, from, to, item_id, actor_kind, reason, evidence, result;
  std::int64_t version = 0;
  // Of the correction; `change` is empty where there is none.
  std::string change, action;
  std::optional<std::string> amount, currency, account;
  std::optional<sys_micros> deadline;
  // Of what was done about a review; `review` is empty where nothing was.
  std::string review, review_kind, review_action, assignee, resolution, review_reason;
  std::optional<std::int64_t> caused;  // sequence of the transition that was made with it
  // Of a replay; `failed` is empty where there was none.
  std::string failed, replay_disposition, replay_key, replay_reason, transition_actor;
};

struct notification_view {
  std::string id, destination, type, status;
  std::int64_t sequence = 0, attempts = 0;
  sys_micros created_at{};
  std::optional<sys_micros> delivered_at, next_attempt_at;
};

// Repetitions of one key beyond those that have a delivery row each (R27).
struct repeated_key {
  std::string key;
  delivery_id delivery;
  std::int64_t beyond = 0;
  std::optional<sys_micros> last_at;
};

// What its provider was asked about an operation.
struct look_up_view {
  std::string id, cause, asked_by, status, reason, disposition;
  sys_micros asked_at{};
  std::int64_t times = 0, attempts = 0;
  std::optional<sys_micros> settled_at, next_attempt_at;
  std::optional<delivery_id> delivery;
  std::string requests;  // JSON array: at, host, answer_status, outcome, duration_ms of each, the latest twenty
};

// The facts of one operation from `after` on (audit sequence), with what belongs to them.
struct case_facts {
  std::vector<fact_view> facts;
  std::vector<notification_view> notifications;  // of these facts
  std::vector<review_view> reviews;              // of the operation, at most 1000
  std::vector<repeated_key> repeated;
  std::vector<look_up_view> look_ups;  // of the operation, the latest 1000
  bool more = false;
};
boost::asio::awaitable<result<case_facts>> read_case(postgres::pool& pool, operation_id operation, std::int64_t after, int limit,
                                                     postgres::deadline until);

}  // namespace recibo::storage
