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

// An amount as a provider writes it in JSON: as above, or a number with an exponent ("1.999e1"), which is written out exactly.
// permanent::malformed_field   more digits than a decimal has, written out
result<decimal> parse_json_decimal(std::string_view text);

// Digits of the smallest unit behind the point: 2 for EUR, 0 for JPY, 3 for KWD (ISO 4217, "Minor unit"). 2 for codes that are
// not in that list of exceptions, also for unknown ones.
int minor_unit_digits(std::string_view currency) noexcept;

// "1999" in the smallest unit of EUR is "19.99". permanent::malformed_field   not a whole number
result<decimal> from_minor_unit(const decimal& amount, std::string_view currency);

// Equal as numbers: "19.9" equals "19.90", "-0" equals "0".
bool same_value(const decimal& a, const decimal& b) noexcept;

// Three ASCII letters, returned in upper case. permanent::malformed_field otherwise.
result<std::string> parse_currency(std::string_view text);

}  // namespace recibo
