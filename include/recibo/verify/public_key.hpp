// Public keys and certificates that signatures are verified with (R13). Pure: no I/O, no clock; OpenSSL stays in the .cpp.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// OpenSSL's types, so that its headers need not be included here.
struct evp_pkey_st;
struct x509_store_st;

namespace recibo::verify {

// One key, parsed and checked. Immutable, so that threads may share it; made once, when the configuration is read or a
// key was fetched, because parsing costs as much as verifying.
class public_key {
 public:
  enum class kind {
    rsa,      // 2048 to 8192 bits: shorter ones can be broken, longer ones are work for whoever sends them to us
    p256,     // NIST P-256, "prime256v1"
    p384,     // NIST P-384
    ed25519,  // RFC 8032
  };

  // Takes `owned` over.
  public_key(kind what, evp_pkey_st* owned) noexcept : what_(what), handle_(owned) {}
  ~public_key();
  public_key(const public_key&) = delete;
  public_key& operator=(const public_key&) = delete;

  kind what() const noexcept { return what_; }
  // For verify/ alone.
  evp_pkey_st* handle() const noexcept { return handle_; }

 private:
  kind what_;
  evp_pkey_st* handle_;
};

using public_key_ptr = std::shared_ptr<const public_key>;

// All of them fail with permanent::invalid_configuration and a detail that holds nothing of the key.
// PEM of one "PUBLIC KEY" or "CERTIFICATE"; of a certificate nothing but its key counts.
result<public_key_ptr> public_key_from_pem(std::string_view pem);
// DER SubjectPublicKeyInfo without a byte behind it.
result<public_key_ptr> public_key_from_spki(std::string_view der);
// The 32 bytes of an Ed25519 key.
result<public_key_ptr> public_key_from_ed25519(std::string_view bytes);

// A JSON Web Key of type EC on P-256 (RFC 7517), as Plaid hands them out.
struct json_web_key {
  std::string id;                          // "kid"
  public_key_ptr key;                      //
  std::optional<sys_micros> expired_from;  // Plaid's "expired_at", seconds; absent or null: not expired
};
// permanent::invalid_configuration   not strict JSON, another type or curve, an "alg" other than ES256, no "kid"
result<json_web_key> read_json_web_key(std::string_view json);

// Certificate authorities that a chain may end in. Immutable; may be shared by threads.
class trust_store {
 public:
  explicit trust_store(x509_store_st* owned) noexcept : handle_(owned) {}
  ~trust_store();
  trust_store(const trust_store&) = delete;
  trust_store& operator=(const trust_store&) = delete;

  x509_store_st* handle() const noexcept { return handle_; }

  // Those of the operating system (OpenSSL's default file and folder, SSL_CERT_FILE and SSL_CERT_DIR). Reads files: call
  // it at the start, not per request. permanent::invalid_configuration: there are none that can be read.
  static result<std::shared_ptr<const trust_store>> system();
  // One or more PEM certificates. permanent::invalid_configuration: not that.
  static result<std::shared_ptr<const trust_store>> from_pem(std::string_view pem);

 private:
  x509_store_st* handle_;
};

// What is asked of a certificate that a request named, beyond the URL that it was fetched from.
struct certificate_rules {
  // The chain must end here. Null: the chain is not judged, as the providers' own libraries do it (AWS SNS serves the
  // leaf alone); then TLS to the provider's host is what vouches for it.
  std::shared_ptr<const trust_store> trusted;
  // One of its names (DNS names, else the common name) must be one of these or below one of these. Empty: not judged.
  std::vector<std::string> names_below;
  // Off for recorded test vectors alone: validity and names are not judged then.
  bool strict = true;
};

struct checked_certificate {
  public_key_ptr key;
  sys_micros from, until;  // validity of the leaf; a cache must not keep the key beyond `until`
};

// `pem`: the leaf first, further certificates as intermediates; at most 10 of them, 64 KiB.
// permanent::signature_mismatch   not PEM, outside its validity, wrong name, a chain that ends elsewhere, a key that is
//                                 too weak: whoever named this certificate did not show to be the provider
result<checked_certificate> check_certificate(std::string_view pem, const certificate_rules& rules, sys_micros now);

}  // namespace recibo::verify
