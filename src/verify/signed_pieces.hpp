// The content that a scheme signs, for those who ask about it outside a verification.
#pragma once

#include "recibo/verify/verifier.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::verify {

// The time stamp's text where the scheme says it stands; empty: not there, or the scheme has none.
std::string time_text(const scheme& how, const signed_message& message);

// Piece by piece, with `secret` in the secret's place. nullopt: a part is absent, or the scheme names no content.
std::optional<std::vector<std::string>> signed_pieces(const scheme& how, const signed_message& message, std::string_view secret);

}  // namespace recibo::verify
