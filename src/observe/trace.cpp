#include "recibo/observe/trace.hpp"

#include "recibo/core/digest.hpp"

#include <algorithm>

namespace recibo::observe {
namespace {

bool lower_hex(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool all_zero(std::string_view text) noexcept { return text.find_first_not_of('0') == std::string_view::npos; }

std::string new_id(std::size_t bytes) {
  std::string id;
  do {
    id = to_hex(random_bytes(bytes));
  } while (all_zero(id));
  return id;
}

int value_of(char hex) noexcept { return hex <= '9' ? hex - '0' : hex - 'a' + 10; }

}  // namespace

std::optional<trace_parent> parse_traceparent(std::string_view text) {
  if (text.size() != 55 || text[2] != '-' || text[35] != '-' || text[52] != '-') return std::nullopt;
  const std::string_view version = text.substr(0, 2), trace = text.substr(3, 32), span = text.substr(36, 16),
                         flags = text.substr(53);
  if (version != "00" || !lower_hex(trace) || !lower_hex(span) || !lower_hex(flags)) return std::nullopt;
  if (all_zero(trace) || all_zero(span)) return std::nullopt;
  return trace_parent{std::string(trace), std::string(span),
                      static_cast<std::uint8_t>(value_of(flags[0]) * 16 + value_of(flags[1]))};
}

std::string make_traceparent(const trace_parent& from) {
  static constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  text.reserve(55);
  text.append("00-").append(from.trace_id).append("-").append(from.span_id).append("-");
  text += digits[from.flags >> 4];
  text += digits[from.flags & 15];
  return text;
}

std::string new_trace_id() { return new_id(16); }
std::string new_span_id() { return new_id(8); }

}  // namespace recibo::observe
