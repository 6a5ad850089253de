// Whether anybody who has seen a request can send it again under another key.
#pragma once

#include "recibo/config/settings.hpp"

#include <algorithm>

namespace recibo::config {

inline bool takes_unsigned_key(const provider& from) noexcept {
  const auto& parts = from.extract.idempotency_key;
  return std::any_of(parts.begin(), parts.end(), [](const source& one) { return one.unsigned_accept; });
}

}  // namespace recibo::config
