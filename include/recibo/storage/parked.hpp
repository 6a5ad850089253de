// Named SQL and row mapping of parked callbacks, and the advisory locks that keep parking and registering from missing
// each other (write path, rule 3).
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"
#include "recibo/storage/replays.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

// A name by which an operation can be met before it exists.
struct identity_name {
  bool is_reference = false;
  std::string provider;
  std::string identity;

  // What is locked for it: the same in every replica and version. A request ID is one name for all providers.
  std::int64_t lock_key() const;
  friend auto operator<=>(const identity_name&, const identity_name&) = default;
};

struct parked_row {
  delivery_id id;
  std::string provider, identity, key, disposition;
  sha256_digest content_digest{}, body_digest{};
  std::string key_beside;            // as failed_row's
  std::optional<std::int32_t> part;  // its place among the events of its request
  std::string head;                  // as failed_row's, where some of its items could not be understood
  std::optional<sha256_digest> signed_digest{};
  // What was signed of its repetitions, where that is something else.
  std::vector<sha256_digest> signed_again{};
  std::optional<std::string> request_id;
  std::string event, event_raw, result, secret, items;
  std::optional<sys_micros> occurred_at;
  std::optional<std::int64_t> provider_sequence;
  std::optional<std::string> amount, currency, account;
  std::int32_t answer_status = 202;
  std::int32_t duplicates = 0;
  sys_micros parked_at{};
  // Where a replay parked it: that replay, and what it said.
  struct replayed {
    replay_id id;
    failed_callback_id failed;
    std::string actor, reason;
  };
  std::optional<replayed> replay;
  // Every reference that the callback carried.
  std::vector<std::string> references;
  // The delivery that the body is kept under, where it is another.
  std::optional<delivery_id> payload{};
  // Read only: the event list that brought it.
  std::optional<look_up_id> listed{};
  // From append_find_parked alone: the name that was asked for.
  bool matched_reference = false;
  std::string matched;
};

// Tries all locks at once, in the order given (sorted and unique); never waits. Held until the transaction ends.
// Whatever is looked up about these names must be in a later statement: this one's snapshot is too old for it.
void append_try_locks(checked_pipeline& to, const std::vector<std::int64_t>& sorted_keys);
// Keys that were not obtained, sorted.
std::vector<std::int64_t> read_refused_locks(const postgres::rows& from);

// What is parked under any of these names, a row for each name that it goes by: what was taken before what conflicted,
// oldest first, and at most a thousand rows, so that a transaction stays bounded; the re-match brings the rest.
void append_find_parked(checked_pipeline& to, const std::vector<identity_name>& names);
// What is parked under any of these names with this key; a row for each name.
struct parked_name {
  identity_name name;
  std::string_view key;
};
void append_find_parked_keys(checked_pipeline& to, const std::vector<parked_name>& names);
// What is parked at any of these providers with what was signed, whatever its key.
struct signed_parked_name {
  std::string_view provider;
  sha256_digest digest;
};
void append_find_parked_signed(checked_pipeline& to, const std::vector<signed_parked_name>& names);
// What is parked for an operation that exists, under its request ID or one of its references.
void append_find_parked_of(checked_pipeline& to, const std::vector<std::string_view>& request_ids);
std::vector<parked_row> read_parked(const postgres::rows& from);
// How many callbacks wait under each of these names; those under which none waits are left out.
void append_count_parked(checked_pipeline& to, const std::vector<identity_name>& names);
struct parked_count {
  identity_name name;
  std::int64_t count = 0;
};
std::vector<parked_count> read_parked_counts(const postgres::rows& from);

struct new_parked {
  bulk rows, identities;
  new_parked();
  void add(const parked_row& p, const std::vector<std::string>& references);
};
struct repeated_parked {
  bulk rows;
  repeated_parked();
  void add(delivery_id id, std::int32_t times);
};
// Deletes the rows of what has been applied; each must still be there.
struct applied_parked {
  bulk rows;
  applied_parked();
  void add(delivery_id id);
};

}  // namespace recibo::storage
