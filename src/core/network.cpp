#include "recibo/core/network.hpp"

#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

namespace recibo {
namespace {

constexpr std::size_t v4_at = 12;
constexpr int v4_prefix = 96;

network fixed(const char* text) { return *parse_network(text); }

// The IPv4 address in four bytes from `at` on.
ip_bytes carried(const ip_bytes& address, std::size_t at) noexcept {
  ip_bytes out{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  for (std::size_t i = 0; i < 4; ++i) out[v4_at + i] = address[at + i];
  return out;
}

}  // namespace

std::optional<ip_bytes> parse_ip(std::string_view text) {
  // inet_pton reads to the first NUL, and would take what stands before it.
  if (text.size() >= INET6_ADDRSTRLEN || text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string copy(text);
  ip_bytes out{};
  if (inet_pton(AF_INET6, copy.c_str(), out.data()) == 1) return out;
  out = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  if (inet_pton(AF_INET, copy.c_str(), out.data() + v4_at) == 1) return out;
  return std::nullopt;
}

bool is_v4(const ip_bytes& address) noexcept {
  return std::all_of(address.begin(), address.begin() + 10, [](std::uint8_t b) { return b == 0; }) && address[10] == 0xff &&
         address[11] == 0xff;
}

std::string to_string(const ip_bytes& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (is_v4(address)) {
    inet_ntop(AF_INET, address.data() + v4_at, text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, address.data(), text.data(), text.size());
  }
  return text.data();
}

bool network::contains(const ip_bytes& address) const noexcept {
  if (is_v4(address) && prefix < v4_prefix) return false;
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

std::string to_string(const network& n) {
  const std::string address = to_string(n.base);
  if (n.prefix == 128) return address;
  return address + "/" + std::to_string(is_v4(n.base) && n.prefix >= v4_prefix ? n.prefix - v4_prefix : n.prefix);
}

std::optional<ip_endpoint> parse_ip_endpoint(std::string_view text) {
  if (const auto alone = parse_ip(text)) return ip_endpoint{*alone, 0};
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  std::string_view host = text.substr(0, colon);
  const std::string_view digits = text.substr(colon + 1);
  const bool bracketed = host.starts_with('[') && host.ends_with(']');
  if (bracketed) host = host.substr(1, host.size() - 2);
  if (bracketed != (host.find(':') != std::string_view::npos)) return std::nullopt;
  const auto address = parse_ip(host);
  ip_endpoint out;
  const auto [end, bad] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  if (!address || bad != std::errc{} || end != digits.data() + digits.size() || out.port == 0) return std::nullopt;
  out.address = *address;
  return out;
}

std::string to_string(const ip_endpoint& e) {
  const std::string address = to_string(e.address);
  if (e.port == 0) return address;
  return (is_v4(e.address) ? address : '[' + address + ']') + ':' + std::to_string(e.port);
}

bool contains(std::span<const network> networks, const ip_bytes& address) noexcept {
  return std::any_of(networks.begin(), networks.end(), [&](const network& n) { return n.contains(address); });
}

reach classify(const ip_bytes& address) noexcept {
  // The single addresses are where clouds hand out credentials to whoever asks from inside.
  static const network never[] = {fixed("0.0.0.0/8"),   fixed("169.254.0.0/16"),  fixed("224.0.0.0/4"),
                                  fixed("240.0.0.0/4"), fixed("100.100.100.200"), fixed("168.63.129.16"),
                                  fixed("192.0.0.192"), fixed("::/128"),          fixed("fe80::/10"),
                                  fixed("ff00::/8"),    fixed("fd00:ec2::254"),   fixed("fd20:ce::254")};
  static const network guarded[] = {
      fixed("10.0.0.0/8"),     fixed("100.64.0.0/10"),  fixed("127.0.0.0/8"),    fixed("172.16.0.0/12"), fixed("192.0.0.0/24"),
      fixed("192.0.2.0/24"),   fixed("192.88.99.0/24"), fixed("192.168.0.0/16"), fixed("198.18.0.0/15"), fixed("198.51.100.0/24"),
      fixed("203.0.113.0/24"), fixed("::1/128"),        fixed("fc00::/7"),       fixed("fec0::/10"),     fixed("2001::/23"),
      fixed("2001:db8::/32"),  fixed("3fff::/20"),      fixed("5f00::/16")};
  static const network nat64 = fixed("64:ff9b::/96"), local_nat64 = fixed("64:ff9b:1::/48"), six_to_four = fixed("2002::/16"),
                       compatible = fixed("::/96"), global = fixed("2000::/3");
  if (contains(never, address)) return reach::never;
  if (contains(guarded, address)) return reach::guarded;
  if (is_v4(address)) return reach::open;
  if (nat64.contains(address) || compatible.contains(address)) return classify(carried(address, 12));
  if (six_to_four.contains(address)) return classify(carried(address, 2));
  // A translator of this very network: what it leads to is its own business unless that is forbidden anyhow.
  if (local_nat64.contains(address)) return std::max(reach::guarded, classify(carried(address, 12)));
  return global.contains(address) ? reach::open : reach::never;
}

bool may_reach(const ip_bytes& address, std::span<const network> allow) noexcept {
  switch (classify(address)) {
    case reach::open: return true;
    case reach::guarded: return contains(allow, address);
    case reach::never: return false;
  }
  return false;
}

}  // namespace recibo
