// Named SQL and row mapping of the items of an operation (R7): the write path's half. Read and written under the lock of
// their operation's row.
#pragma once

#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

struct item_row {
  operation_id operation;
  std::string item_id, state;
  std::int32_t ordinal = 0, version = 0;
  std::optional<sys_micros> watermark_at{};
  std::optional<std::int64_t> watermark_sequence{};
  std::optional<std::string> result{};
  // Why somebody has to look at it; all of them or none.
  std::optional<std::string> attention{}, attention_detail{};
  std::optional<delivery_id> attention_delivery{};
  std::optional<sys_micros> attention_at{};
};

// Those of these items that exist; run it after the lock.
struct item_name {
  operation_id operation;
  std::string_view item_id;
};
void append_find_items(checked_pipeline& to, const std::vector<item_name>& names);
std::vector<item_row> read_items(const postgres::rows& from);

// How many items of these operations are in which state.
struct item_count_row {
  operation_id operation;
  std::string state;
  std::int64_t count = 0;
};
void append_count_items(checked_pipeline& to, const std::vector<operation_id>& operations);
std::vector<item_count_row> read_item_counts(const postgres::rows& from);

struct new_items {
  bulk rows;
  new_items();
  void add(const item_row& i, sys_micros at);
};
// The folded result of one batch: guarded by the version that was read.
struct changed_items {
  bulk rows;
  changed_items();
  void add(const item_row& i, std::int32_t read_version, sys_micros at);
};

}  // namespace recibo::storage
