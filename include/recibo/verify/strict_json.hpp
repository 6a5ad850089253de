// Strict JSON in one pass, without a tree: reads the values at some pointers and refuses whatever is ambiguous or cannot
// be represented (K17). Pure; safe from any thread. Numbers are never converted: their text is kept digit for digit.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/core/json_value.hpp"

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::verify {

// Longest text kept of an object or array; `text` is empty beyond it.
inline constexpr std::size_t json_container_max = 4096;

struct pointed_value {
  json_value::kind kind = json_value::kind::null;
  // A string decoded; a number as written ("1.50", "-0", "9007199254740993"); "true", "false" or "null"; an object or
  // array as compact JSON with its members in their order.
  std::string text;
};

struct json_reading {
  // One per pointer, in order; nullopt: nothing there, or something ambiguous.
  std::vector<std::optional<pointed_value>> values;
  // permanent::malformed_json with a reason that holds nothing of the document: empty, a byte order mark, not JSON, not
  // UTF-8, a lone surrogate, U+0000 in a string, a member named twice, too deep, a number too large for any type.
  // Where the text is JSON all the same (a member named twice, U+0000), `values` has what is not ambiguous.
  std::optional<error> broken;
};

// `pointers` are RFC 6901: "" is the whole document, "/a/0/b" a member of an element. A malformed one finds nothing.
json_reading read_json(std::string_view document, std::span<const std::string_view> pointers);

// Whether `pointer` is a JSON Pointer at all: empty or starting with '/', with '~' only in "~0" and "~1".
bool is_json_pointer(std::string_view pointer) noexcept;

}  // namespace recibo::verify
