// Decides whether a callback was signed by the provider it claims to come from (R13).
// Pure: no I/O and no clock, so every case is a row in verifier_test.cpp. Safe to call from any thread.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/verify/keyring.hpp"
#include "recibo/verify/scheme.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace recibo::verify {

// Largest accepted distance, either way, between signed time stamp and `now`. Source: Standard Webhooks, "timestamp".
inline constexpr std::chrono::seconds tolerance_default{300};

// A request as it came, borrowed. `headers` in order of arrival, names in any case, values trimmed of blanks and tabs.
// `url` is the public URL that the provider knows, where the scheme signs it; `query` the raw query without '?'.
struct signed_message {
  std::string_view method;
  std::string_view url;
  std::string_view query;
  std::span<const std::pair<std::string, std::string>> headers;
  std::string_view body;
};

// Key bytes of a secret's text by the scheme's rule. permanent::invalid_configuration: empty, only blanks, or not in
// the encoding that the scheme asks for. The detail never holds the secret.
result<secret> key_bytes(const scheme& how, const secret& text);

// Bounds on what one request can make us do: signatures that are looked at, and the length of a header that holds some.
inline constexpr std::size_t candidates_max = 128;
inline constexpr std::size_t signature_header_max = 8 << 10;

// Returns the name of the secret that matched, so that a rotation can be closed (R38); empty for a scheme of kind none.
// Nothing is kept after the call. Signatures are collected first, then the time stamp is judged, then each secret that is
// valid at `now` computes once, and every candidate is compared in constant time on decoded bytes of equal length.
// Hex may be of either case, base64 is strict, a time stamp exactly as far away as the tolerance is accepted.
// permanent::signature_missing, signature_repeated, signature_mismatch, timestamp_missing, timestamp_malformed,
// timestamp_stale, content_missing
result<std::string> verify(const scheme& how, const signed_message& message, const keyring& keys, sys_micros now);

// Signs as the provider would: the headers to add (signature, and time stamp where the scheme has one). For
// `recibo send` and tests. `body`, `method`, `url` and already present headers (a webhook-id) come from `message`; a time
// stamp that is there already is signed as it stands. Nothing to add for a scheme of kind none.
// permanent::content_missing        a part that the scheme signs is absent from `message`
// permanent::invalid_configuration  the scheme's signature stands inside the body
result<std::vector<std::pair<std::string, std::string>>> sign(const scheme& how, const signed_message& message,
                                                              const named_secret& key, sys_micros now);

}  // namespace recibo::verify
