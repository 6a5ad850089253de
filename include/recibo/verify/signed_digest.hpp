// What a signature speaks of, as one digest: two requests with the same one differ only where anybody may write. For
// providers whose idempotency key the signature does not cover (K15): there the content stands in for the key.
// Pure; safe from any thread.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/verify/verifier.hpp"

namespace recibo::verify {

// SHA-256 over the content that `how` signs, time stamp included; over the body where the scheme names no content (tokens,
// and schemes whose content is made by code of their own). `message` has been verified.
sha256_digest signed_digest(const scheme& how, const signed_message& message);

}  // namespace recibo::verify
