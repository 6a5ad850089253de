#include "units.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace recibo::config {
namespace {

struct unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first, as the shortest text wants it.
constexpr unit durations[] = {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1'000}, {"ms", 1}};
constexpr unit sizes[] = {{"GiB", 1ull << 30}, {"MiB", 1ull << 20}, {"KiB", 1ull << 10}, {"B", 1}};

template <std::size_t N>
std::optional<std::uint64_t> parse(std::string_view text, const unit (&units)[N], std::uint64_t most) {
  std::uint64_t count = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (bad != std::errc{}) return std::nullopt;
  const std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const unit& u : units)
    if (rest == u.name) return count <= most / u.factor ? std::optional(count * u.factor) : std::nullopt;
  return std::nullopt;
}

template <std::size_t N>
std::string shortest(std::uint64_t value, const unit (&units)[N]) {
  for (const unit& u : units)
    if (value != 0 && value % u.factor == 0) return std::to_string(value / u.factor) + std::string(u.name);
  return "0" + std::string(units[N - 1].name);
}

network fixed(const char* text) { return *parse_network(text); }

}  // namespace

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  const auto ms = parse(text, durations, 36'500ull * 86'400'000);
  if (!ms) return std::nullopt;
  return std::chrono::milliseconds(static_cast<std::int64_t>(*ms));
}

std::string duration_text(std::chrono::milliseconds d) {
  if (d.count() == 0) return "0s";
  return shortest(static_cast<std::uint64_t>(d.count()), durations);
}

std::optional<std::uint64_t> parse_size(std::string_view text) { return parse(text, sizes, 1ull << 40); }
std::string size_text(std::uint64_t bytes) { return shortest(bytes, sizes); }

std::optional<ip_bytes> parse_ip(std::string_view text) {
  const std::string copy(text);
  ip_bytes out{};
  if (inet_pton(AF_INET6, copy.c_str(), out.data()) == 1) return out;
  out = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (inet_pton(AF_INET, copy.c_str(), out.data() + 12) == 1) return out;
  return std::nullopt;
}

bool network::contains(const ip_bytes& address) const noexcept {
  for (int bit = 0; bit < prefix; bit += 8) {
    const auto i = static_cast<std::size_t>(bit / 8);
    const int keep = std::min(8, prefix - bit);
    const auto mask = static_cast<std::uint8_t>(0xff << (8 - keep));
    if ((address[i] & mask) != (base[i] & mask)) return false;
  }
  return true;
}

std::optional<network> parse_network(std::string_view text) {
  const std::size_t slash = text.find('/');
  const std::string_view address = text.substr(0, slash);
  const auto base = parse_ip(address);
  if (!base) return std::nullopt;
  const int width = address.find(':') == std::string_view::npos ? 32 : 128;
  int prefix = width;
  if (slash != std::string_view::npos) {
    const std::string_view digits = text.substr(slash + 1);
    const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), prefix);
    if (bad != std::errc{} || end != digits.data() + digits.size() || prefix < 0 || prefix > width) return std::nullopt;
  }
  network out{*base, prefix + (128 - width)};
  for (int bit = out.prefix; bit < 128; ++bit)
    if (out.base[static_cast<std::size_t>(bit / 8)] & (0x80 >> (bit % 8))) return std::nullopt;
  return out;
}

reach classify(const ip_bytes& address) noexcept {
  static const network never[] = {fixed("0.0.0.0/8"), fixed("169.254.0.0/16"), fixed("224.0.0.0/4"), fixed("240.0.0.0/4"),
                                  fixed("::/128"),    fixed("fe80::/10"),      fixed("ff00::/8")};
  static const network guarded[] = {fixed("10.0.0.0/8"),    fixed("127.0.0.0/8"), fixed("172.16.0.0/12"), fixed("192.168.0.0/16"),
                                    fixed("100.64.0.0/10"), fixed("::1/128"),     fixed("fc00::/7")};
  const auto holds = [&](const network& n) { return n.contains(address); };
  if (std::any_of(std::begin(never), std::end(never), holds)) return reach::never;
  if (std::any_of(std::begin(guarded), std::end(guarded), holds)) return reach::guarded;
  return reach::open;
}

}  // namespace recibo::config
