// Signatures by public keys. The method comes from the scheme and the kind from the key, never from the request.
#pragma once

#include "recibo/verify/public_key.hpp"
#include "recibo/verify/scheme.hpp"

#include <span>
#include <string_view>

namespace recibo::verify {

enum class signing_method {
  rsa_pkcs1,  // RFC 8017, RSASSA-PKCS1-v1_5
  rsa_pss64,  // RSASSA-PSS with MGF1 of the same hash and a salt of 64 bytes
  ecdsa_der,  // SEQUENCE {r, s}
  ecdsa_raw,  // r and s at full width, one after the other (JOSE, RFC 9421)
  ed25519,    // the hash does not matter
};

// Whether `signature` was made over `pieces` by the owner of `key`. A key of another kind, a wrong length, a DER with
// stray bytes: no. Costs 50 to 200 µs.
bool signed_by(const public_key& key, signing_method method, hash_name hash, std::span<const std::string_view> pieces,
               std::string_view signature);

// CRC-32 as zlib's, in decimal.
std::string crc32_decimal(std::string_view bytes);

// While it lives, failures of OpenSSL leave nothing in this thread's error queue, where TLS would find it and blame a
// connection for it.
class openssl_errors {
 public:
  openssl_errors() noexcept;
  ~openssl_errors();
  openssl_errors(const openssl_errors&) = delete;
  openssl_errors& operator=(const openssl_errors&) = delete;
};

}  // namespace recibo::verify
