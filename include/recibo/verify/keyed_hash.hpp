// A keyed hash over a text of a provider's verification request, for answers that must prove that we know the secret.
// Pure; safe from any thread.
#pragma once

#include "recibo/verify/scheme.hpp"

#include <string>
#include <string_view>

namespace recibo::verify {

// HMAC as bytes. `key` must not be empty.
std::string keyed_hash(hash_name how, std::string_view key, std::string_view text);
// The plain digest as bytes, for keys that are one (Braintree).
std::string plain_hash(hash_name how, std::string_view text);

}  // namespace recibo::verify
