// Keys that are not in the configuration but fetched from the provider: AWS SNS and PayPal name a certificate by URL,
// Plaid and Circle a key by ID. What a request needs is said here, and what came back is judged here; fetching and
// caching are done by `receive`, so that this stays pure: no I/O, no clock, safe from any thread.
//
// How the pieces fit, per request:
//   1. which_key(scheme, message, keyring, now): nothing, or what to fetch. An error refuses the request (401): its URL
//      is not the provider's, or it cannot be valid whatever would be fetched. Nothing is fetched for it then.
//   2. The cache, by needed_key::cache_key(). A miss is fetched: with a GET of `url` for certificates (https, no
//      redirects, short deadline, at most fetched_bytes_max bytes), by the provider's own API for key IDs. One fetch per
//      key at a time, and few per minute: an ID or a URL of the right form costs a forger nothing.
//   3. read_fetched_key(needed, bytes, rules, now): bytes to key. The result may be cached until `until`; a failure may be
//      remembered for a minute.
//   4. verify(scheme, message, keyring, now, &fetched).
// When nothing could be fetched the answer is 503, not 401: the provider is authentic for all we know.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/verify/keyring.hpp"
#include "recibo/verify/public_key.hpp"
#include "recibo/verify/scheme.hpp"
#include "recibo/verify/signed_message.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace recibo::verify {

// Most bytes that are read of an answer with a key in it. A PayPal chain has about 8 KiB.
inline constexpr std::size_t fetched_bytes_max = 64 << 10;

// A key that a request asks for.
struct needed_key {
  enum class form {
    certificate,  // GET `url` → PEM (AWS SNS, PayPal)
    plaid,        // POST /webhook_verification_key/get {client_id, secret, key_id: id} → {"key": {a JWK}, …}
    circle,       // GET /v2/notifications/publicKey/{id} with the API key → {"data": {"id", "algorithm", "publicKey"}}
  };
  form what = form::certificate;
  // Of a certificate: where it is. https, the provider's host by the scheme's rule, no user, no port, no fragment.
  // Empty for key IDs: which host is asked is configuration, never taken from the request.
  std::string url;
  // Of a key: its ID, 1 to 128 characters of A-Z, a-z, 0-9, ".", "_" and "-", so that it can stand in a path as it is.
  std::string id;

  // Unique for one provider; put the provider's name beside it where providers share a cache.
  const std::string& cache_key() const noexcept { return what == form::certificate ? url : id; }
};

// What `message` asks for under this scheme; nullopt: everything is in the configuration (every other scheme, and Plaid
// and Circle with that key among their secrets).
// Whatever can be judged without the key is judged first: that there is a signature, and a Plaid token's age and body.
// permanent::signature_missing, signature_repeated   the headers or fields that say it are absent, or stand twice
// permanent::signature_mismatch                      a URL that is not the provider's, an ID that is none, an algorithm
//                                                    that the scheme does not allow, an unknown topic
// permanent::timestamp_…, content_missing            as verify() says them
result<std::optional<needed_key>> which_key(const scheme& how, const signed_message& message, const keyring& keys,
                                            sys_micros now);

// Whether the request itself says, by a hash that stands among what is signed, that its body is another one than came; false
// where the scheme has no such hash (every one but Plaid's). Nothing of it has been verified: it explains a refusal.
bool speaks_of_other_body(const scheme& how, const signed_message& message);

// A key that has been fetched. Immutable and cheap to copy.
struct fetched_key {
  std::string cache_key;            // of the needed_key it answers; verify() takes it for that one only
  public_key_ptr key;               //
  std::optional<sys_micros> until;  // not to be used from then on, where the provider says so
};

// The body of a 200 as a key. `rules` are for certificates: validity, names and chain; names_below is filled from the
// scheme's own rule when it is empty.
// permanent::signature_mismatch   the answer holds no key, one of another kind or ID, or one that has expired
result<fetched_key> read_fetched_key(const scheme& how, const needed_key& what, std::string_view body,
                                     const certificate_rules& rules, sys_micros now);

// Whether this is a URL that AWS SNS itself uses (https, host sns.<region>.amazonaws.com or .com.cn, no user, port or
// fragment), for certificates and for confirming a subscription. The request chose it, so it is judged before any fetch.
bool is_sns_url(std::string_view url) noexcept;

}  // namespace recibo::verify
