// UTF-8 as RFC 3629 defines it: no overlong forms, no surrogates, nothing above U+10FFFF. Pure.
#pragma once

#include <cstddef>
#include <string_view>

namespace recibo {

// One character at the start of `bytes`: how many bytes it takes (1 to 4), and its code point in `out`.
// 0: `bytes` is empty or does not start with a valid sequence; `out` is left alone.
std::size_t utf8_character(std::string_view bytes, char32_t& out) noexcept;

// Whether all of `bytes` is valid.
bool is_utf8(std::string_view bytes) noexcept;

}  // namespace recibo
