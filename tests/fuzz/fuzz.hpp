// What the fuzz targets share. A target asserts rules about any input; libFuzzer looks for an input that breaks one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace recibo::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) noexcept {
  return {reinterpret_cast<const char*>(data), size};
}

// The first piece of `rest` before a NUL, taken off.
inline std::string_view take(std::string_view& rest) noexcept {
  const std::size_t end = rest.find('\0') == std::string_view::npos ? rest.size() : rest.find('\0');
  const std::string_view out = rest.substr(0, end);
  rest.remove_prefix(end == rest.size() ? end : end + 1);
  return out;
}

inline void must(bool holds, const char* rule) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", rule);
  std::abort();
}

}  // namespace recibo::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
