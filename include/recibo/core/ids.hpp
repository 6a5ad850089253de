// Identifiers: UUIDv7 inside, exact bounded byte strings outside (decision 1, K18).
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace recibo {

// A UUID of one kind of thing. Two kinds do not mix: a delivery_id is no operation_id.
template <class Tag>
struct uuid_of {
  std::array<std::uint8_t, 16> bytes{};

  bool is_nil() const noexcept { return bytes == std::array<std::uint8_t, 16>{}; }
  // The 16 bytes in network order, as PostgreSQL's binary uuid wants them. Borrows.
  std::string_view binary() const noexcept { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }
  friend auto operator<=>(const uuid_of&, const uuid_of&) = default;
};

using operation_id = uuid_of<struct operation_tag>;
using delivery_id = uuid_of<struct delivery_tag>;
using review_id = uuid_of<struct review_tag>;
using notification_id = uuid_of<struct notification_tag>;
using failed_callback_id = uuid_of<struct failed_callback_tag>;
using look_up_id = uuid_of<struct look_up_tag>;

// A fresh UUIDv7 (RFC 9562): 48 bits of Unix milliseconds of `at`, then 74 random bits, increasing within one thread:
// where `at` stands still or steps back by less than ten seconds, the last one's milliseconds are kept and its random
// part grows by a random step. A longer step back is taken as a clock that was put right, and is followed.
std::array<std::uint8_t, 16> uuid_v7_bytes(sys_micros at);
template <class Id>
Id make_id(sys_micros at) {
  return Id{uuid_v7_bytes(at)};
}

// Lower case, 36 characters.
std::string uuid_text(const std::array<std::uint8_t, 16>& bytes);
template <class Tag>
std::string to_string(const uuid_of<Tag>& id) {
  return uuid_text(id.bytes);
}

// 36 characters, hex in either case. permanent::malformed_field otherwise.
result<std::array<std::uint8_t, 16>> parse_uuid_bytes(std::string_view text);
template <class Id>
result<Id> parse_id(std::string_view text) {
  auto bytes = parse_uuid_bytes(text);
  if (!bytes) return bytes.error();
  return Id{*bytes};
}

// The instant in a UUIDv7, with millisecond resolution.
sys_micros uuid_v7_time(const std::array<std::uint8_t, 16>& bytes) noexcept;

// A request ID (contract section 5): 1 to 255 bytes of printable ASCII (0x21 to 0x7e) without / ? # %, and not "." or
// "..", which every URL library takes for a folder, so that such an operation could not be reached (K18).
// permanent::malformed_field with the broken rule as its detail; `what` names the field in it.
result<void> check_request_id(std::string_view id, std::string_view what = "request_id");

// An alias, key or item ID (decision 1): 1 to 255 bytes of valid UTF-8 without control characters (C0, DEL, C1), not
// only blanks (Unicode white space and the zero-width characters). Same error.
result<void> check_alias(std::string_view id, std::string_view what);

}  // namespace recibo

template <class Tag>
struct std::hash<recibo::uuid_of<Tag>> {
  std::size_t operator()(const recibo::uuid_of<Tag>& id) const noexcept { return std::hash<std::string_view>{}(id.binary()); }
};
