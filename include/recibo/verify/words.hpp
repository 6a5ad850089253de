// What the words of a scheme mean, in presets and in the configuration alike.
#pragma once

#include "recibo/verify/scheme.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace recibo::verify {

template <class Enum, std::size_t N>
using word_table = std::array<std::pair<std::string_view, Enum>, N>;

inline constexpr word_table<hash_name, 4> hash_words{
    {{"sha1", hash_name::sha1}, {"sha256", hash_name::sha256}, {"sha384", hash_name::sha384}, {"sha512", hash_name::sha512}}};
inline constexpr word_table<text_encoding, 5> key_encoding_words{{{"utf8", text_encoding::utf8},
                                                                  {"base64", text_encoding::base64},
                                                                  {"hex", text_encoding::hex},
                                                                  {"pem", text_encoding::pem},
                                                                  {"html", text_encoding::html}}};
inline constexpr word_table<signature_encoding, 4> signature_encoding_words{{{"hex", signature_encoding::hex},
                                                                             {"base64", signature_encoding::base64},
                                                                             {"base64url", signature_encoding::base64url},
                                                                             {"text", signature_encoding::text}}};
inline constexpr word_table<timestamp_format, 4> timestamp_format_words{{{"unix_s", timestamp_format::unix_s},
                                                                         {"unix_ms", timestamp_format::unix_ms},
                                                                         {"unix_any", timestamp_format::unix_any},
                                                                         {"rfc3339", timestamp_format::rfc3339}}};

// The word of a value that has one; each of these tables has one for every value.
template <class Enum, std::size_t N>
constexpr std::string_view word_of(const word_table<Enum, N>& words, Enum value) noexcept {
  for (const auto& [word, one] : words)
    if (one == value) return word;
  return {};
}

}  // namespace recibo::verify
