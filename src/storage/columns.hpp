// Columns of ours that postgres::rows does not know.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/postgres/arrays.hpp"
#include "recibo/postgres/pipeline.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace recibo::storage {

// A bytea of 32 bytes, which a CHECK guarantees; all zeros for NULL.
inline sha256_digest digest_at(const postgres::rows& from, int row, int column) {
  sha256_digest out{};
  const auto bytes = from.text(row, column);
  if (bytes.size() == out.size()) std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(out.data()));
  return out;
}

inline std::optional<sha256_digest> digest_or_null(const postgres::rows& from, int row, int column) {
  return from.is_null(row, column) ? std::nullopt : std::optional(digest_at(from, row, column));
}

// Digests behind each other; none for NULL.
inline std::vector<sha256_digest> digests_at(const postgres::rows& from, int row, int column) {
  const auto bytes = from.text(row, column);
  std::vector<sha256_digest> out(bytes.size() / sizeof(sha256_digest));
  for (std::size_t i = 0; i < out.size(); ++i)
    std::copy_n(bytes.data() + i * out[i].size(), out[i].size(), reinterpret_cast<char*>(out[i].data()));
  return out;
}

// An empty text is stored as NULL.
inline void add_text_or_null(postgres::binary_array& to, std::string_view text) {
  if (text.empty()) {
    to.add_null();
  } else {
    to.add(text);
  }
}

inline void add_number_or_null(postgres::binary_array& to, const std::optional<std::int32_t>& number) {
  if (number) {
    to.add_int4(*number);
  } else {
    to.add_null();
  }
}

template <class Id>
void add_id_or_null(postgres::binary_array& to, const std::optional<Id>& id) {
  if (id) {
    to.add(id->binary());
  } else {
    to.add_null();
  }
}

inline void add_digest(postgres::binary_array& to, const std::optional<sha256_digest>& d) {
  if (d)
    to.add(binary(*d));
  else
    to.add_null();
}

}  // namespace recibo::storage
