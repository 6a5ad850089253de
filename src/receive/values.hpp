// What values of callbacks mean, wherever they were read: times, sequences, results. Pure.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/verify/scheme.hpp"
#include "recibo/verify/strict_json.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::receive {

// An identifier that is blank says as little as one that is absent.
bool is_blank(std::string_view text) noexcept;

bool is_container(const verify::pointed_value& found) noexcept;

// permanent::malformed_field   with the reason
result<sys_micros> read_instant(const verify::pointed_value& from, verify::timestamp_format format);
result<std::int64_t> read_sequence(std::string_view text);

// The word that several sources make (`event: {join: …}`): its parts with "/" between them. As in JSON Pointers a "/" within a
// part is written "~1" and a "~" is "~0", so that no two lists of parts make the same word. A single part stands as it is.
std::string join_word(const std::vector<std::string>& parts);
// Its inverse; nullopt: the word has another number of parts.
std::optional<std::vector<std::string>> split_word(std::string_view word, std::size_t count);

// The allow-listed fields of a callback or an item, as one JSON object.
class result_text {
 public:
  // False: it is too long, or no text in UTF-8 without U+0000.
  bool add(std::string_view name, const verify::pointed_value& found);
  // Sorted names and one spelling, so that the same result has the same bytes.
  // permanent::malformed_field   longer than result_max, or a number of too many digits
  result<std::string> take();

 private:
  std::string json_ = "{";
};

}  // namespace recibo::receive
