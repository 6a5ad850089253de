#include "recibo/core/utf8.hpp"

#include <cstdint>

namespace recibo {

std::size_t utf8_character(std::string_view bytes, char32_t& out) noexcept {
  if (bytes.empty()) return 0;
  const auto at = [&](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const std::uint8_t first = at(0);
  if (first < 0x80) {
    out = first;
    return 1;
  }
  // Length, bits of the first byte, and the least value of that length: what is smaller is overlong.
  std::size_t length = 0;
  char32_t value = 0, least = 0;
  if ((first & 0xe0) == 0xc0) {
    length = 2, value = first & 0x1f, least = 0x80;
  } else if ((first & 0xf0) == 0xe0) {
    length = 3, value = first & 0x0f, least = 0x800;
  } else if ((first & 0xf8) == 0xf0) {
    length = 4, value = first & 0x07, least = 0x10000;
  } else {
    return 0;
  }
  if (bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
    value = (value << 6) | (at(i) & 0x3fu);
  }
  if (value < least || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return 0;
  out = value;
  return length;
}

bool is_utf8(std::string_view bytes) noexcept {
  char32_t ignored = 0;
  for (std::size_t i = 0; i < bytes.size();) {
    if (static_cast<std::uint8_t>(bytes[i]) < 0x80) {
      ++i;
      continue;
    }
    const std::size_t length = utf8_character(bytes.substr(i), ignored);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

}  // namespace recibo
