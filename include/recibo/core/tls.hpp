// The TLS side of a listener: certificate, key and the authorities of its clients, read and checked as a whole before a
// connection sees them, so that what `recibo check` takes serves, and a reload is all or nothing.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/secret.hpp"

#include <memory>
#include <string>
#include <vector>

struct ssl_ctx_st;

namespace recibo {

// TLS 1.2 and 1.3, forward secrecy and authenticated ciphers only, ALPN http/1.1. Immutable; safe from any thread.
class tls_context {
 public:
  explicit tls_context(ssl_ctx_st* owned, sys_micros not_after, bool asks_clients);
  ~tls_context();
  tls_context(const tls_context&) = delete;
  tls_context& operator=(const tls_context&) = delete;

  // For SSL_new. Borrowed.
  ssl_ctx_st* native() const noexcept { return owned_; }
  // When the listener's own certificate expires.
  sys_micros not_after() const noexcept { return not_after_; }
  // Whether a client must show a certificate.
  bool asks_clients() const noexcept { return asks_clients_; }

 private:
  ssl_ctx_st* owned_;
  sys_micros not_after_;
  bool asks_clients_;
};

// All PEM. The listener's certificate comes first, then those that lead to its authority.
struct tls_pem {
  std::string certificate;
  secret key;
  // The authorities whose certificates a client must show; empty: none is asked for.
  std::string client_ca;
};

// What is wrong with one of the three, in words that never hold a piece of it.
struct tls_fault {
  enum class part {
    certificate,  // the listener's own, or one of its issuers'
    key,          // its private key, also where the two do not belong together
    client_ca,    // the authorities of clients
  };
  part where = part::certificate;
  std::string why;
};

struct tls_reading {
  // Set exactly when there are no problems.
  std::shared_ptr<const tls_context> context;
  std::vector<tls_fault> problems, warnings;
};

// Pure but for randomness: the time is an argument. A certificate that is expired, or not valid yet, is a problem; one that
// has less than three weeks is a warning.
tls_reading read_tls(const tls_pem& from, sys_micros now);

}  // namespace recibo
