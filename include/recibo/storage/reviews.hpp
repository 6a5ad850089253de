// Named SQL and row mapping of reviews and what people do about them: the write path's half; lists are in reads_evidence.hpp.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

// One row of `reviews`; borrows.
struct review_row {
  review_id id;
  std::optional<operation_id> operation;  // nullopt: there is none yet, and `provider` says whose callback it is
  std::string_view kind;
  sha256_digest digest{};
  std::string_view key;  // of a conflict
  delivery_id delivery;  // nil: the clock opened it
  std::optional<delivery_id> first_delivery;
  std::optional<sha256_digest> first_digest;
  std::optional<sha256_digest> signed_digest{};  // of a conflict whose key is not signed
  std::string_view detail, state, owner;
  sys_micros at{}, due_at{};
  std::string_view provider, request_id;  // where there is no operation; empty otherwise
  std::string_view item_id;               // empty: it is about the operation
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

// A review that somebody acts on, as its row lock returned it.
struct acted_review {
  review_id id;
  std::optional<operation_id> operation;
  std::string kind;
  sha256_digest digest{};
  std::string key;
  bool open = true;
  bool of_item = false;  // about an item, not about the operation as a whole
  bool untold = false;   // open, its age limit has passed, and nobody was reminded
  // Of its resolution; `event` is what was raised with it.
  std::optional<std::string> assigned_to, resolved_by, resolution, reason, event;
};
// Locks those of these reviews that exist, in the order of their IDs, waiting for each: a row is held for one commit.
void append_lock_reviews(checked_pipeline& to, const std::vector<review_id>& ids);
std::vector<acted_review> read_acted_reviews(const postgres::rows& from);
// How many reviews of these operations are open; those without any are left out.
struct open_reviews {
  operation_id operation;
  std::int64_t count = 0;
};
void append_count_open_reviews(checked_pipeline& to, const std::vector<operation_id>& operations);
std::vector<open_reviews> read_open_reviews(const postgres::rows& from);

// Each must meet its row, and that row open.
struct assigned_reviews {
  bulk rows;
  assigned_reviews();
  void add(review_id id, std::string_view assignee);
};
struct resolved_reviews {
  bulk rows;
  resolved_reviews();
  void add(review_id id, sys_micros at, std::string_view by, std::string_view resolution, std::string_view reason);
};

// Somebody was reminded of them: each must meet its row, open and not told before.
struct reminded_reviews {
  bulk rows;
  reminded_reviews();
  void add(review_id id);
};

// One row of `review_actions`; borrows. Empty texts are stored as NULL.
struct review_action_row {
  review_id review;
  std::optional<operation_id> operation;
  std::optional<std::int32_t> sequence;  // of the audit row
  std::string_view action;               // opened, assigned, reminded, resolved
  sys_micros at{};
  std::string_view actor, assignee, resolution, reason;
  std::optional<std::int32_t> transition;
  std::int32_t notifications = 0;
};
struct new_review_actions {
  bulk rows;
  new_review_actions();
  void add(const review_action_row& a);
};

// A parked callback that has grown old, locked; not returned: it has gone, or somebody else holds it.
struct old_parked {
  delivery_id id;
  std::string provider;
  std::optional<std::string> request_id;
  sha256_digest content_digest{};
  sys_micros parked_at{};
  bool reviewed = false;  // its age has been a review already
};
void append_lock_old_parked(checked_pipeline& to, const std::vector<delivery_id>& ids);
std::vector<old_parked> read_old_parked(const postgres::rows& from);
// Reviews of the age of callbacks that are applied by this transaction: what they were about is over. Run it after the
// parked rows are deleted, so that whoever opened one meanwhile has committed. There need be none.
struct outgrown_reviews {
  bulk rows;
  outgrown_reviews();
  void add(delivery_id parked, sys_micros at);
};

}  // namespace recibo::storage
