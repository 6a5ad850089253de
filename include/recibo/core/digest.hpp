// SHA-256 and the text forms of bytes. The only place outside verify and TLS that uses OpenSSL.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace recibo {

using sha256_digest = std::array<std::uint8_t, 32>;

sha256_digest sha256(std::string_view bytes);
// The 32 bytes as text-less data, for PostgreSQL's bytea. Borrows.
inline std::string_view binary(const sha256_digest& d) noexcept { return {reinterpret_cast<const char*>(d.data()), d.size()}; }

std::string to_hex(std::string_view bytes);
// nullopt: odd length or a character that is no hex digit. Either case.
std::optional<std::string> from_hex(std::string_view text);

std::string to_base64(std::string_view bytes);
// Strict: the standard alphabet, right padding, right length, no blanks, no stray bits (policy strict-base64).
std::optional<std::string> from_base64(std::string_view text);
// The URL alphabet, without padding.
std::string to_base64url(std::string_view bytes);
// Strict: the URL alphabet; padding may be absent, but not wrong.
std::optional<std::string> from_base64url(std::string_view text);

// Cryptographically random bytes. Aborts when the system has none.
std::string random_bytes(std::size_t count);
void fill_random(std::uint8_t* to, std::size_t count);

// Equal length and equal bytes, in time that depends on the length only.
bool equal_constant_time(std::string_view a, std::string_view b) noexcept;

// Length-prefixed fields, so that ("ab","c") and ("a","bc") differ (K05, decision 3): each field is
// its length as four bytes, big-endian, then its bytes; an absent field is 0xffffffff and nothing.
class canonical {
 public:
  canonical& add(std::string_view field);
  canonical& add_absent();
  // A template, so that text literals and strings are no candidates for an optional.
  template <class Text>
  canonical& add(const std::optional<Text>& field) {
    return field ? add(std::string_view(*field)) : add_absent();
  }
  // Eight bytes, big-endian, two's complement, as a field.
  canonical& add_number(std::int64_t value);
  void reserve(std::size_t size) { bytes_.reserve(size); }
  // Empty again, with the memory kept.
  void clear() noexcept { bytes_.clear(); }
  const std::string& bytes() const noexcept { return bytes_; }

 private:
  std::string bytes_;
};

// The first field of canonical bytes, with its length; empty: they do not begin with one that is present.
std::string_view canonical_field(std::string_view bytes) noexcept;

}  // namespace recibo
