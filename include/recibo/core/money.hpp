// Money as exact decimals and ISO 4217 codes, never a float (contract section 5).
#pragma once

#include "recibo/core/error.hpp"

#include <string>
#include <string_view>

namespace recibo {

// A decimal as written, for example "19.99" or "-3.50", kept digit for digit.
// At most 30 digits before the point and 12 after it; no exponent, no plus sign, no blanks, no separators.
struct decimal {
  std::string text;
};

// permanent::malformed_field   not such a decimal
result<decimal> parse_decimal(std::string_view text);

// Equal as numbers: "19.9" equals "19.90", "-0" equals "0".
bool same_value(const decimal& a, const decimal& b) noexcept;

// Three ASCII letters, returned in upper case. permanent::malformed_field otherwise.
result<std::string> parse_currency(std::string_view text);

}  // namespace recibo
