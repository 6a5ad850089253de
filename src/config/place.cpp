#include "place.hpp"

#include "recibo/core/utf8.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

namespace recibo::config {

line_index::line_index(std::string_view text) : text_(text), starts_{0} {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\n') starts_.push_back(i + 1);
}

position line_index::of(std::size_t offset) const noexcept {
  offset = std::min(offset, text_.size());
  const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
  const auto line = after - starts_.begin();
  int column = 1;
  for (std::size_t i = *(after - 1); i < offset; ++i)
    if ((static_cast<std::uint8_t>(text_[i]) & 0xc0u) != 0x80u) ++column;
  return {static_cast<int>(line), column};
}

std::optional<fault> check_bytes(std::string_view text, const line_index& lines) {
  bool indentation = true;
  for (std::size_t i = 0; i < text.size();) {
    char32_t c = 0;
    const std::size_t length = utf8_character(text.substr(i), c);
    if (length == 0) return fault{lines.of(i), "this is not UTF-8"};
    if (c == '\t' && indentation) {
      // A line of nothing but blanks is no indentation.
      const std::size_t next = text.find_first_not_of(" \t\r", i);
      if (next != std::string_view::npos && text[next] != '\n' && text[next] != '#')
        return fault{lines.of(i), "a tab in the indentation: YAML takes spaces only"};
    }
    const bool line_end = c == '\n' || (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n');
    if (c == '\r' && !line_end) return fault{lines.of(i), "a carriage return alone: lines end in LF or CR LF"};
    if ((c < 0x20 && c != '\t' && !line_end) || c == 0x7f) return fault{lines.of(i), "a control character"};
    if (c == 0xfeff) return fault{lines.of(i), "a byte order mark in the middle of the file"};
    indentation = c == '\n' || (indentation && (c == ' ' || c == '\t'));
    i += length;
  }
  return std::nullopt;
}

std::size_t behind_anchor(std::string_view text, std::size_t offset) noexcept {
  if (offset >= text.size() || text[offset] != '&') return std::min(offset, text.size());
  const std::size_t name_end = text.find_first_of(" \t\r\n,]}", offset);
  if (name_end == std::string_view::npos) return text.size();
  const std::size_t next = text.find_first_not_of(" \t\r\n", name_end);
  return next == std::string_view::npos ? text.size() : next;
}

bool quote_is_closed(std::string_view text, std::size_t offset) noexcept {
  const char quote = text[offset];
  for (std::size_t i = offset + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '\'' && i + 1 < text.size() && text[i + 1] == quote) {
        ++i;
      } else {
        return true;
      }
    }
  }
  return false;
}

}  // namespace recibo::config
