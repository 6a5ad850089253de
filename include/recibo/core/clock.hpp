// Instants as microseconds since 1970-01-01T00:00:00Z, the resolution of PostgreSQL's timestamptz.
// Pure code takes a `sys_micros`; only edges call `now()` (decision 11). No result depends on the machine's zone (K25).
#pragma once

#include "recibo/core/error.hpp"

#include <chrono>
#include <string>
#include <string_view>

namespace recibo {

using sys_micros = std::chrono::sys_time<std::chrono::microseconds>;

// The wall clock of this process.
sys_micros now() noexcept;

// "2026-10-01T10:00:00.000000Z": UTC, always six digits (contract section 5). An instant outside the years 0001 to 9999
// is shown as the nearest one inside, because the form holds no other.
std::string to_rfc3339(sys_micros at);

// Strict RFC 3339: a full date, 'T' or 't', a time, an optional fraction (digits past the sixth are cut off),
// and an offset ('Z', 'z' or ±hh:mm), which is required: a local time without one names no instant.
// Years 0001 to 9999, in the text and as the instant. A leap second (":60", at 23:59 UTC on the last day of a month)
// is taken as the next second.
// permanent::malformed_field   anything else
result<sys_micros> parse_rfc3339(std::string_view text);

// Digits only, at most 17 of them; no sign, no blanks.
// permanent::malformed_field   anything else, or an instant beyond the year 9999
result<sys_micros> parse_unix_seconds(std::string_view digits);
result<sys_micros> parse_unix_millis(std::string_view digits);

}  // namespace recibo
