// What values of callbacks mean, wherever they were read: times, sequences, results. Pure.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/verify/scheme.hpp"
#include "recibo/verify/strict_json.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace recibo::receive {

// An identifier that is blank says as little as one that is absent.
bool is_blank(std::string_view text) noexcept;

bool is_container(const verify::pointed_value& found) noexcept;

// permanent::malformed_field   with the reason
result<sys_micros> read_instant(const verify::pointed_value& from, verify::timestamp_format format);
result<std::int64_t> read_sequence(std::string_view text);

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
