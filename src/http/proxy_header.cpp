#include "proxy_header.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace recibo::http {
namespace {

using namespace std::string_view_literals;

constexpr std::string_view binary_signature = "\r\n\r\n\0\r\nQUIT\n"sv;
constexpr std::string_view line_signature = "PROXY "sv;
constexpr std::size_t binary_head = 16;

// Version 2, commands.
constexpr unsigned char command_local = 0x20, command_proxy = 0x21;
// Address family and transport. A stream is what we accepted: datagrams are nonsense here.
constexpr unsigned char unspecified = 0x00, tcp_v4 = 0x11, tcp_v6 = 0x21, unix_stream = 0x31;
// Source and destination address, source and destination port.
constexpr std::size_t v4_block = 12, v6_block = 36, unix_block = 216;

unsigned char byte_at(std::string_view text, std::size_t i) noexcept { return static_cast<unsigned char>(text[i]); }

bool begins_alike(std::string_view bytes, std::string_view with) noexcept {
  const std::size_t n = std::min(bytes.size(), with.size());
  return bytes.substr(0, n) == with.substr(0, n);
}

bool is_port(std::string_view text) noexcept {
  unsigned value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failed == std::errc() && end == text.data() + text.size() && value <= 65535 && (text.size() == 1 || text.front() != '0');
}

// Text in front of the next blank, which goes with it.
std::string_view next_word(std::string_view& rest) noexcept {
  const std::size_t end = std::min(rest.find(' '), rest.size());
  const std::string_view word = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return word;
}

}  // namespace

std::size_t proxy_header::take(std::string_view bytes) {
  std::size_t taken = 0;
  while (at_ == state::more && taken < bytes.size()) {
    const std::size_t count = std::min(wanted(), bytes.size() - taken);
    seen_.append(bytes.substr(taken, count));
    taken += count;
    at_ = judge();
  }
  return taken;
}

// Never more than what certainly belongs to the header. A line is read to its end a byte at a time once it can end.
std::size_t proxy_header::wanted() const noexcept {
  if (!seen_.starts_with('\r')) return 1;
  if (seen_.size() < binary_head) return binary_head - seen_.size();
  const std::size_t length = binary_head + (std::size_t{byte_at(seen_, 14)} << 8) + byte_at(seen_, 15);
  return length - seen_.size();
}

proxy_header::state proxy_header::judge() {
  if (seen_.starts_with('\r')) return begins_alike(seen_, binary_signature) ? judge_binary() : state::broken;
  return begins_alike(seen_, line_signature) ? judge_line() : state::broken;
}

proxy_header::state proxy_header::judge_line() {
  if (!seen_.ends_with("\r\n")) return seen_.size() >= line_most ? state::broken : state::more;
  std::string_view rest = std::string_view(seen_).substr(0, seen_.size() - 2);
  if (rest.find_first_of("\r\n\0"sv) != std::string_view::npos) return state::broken;
  rest.remove_prefix(std::min(line_signature.size(), rest.size()));
  const std::string_view family = next_word(rest);
  // Whatever follows: a proxy may say it and means nothing by it.
  if (family == "UNKNOWN") return state::done;
  if (family != "TCP4" && family != "TCP6") return state::broken;
  const std::string_view from = next_word(rest), to = next_word(rest), from_port = next_word(rest);
  const auto source = parse_ip(from), target = parse_ip(to);
  const bool wide = family == "TCP6";
  const auto of_family = [&](std::string_view text) { return (text.find(':') != std::string_view::npos) == wide; };
  if (!source || !target || !of_family(from) || !of_family(to) || !is_port(from_port) || !is_port(rest)) return state::broken;
  source_ = source;
  return state::done;
}

proxy_header::state proxy_header::judge_binary() {
  if (seen_.size() < binary_head) return state::more;
  const std::size_t length = (std::size_t{byte_at(seen_, 14)} << 8) + byte_at(seen_, 15);
  const unsigned char command = byte_at(seen_, 12), family = byte_at(seen_, 13);
  if (binary_head + length > binary_most || (command != command_local && command != command_proxy)) return state::broken;
  const bool whole = seen_.size() == binary_head + length;
  // The proxy's own connection, a health check: whatever else the header says counts for nothing.
  if (command == command_local) return whole ? state::done : state::more;
  const bool fits = family == unspecified || (family == tcp_v4 && length >= v4_block) ||
                    (family == tcp_v6 && length >= v6_block) || (family == unix_stream && length >= unix_block);
  if (!fits) return state::broken;
  if (!whole) return state::more;
  if (family == tcp_v4) {
    ip_bytes from{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    for (std::size_t i = 0; i < 4; ++i) from[12 + i] = byte_at(seen_, binary_head + i);
    source_ = from;
  } else if (family == tcp_v6) {
    ip_bytes from{};
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = byte_at(seen_, binary_head + i);
    source_ = from;
  }
  return state::done;
}

}  // namespace recibo::http
