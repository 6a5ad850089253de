// Verified bytes → a callback, by the provider's pointers (contract section 6 `extract`). Strict JSON in one pass. Pure.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/http/message.hpp"
#include "recibo/record/work.hpp"

#include <cstddef>
#include <vector>

namespace recibo::receive {

// Longest `result` in bytes, as canonical JSON.
inline constexpr std::size_t result_max = 4096;

// Fills the extracted fields of `out` (request_id … content_digest, body_digest and unprocessable) from the request. Where
// `out.signed_digest` is set (over what the signature covers), the parts of the key that it covers are added to it.
// Never throws. Even when `unprocessable` is set, what could be read and keeps to its rule is filled in.
//
// JSON: duplicate names, broken UTF-8, U+0000, lone surrogates, more than 64 levels, a byte order mark, an empty body and
// numbers too large for any type are permanent::malformed_json (K17). The body is read as JSON only when some source
// stands in it. Values: a string decoded, a number as written, a boolean as its word; null is absent; an object or array
// is permanent::malformed_field, except in `result`. A header, query or form field that is a source and stands more than
// once is permanent::malformed_field (K10).
//
//   request_id       the first source that has a value; check_request_id
//                    where out.request_id is set before, by the URL of one operation, that is the identity, and another
//                    one in the request becomes named_instead
//   reference        each source is a reference of its own; check_alias. Without either: permanent::missing_field.
//                    Outside what authenticates the request it becomes one of unproven_references
//   idempotency_key  every source is a part, in order; check_alias for each; an absent or blank one is
//                    permanent::missing_field. Not configured: the SHA-256 of the raw body
//   event            the word of its source; several sources make one word together, "/" between them (receive/values.hpp).
//                    One that is absent or blank: permanent::missing_field
//   occurred_at      RFC 3339 with an offset, or the source's `format`; a Unix time is a number or a string of digits
//   sequence         digits, 0 to 2^63-1
//   amount, currency parse_decimal and parse_currency; a JSON number may have an exponent, and is exact; `unit: minor` counts the
//                    smallest unit of the currency in the same request
//   account          check_alias
//   result           canonical JSON object of the allow-listed values, at most result_max bytes; without those absent
//
// content_digest is over event, occurred_at, sequence, amount (as a number), currency, request_id, references and result;
// over the body with `content: bytes`, and for what is unprocessable.
// Where the provider's callbacks are hints, the event is record::hint_event, or "ignore" where the map says so; it may be absent.
// An event that the map ignores is never unprocessable for a field: foreign traffic need not have our fields (R43).
void extract(const config::provider& how, const http::request& from, record::callback& out);

// The same for a provider whose requests carry many events (`each`): a callback for each element, in order, whose sources in
// JSON are relative to the element. `whole` brings what all have in common (settings, provider, received_at, peer,
// trace_id, secret_name, signed_digest); IDs are made at `whole.received_at`. Where the whole key stands outside the
// element, the element's index is part of it, as it is of what the signature names.
// `content: bytes` is the canonical text of the element. An object where the list is wanted is its only element; an empty
// list has none. A "*" in `each` stands for every element of a list on the way (config/each.hpp); lists that are not there are
// skipped where there is another. What is no list, or too long a one (record::events_in_request_max), or no JSON at all, is one
// callback that is unprocessable.
std::vector<record::callback> extract_each(const config::provider& how, const http::request& from, const record::callback& whole);

}  // namespace recibo::receive
