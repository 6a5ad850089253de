// Named SQL and row mapping of deliveries, payloads and failed callbacks: the write path's half.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

// One row of `deliveries`; borrows.
struct delivery_row {
  delivery_id id;
  std::optional<operation_id> operation;
  std::string_view provider, disposition;
  sys_micros received_at{};
  std::optional<std::string_view> request_id, key, event;
  std::optional<sys_micros> occurred_at;
  std::optional<std::int64_t> provider_sequence;
  sha256_digest body_digest{};
  delivery_id payload;
  std::string_view secret, peer;
  std::int32_t answer_status = 200;
  std::string_view trace_id;
  std::string_view items;  // JSON text; empty: none
  std::optional<look_up_id> look_up;
};

struct new_deliveries {
  bulk rows;
  new_deliveries();
  void add(const delivery_row& d);
};

struct new_payloads {
  bulk rows;
  new_payloads();
  void add(delivery_id id, std::string_view body, std::string_view content_type);
};

// What is kept of a callback that could not be understood.
struct failed_row {
  failed_callback_id id;
  std::string provider;
  sha256_digest body_digest{};
  // SHA-256 over the signed parts of the key that stand outside the body; empty: none.
  std::string key_beside{};
  std::string disposition, reason, detail;
  delivery_id delivery;
  std::optional<std::string> request_id, event;
  std::int32_t answer_status = 422;
  // What of it is still to be decided (record/left_out.hpp); empty: all.
  std::string left_out{};
  // Of new rows alone: what a replay reads beside the body.
  std::string head{};
  // What was signed of it, and of its repetitions where that is something else.
  std::optional<sha256_digest> signed_digest{};
  std::vector<sha256_digest> signed_again{};
};
struct failed_name {
  std::string_view provider;
  sha256_digest body_digest;
  std::string_view key_beside;
};
// Locks those of these failed callbacks that exist, skipping none: the rows are held for the length of one commit.
void append_find_failed(checked_pipeline& to, const std::vector<failed_name>& names);
std::vector<failed_row> read_failed(const postgres::rows& from);
// What was signed of their repetitions, of those that are locked: failed_row::signed_again.
struct failed_signed_row {
  failed_callback_id id;
  sha256_digest digest{};
};
void append_find_failed_signed(checked_pipeline& to, const std::vector<failed_name>& names);
std::vector<failed_signed_row> read_failed_signed(const postgres::rows& from);
// Whether there is any failed callback at all, so that the common case asks no further.
void append_any_failed(checked_pipeline& to);

struct new_failed {
  bulk rows;
  new_failed();
  void add(const failed_row& f, sys_micros at);
};
struct repeated_failed {
  bulk rows;
  repeated_failed();
  void add(failed_callback_id id, std::int32_t times, sys_micros at);
};

}  // namespace recibo::storage
