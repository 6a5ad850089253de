// Named SQL and row mapping of signed_contents: what was signed beside the first content of an idempotency key that its
// signature does not cover.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

struct signed_name {
  operation_id operation;
  sha256_digest digest;
};

struct signed_content_row {
  operation_id operation;
  sha256_digest digest{};
  std::string key;
};
// Under which key each of these was seen first, of those that did not claim it; the others are left out.
void append_find_signed_contents(checked_pipeline& to, const std::vector<signed_name>& names);
std::vector<signed_content_row> read_signed_contents(const postgres::rows& from);

// What is on record already stays as it is.
struct new_signed_contents {
  bulk rows;
  new_signed_contents();
  void add(operation_id operation, const sha256_digest& digest, std::string_view key, sys_micros at);
  // Of a parked callback, by its ID.
  void add(delivery_id parked, const sha256_digest& digest, std::string_view key, sys_micros at);
  // Of a failed callback: over what the signature covers alone.
  void add(failed_callback_id failed, const sha256_digest& digest, std::string_view key, sys_micros at);
};

}  // namespace recibo::storage
