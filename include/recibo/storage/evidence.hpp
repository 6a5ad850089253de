// Bulk writers of what is appended with each recorded fact: transitions, audit rows, outbox rows, reviews, payload accesses.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

// One row of `transitions`; borrows. Empty texts of the optional columns are stored as NULL.
struct transition_row {
  operation_id operation;
  std::int32_t sequence = 0, version = 0;
  std::optional<std::string> item_id;
  std::string_view event, from, to;
  sys_micros at{};
  std::string_view actor_kind, actor;
  std::optional<delivery_id> delivery;
  std::string_view reason, evidence, result;
  std::int32_t notifications = 0;
};
struct new_transitions {
  bulk rows;
  new_transitions();
  void add(const transition_row& t);
};

struct new_audit {
  bulk rows;
  new_audit();
  void add(operation_id operation, std::int32_t sequence, std::string_view kind, sys_micros at, std::string_view actor,
           const std::optional<delivery_id>& delivery, const sha256_digest& digest, const sha256_digest& hash);
};

struct new_notifications {
  bulk rows;
  new_notifications();
  void add(notification_id id, operation_id operation, std::int32_t sequence, std::string_view destination, std::string_view type,
           sys_micros at);
};

// One row of `reviews`; borrows.
struct review_row {
  review_id id;
  operation_id operation;
  std::string_view kind;
  sha256_digest digest{};
  std::string_view key;  // of a conflict
  delivery_id delivery;
  std::optional<delivery_id> first_delivery;
  std::optional<sha256_digest> first_digest;
  std::optional<sha256_digest> signed_digest{};  // of a conflict whose key is not signed
  std::string_view detail, state, owner;
  sys_micros at{};
  std::string_view item_id;  // empty: it is about the operation
};
struct new_reviews {
  bulk rows;
  new_reviews();
  void add(const review_row& r);
};

// Reviews that are there already for the same content, or the same signed bytes: of any kind, open or resolved.
struct review_name {
  operation_id operation;
  sha256_digest digest;
  std::optional<sha256_digest> signed_digest{};
};
struct known_review {
  review_id id;
  operation_id operation;
  std::string kind;
  sha256_digest digest{};
  std::string key;
  delivery_id delivery;
  bool open = true;
  std::optional<sha256_digest> signed_digest{};
};
void append_find_reviews(checked_pipeline& to, const std::vector<review_name>& names);
std::vector<known_review> read_reviews(const postgres::rows& from);
struct repeated_reviews {
  bulk rows;
  repeated_reviews();
  void add(review_id id, std::int32_t times, sys_micros at);
};

struct new_payload_accesses {
  bulk rows;
  new_payload_accesses();
  void add(const std::array<std::uint8_t, 16>& id, delivery_id delivery, sys_micros at, std::string_view actor,
           const std::optional<operation_id>& operation, const std::optional<std::int32_t>& sequence);
};

}  // namespace recibo::storage
