// Characters of ASCII, whatever the locale says.
#pragma once

namespace recibo {

constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// 0 to 15; -1 for what is no hexadecimal digit. Either case.
constexpr int hex_value(char c) noexcept {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace recibo
