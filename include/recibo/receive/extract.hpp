// Verified bytes → a callback, by the provider's pointers (contract section 6 `extract`). Strict JSON in one pass. Pure.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/http/message.hpp"
#include "recibo/record/work.hpp"

namespace recibo::receive {

// Fills the extracted fields of `out` (request_id … content_digest, and unprocessable) from the request. Never throws.
// Duplicate keys, broken UTF-8, NUL, lone surrogates, more than 64 levels, and numbers that cannot be kept digit for
// digit are unprocessable (K17); numbers are taken as their text. Identifiers keep to check_request_id and check_alias.
void extract(const config::provider& how, const http::request& from, record::callback& out);

}  // namespace recibo::receive
