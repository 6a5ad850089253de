// What a secret becomes for one scheme, once, when the configuration is read.
#pragma once

#include "recibo/verify/keyring.hpp"
#include "recibo/verify/public_key.hpp"
#include "recibo/verify/scheme.hpp"

#include "mac.hpp"

#include <optional>
#include <string>
#include <vector>

namespace recibo::verify {

struct prepared_key {
  std::vector<hmac_key> macs;              // one for each hash that the scheme may ask for
  public_key_ptr verifying;                // of public-key schemes
  std::string id;                          // a JSON Web Key's "kid"
  std::optional<sys_micros> expired_from;  // a JSON Web Key's end
  std::string public_part;                 // of a secret with parts, where a signature names it (Braintree)

  const hmac_key* mac_of(hash_name how) const noexcept {
    for (const hmac_key& one : macs) {
      if (one.hash() == how) return &one;
    }
    return nullptr;
  }
};

// The entry of an RFC 9421 scheme that uses this secret, or null.
const http_signature_key* entry_of(const scheme& how, const std::string& secret_name) noexcept;

}  // namespace recibo::verify
