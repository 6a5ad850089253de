// Hashes and HMACs over content in pieces. The fetches of OpenSSL 3 are done once per process, the contexts are kept per
// thread: a one-shot HMAC() fetches and allocates each time, which costs more than a short body.
#pragma once

#include "recibo/verify/scheme.hpp"

#include <array>
#include <memory>
#include <span>
#include <string_view>

struct evp_md_ctx_st;

namespace recibo::verify {

struct mac {
  std::array<unsigned char, 64> bytes{};
  std::size_t size = 0;
  std::string_view view() const noexcept { return {reinterpret_cast<const char*>(bytes.data()), size}; }
};

// Both abort when OpenSSL cannot hash at all; nothing true can be said then.
mac digest(hash_name how, std::span<const std::string_view> pieces);
mac hmac(hash_name how, std::string_view key, std::span<const std::string_view> pieces);

// HMAC (RFC 2104) with the key already hashed in: half of the work of a short message is the key. Immutable, so that threads
// may share it; what it holds is as secret as the key.
class hmac_key {
 public:
  hmac_key(hash_name how, std::string_view key);
  mac operator()(std::span<const std::string_view> pieces) const;
  hash_name hash() const noexcept { return how_; }

 private:
  struct context_free {
    void operator()(evp_md_ctx_st* c) const noexcept;
  };
  using context = std::unique_ptr<evp_md_ctx_st, context_free>;

  hash_name how_;
  context inner_, outer_;  // after the key's block
};

}  // namespace recibo::verify
