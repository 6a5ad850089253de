// W3C Trace Context: reads and writes `traceparent`, makes new identifiers. Pure but for the random bytes.
// Source: https://www.w3.org/TR/trace-context/ section 3.2. Safe from any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::observe {

struct trace_parent {
  std::string trace_id;  // 32 lower-case hex digits, not all zero
  std::string span_id;   // 16 lower-case hex digits, not all zero
  std::uint8_t flags = 0;

  bool sampled() const noexcept { return (flags & 1) != 0; }
};

// Strict: version 00, exactly 55 characters, lower case, no identifier of zeros. nullopt otherwise, and then a new trace
// begins: a broken header must not decide what is correlated with what.
std::optional<trace_parent> parse_traceparent(std::string_view text);

// "00-<trace>-<span>-<flags>"; also the form of the response header `traceresponse`.
std::string make_traceparent(const trace_parent& from);

// Random, never all zero.
std::string new_trace_id();
std::string new_span_id();

}  // namespace recibo::observe
