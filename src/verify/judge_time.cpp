#include "recibo/core/clock.hpp"

#include "kinds.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

std::chrono::microseconds distance(std::chrono::microseconds a, std::chrono::microseconds b) noexcept {
  return a < b ? b - a : a - b;
}

}  // namespace

result<void> judge_time(timestamp_format format, std::optional<std::chrono::seconds> tolerance, std::string_view text,
                        sys_micros now) {
  result<sys_micros> at = sys_micros{};
  switch (format) {
    case timestamp_format::unix_s:
      at = parse_unix_seconds(text);
      // Both in whole seconds, as providers' libraries compare them: 300.9 s of 300 is in time.
      now = std::chrono::floor<std::chrono::seconds>(now);
      break;
    case timestamp_format::unix_ms:
      at = parse_unix_millis(text);
      now = std::chrono::floor<std::chrono::milliseconds>(now);
      break;
    case timestamp_format::unix_any:
      if (text.size() > 20 || !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        return error(permanent::timestamp_malformed, "the timestamp is not a number");
      }
      return {};
    case timestamp_format::rfc3339: at = parse_rfc3339(text); break;
  }
  if (!at) return error(permanent::timestamp_malformed, "the timestamp is not in the scheme's format");
  if (tolerance && distance(now.time_since_epoch(), at->time_since_epoch()) > *tolerance) {
    return error(permanent::timestamp_stale, "the timestamp is outside the tolerance");
  }
  return {};
}

}  // namespace recibo::verify
