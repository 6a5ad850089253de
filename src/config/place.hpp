// Byte offsets of the configuration's text as lines and columns, and the checks that come before the YAML parser.
#pragma once

#include "recibo/config/document.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace recibo::config {

// Borrows the text.
class line_index {
 public:
  explicit line_index(std::string_view text);
  // Offsets beyond the end are the end.
  position of(std::size_t offset) const noexcept;

 private:
  std::string_view text_;
  std::vector<std::size_t> starts_;
};

// The first thing in the bytes that no configuration may hold: broken UTF-8, control characters, a lone carriage
// return, a tab in the indentation.
std::optional<fault> check_bytes(std::string_view text, const line_index& lines);

// Where the scalar at `offset` really starts: behind its anchor, if it has one.
std::size_t behind_anchor(std::string_view text, std::size_t offset) noexcept;

// Whether the quoted scalar that opens at `offset` is closed again (yaml-cpp takes the end of the file for a quote).
bool quote_is_closed(std::string_view text, std::size_t offset) noexcept;

}  // namespace recibo::config
