#include "recibo/core/json.hpp"

#include "recibo/core/utf8.hpp"

#include <cstdint>

namespace recibo {
namespace {

constexpr std::string_view replacement = "\xef\xbf\xbd";  // U+FFFD

bool plain(char c) noexcept {
  const auto byte = static_cast<std::uint8_t>(c);
  return byte >= 0x20 && byte < 0x7f && c != '"' && c != '\\';
}

void append_escaped(std::string& out, char c) {
  switch (c) {
    case '"': out += "\\\""; return;
    case '\\': out += "\\\\"; return;
    case '\b': out += "\\b"; return;
    case '\f': out += "\\f"; return;
    case '\n': out += "\\n"; return;
    case '\r': out += "\\r"; return;
    case '\t': out += "\\t"; return;
    default: break;
  }
  constexpr std::string_view digits = "0123456789abcdef";
  const auto byte = static_cast<std::uint8_t>(c);
  out += "\\u00";
  out += digits[byte >> 4];
  out += digits[byte & 0x0f];
}

}  // namespace

void append_json_string(std::string& out, std::string_view utf8) {
  out.reserve(out.size() + utf8.size() + 2);
  out += '"';
  for (std::size_t i = 0; i < utf8.size();) {
    // Runs of plain characters are most of any text; they go in one piece.
    std::size_t end = i;
    while (end < utf8.size() && plain(utf8[end])) ++end;
    out.append(utf8, i, end - i);
    i = end;
    if (i == utf8.size()) break;
    if (static_cast<std::uint8_t>(utf8[i]) < 0x80) {
      append_escaped(out, utf8[i]);
      ++i;
      continue;
    }
    char32_t ignored = 0;
    const std::size_t length = utf8_character(utf8.substr(i), ignored);
    if (length == 0) {
      out += replacement;
      ++i;
    } else {
      out.append(utf8, i, length);
      i += length;
    }
  }
  out += '"';
}

std::string json_string(std::string_view utf8) {
  std::string out;
  append_json_string(out, utf8);
  return out;
}

}  // namespace recibo
