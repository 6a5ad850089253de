// Strict JSON as a tree, for the bodies of our own API and for stored documents (K17). What is ambiguous or cannot be
// kept is refused, never changed in silence. Numbers stay the text they were, digit for digit.
// Pure; safe from any thread. A tree owns all it holds and takes about a hundred bytes per value: decode it, then drop it.
#pragma once

#include "recibo/core/error.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace recibo {

struct json_member;

struct json_value {
  enum class kind {
    null,
    boolean,
    number,  // `text` is the number as written
    string,  // `text` is the string, decoded
    array,
    object,
  };

  kind type = kind::null;
  bool boolean = false;
  std::string text;
  std::vector<json_value> elements;
  // In the order of the text; names are unique.
  std::vector<json_member> members;

  bool is(kind k) const noexcept { return type == k; }
  // nullptr: no such member, or no object.
  const json_value* find(std::string_view name) const noexcept;
};

struct json_member {
  std::string name;
  json_value value;
};

// "an object", "a string" …: how a message names the type.
std::string_view json_type_name(json_value::kind k) noexcept;

// Deepest nesting of arrays and objects that is read.
inline constexpr int json_depth_max = 64;

// By the rules of read_json_events() (json_events.hpp), with numbers of any size.
// permanent::malformed_json   with the rule and the byte where it was broken; never a part of the text
result<json_value> parse_json(std::string_view text);

// One text for everything that is the same document: names sorted by their bytes, no blanks, the shortest escapes,
// numbers as PostgreSQL's numeric writes them (no exponent; "1.50" stays "1.50", "-0" becomes "0").
// canonical_json(x) is also what canonical_json gives after x went through a jsonb column, so digests over it can be
// recomputed from the database.
// permanent::malformed_json   as parse_json, and for numbers of more than json_number_digits_max digits
result<std::string> canonical_json(std::string_view text);
result<std::string> canonical_json(const json_value& value);
inline constexpr std::size_t json_number_digits_max = 400;

// RFC 6901: a name as one reference token, "~" and "/" escaped.
std::string json_pointer_token(std::string_view name);

}  // namespace recibo
