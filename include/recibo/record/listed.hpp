// What a provider's list of events says under a key, beside what a callback says under the same one (R44). A list may leave out
// fields that a callback has, so that whichever of the two comes second says the same.
#pragma once

#include "recibo/core/digest.hpp"

#include <string_view>

namespace recibo::record {

// The content of an event from a list: no content of a callback has it.
sha256_digest listed_content(std::string_view key);

// Whether two contents under one key count as the same: they are, or one of them came from a list.
bool same_content(const sha256_digest& one, const sha256_digest& other, std::string_view key);

}  // namespace recibo::record
