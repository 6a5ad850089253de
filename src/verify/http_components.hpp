// RFC 9421, section 2: the components of a request that a signature may cover, and the text that is signed.
#pragma once

#include "reading.hpp"
#include "structured_fields.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace recibo::verify {

// The value of one component of the request; nullopt: it is absent, stands there more often than it may, or is of a form
// that is not served: trailers, parts of a response or another request, and fields whose structure is not known.
std::optional<std::string> component_value(const sf_item& component, const reading& from);

// The signature base (section 2.5): a line for every component of the inner list, then its parameters. nullopt: a
// component has no value, or is named twice.
std::optional<std::string> signature_base(const sf_member& input, const reading& from);

// Section 2.2.8: a name or value of the query, decoded and encoded anew.
std::string encode_query_text(std::string_view decoded);

// Whether Content-Digest (RFC 9530) and the older Digest (RFC 3230) say what the body is: every SHA-256 and SHA-512 in
// them. permanent::content_missing: a header without any of those; permanent::signature_mismatch: another body.
// A header that is not there is fine; whether it must be there and covered is the signature's matter.
result<void> judge_digests(const reading& from);

}  // namespace recibo::verify
