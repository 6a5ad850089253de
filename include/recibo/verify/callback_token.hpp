// The token in a callback URL that belongs to one operation at one provider (R42): whoever was given the URL may speak of
// that operation and of nothing else, so that it correlates and authenticates providers that sign nothing or echo nothing.
// Nothing of it is stored: it is made from a secret of the ring, and judged by it. Pure; safe from any thread.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/verify/keyring.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::verify {

// Shortest secret that tokens are made with, in bytes of its text: as long as the HMAC's output.
inline constexpr std::size_t callback_secret_min = 32;
// Longest token that is looked at: that of a request ID of 255 bytes, as base64url.
inline constexpr std::size_t callback_token_max = 400;

// base64url without padding of: version (1 byte, 1), expiry (8 bytes, seconds since 1970, big-endian; 0: never), HMAC-SHA256
// over the length-prefixed fields "recibo.callback_token/1", provider, request ID and expiry, then the request ID. Made with
// the first secret of the ring that is valid at `now`; empty when there is none. `expires` counts in whole seconds.
std::string mint_callback_token(const keyring& keys, std::string_view provider, std::string_view request_id,
                                std::optional<sys_micros> expires, sys_micros now);

struct callback_identity {
  std::string request_id;   // the operation that the token was made for
  std::string secret_name;  // of the ring
};
// Every secret that is valid at `now` computes, and each result is compared in constant time.
// permanent::signature_mismatch   not one of ours: another provider's, another operation's, cut, spelled otherwise
// permanent::timestamp_stale      ours, and its time is over
result<callback_identity> verify_callback_token(const keyring& keys, std::string_view provider, std::string_view token,
                                                sys_micros now);

}  // namespace recibo::verify
