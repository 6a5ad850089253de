// Structured Field Values (RFC 8941), as far as RFC 9421 and RFC 9530 need them: dictionaries of items and inner lists,
// read strictly, and written again in the one canonical form.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::verify {

struct sf_bare {
  enum class kind {
    integer,  // `value` is its digits, with a sign
    decimal,
    string,  // decoded
    token,
    bytes,    // decoded
    boolean,  // "1" or "0"
  };
  kind what = kind::boolean;
  std::string value = "1";
};

struct sf_parameter {
  std::string name;
  sf_bare value;
};

struct sf_item {
  sf_bare value;
  std::vector<sf_parameter> parameters;
};

struct sf_member {
  std::string name;
  bool is_list = false;
  std::vector<sf_item> items;            // exactly one where it is no list
  std::vector<sf_parameter> parameters;  // of an inner list; an item has its own
};

// Largest numbers that are read, so that a header of attackers makes no more than these.
inline constexpr std::size_t sf_members_max = 16, sf_items_max = 64, sf_parameters_max = 16;

// nullopt: no dictionary, more than the limits allow, or a name that stands twice: the standard lets the last one win, and
// a signature must not hang on that.
std::optional<std::vector<sf_member>> parse_dictionary(std::string_view text);

std::string serialize(const sf_item& item);
std::string serialize(const sf_member& member);  // its value, without its name
std::string serialize_string(std::string_view text);

const sf_bare* find_parameter(const std::vector<sf_parameter>& in, std::string_view name) noexcept;
const sf_member* find_member(const std::vector<sf_member>& in, std::string_view name) noexcept;

}  // namespace recibo::verify
