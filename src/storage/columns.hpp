// Columns of ours that postgres::rows does not know.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/postgres/pipeline.hpp"

#include <algorithm>

namespace recibo::storage {

// A bytea of 32 bytes, which a CHECK guarantees; all zeros for NULL.
inline sha256_digest digest_at(const postgres::rows& from, int row, int column) {
  sha256_digest out{};
  const auto bytes = from.text(row, column);
  if (bytes.size() == out.size()) std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(out.data()));
  return out;
}

}  // namespace recibo::storage
