// Hashes and HMACs over content in pieces. The fetches of OpenSSL 3 are done once per process, the contexts are kept per
// thread: a one-shot HMAC() fetches and allocates each time, which costs more than a short body.
#pragma once

#include "recibo/verify/scheme.hpp"

#include <array>
#include <span>
#include <string_view>

namespace recibo::verify {

struct mac {
  std::array<unsigned char, 64> bytes{};
  std::size_t size = 0;
  std::string_view view() const noexcept { return {reinterpret_cast<const char*>(bytes.data()), size}; }
};

// Both abort when OpenSSL cannot hash at all; nothing true can be said then. `key` must not be empty.
mac hmac(hash_name how, std::string_view key, std::span<const std::string_view> pieces);
mac digest(hash_name how, std::span<const std::string_view> pieces);

}  // namespace recibo::verify
