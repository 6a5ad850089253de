// Decides whether a callback was signed by the provider it claims to come from (R13).
// Pure: no I/O and no clock, so every case is a row in verifier_test.cpp. Safe to call from any thread.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/verify/keyring.hpp"
#include "recibo/verify/scheme.hpp"
#include "recibo/verify/signed_message.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::verify {

// Largest accepted distance, either way, between signed time stamp and `now`. Source: Standard Webhooks, "timestamp".
inline constexpr std::chrono::seconds tolerance_default{300};

struct fetched_key;

// Key bytes of a secret's text by the scheme's rule, as prepare() (keyring.hpp) finds them.
result<secret> key_bytes(const scheme& how, const secret& text);

// Bounds on what one request can make us do: signatures that are looked at, the length of a header that holds some,
// fields of a form or query, and items that carry a signature each. What has more is refused.
inline constexpr std::size_t candidates_max = 128;
inline constexpr std::size_t signature_header_max = 8 << 10;
inline constexpr std::size_t fields_max = 1000;
inline constexpr std::size_t items_max = 100;

// Returns the name of the secret that matched, so that a rotation can be closed (R38); with items the one that stands last
// in the keyring of those that were needed; empty for a scheme of kind none. Nothing is kept after the call.
// One order for every scheme: signatures are collected, then the time stamp is judged, then each secret that is valid at
// `now` computes once per spelling of the URL, and every candidate is compared in constant time on decoded bytes of equal
// length. Hex may be of either case, base64 is strict, a time stamp exactly as far away as the tolerance is accepted.
// `fetched`: the key that which_key() (foreign_key.hpp) asked for; null where it asked for nothing.
// permanent::signature_missing, signature_repeated, signature_mismatch, timestamp_missing, timestamp_malformed,
// timestamp_stale, content_missing
// transient::not_ready   the key that the request names was not given
result<std::string> verify(const scheme& how, const signed_message& message, const keyring& keys, sys_micros now,
                           const fetched_key* fetched = nullptr);

// What sign_request() adds to a request.
struct signed_parts {
  std::vector<std::pair<std::string, std::string>> headers;
  std::optional<std::string> body;  // in place of the message's, for a signature that stands in JSON or in a form
};

// Signs as the provider would: the headers to add (signature, and time stamp where the scheme has one), or the body with the
// signature in it. For `recibo send` and tests. `body`, `method`, `url` and already present headers (a webhook-id) come from
// `message`; a time stamp that is there already is signed as it stands. Nothing to add for a scheme of kind none.
// permanent::content_missing        a part that the scheme signs is absent from `message`
// permanent::invalid_configuration  only the provider's private key can make the signature; the body is no JSON or form in
//                                   which it could stand
result<signed_parts> sign_request(const scheme& how, const signed_message& message, const named_secret& key, sys_micros now);

// The same for schemes whose signature stands in a header, which are nearly all.
// permanent::invalid_configuration  also where the signature stands inside the body
result<std::vector<std::pair<std::string, std::string>>> sign(const scheme& how, const signed_message& message,
                                                              const named_secret& key, sys_micros now);

}  // namespace recibo::verify
