// IP addresses and networks: whose word about a client counts (S21), and what an outbound request may reach (K29). Pure, and
// the one place that reads and compares them. An IPv4 address and its IPv4-mapped form (::ffff:a.b.c.d) are the same address.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace recibo {

// In network order, IPv4 as ::ffff:a.b.c.d, so that both families compare.
using ip_bytes = std::array<std::uint8_t, 16>;

// "10.1.2.3", "fd00::1", "::ffff:10.1.2.3"; no brackets, port, zone or blanks, and no number such as "2130706433".
std::optional<ip_bytes> parse_ip(std::string_view text);
// The usual text: IPv4 dotted, IPv6 in the shortest form (RFC 5952).
std::string to_string(const ip_bytes& address);
bool is_v4(const ip_bytes& address) noexcept;

struct network {
  ip_bytes base{};
  int prefix = 128;  // in terms of the 16 bytes: 10.0.0.0/8 has 104
  // A network of IPv6, ::/0 too, holds no IPv4 address.
  bool contains(const ip_bytes& address) const noexcept;
};
// "10.0.0.0/8", "fd00::/8", or one address. Bits behind the prefix must be zero.
std::optional<network> parse_network(std::string_view text);
// As it would be written; without the prefix when it is one address.
std::string to_string(const network& n);
// Where a connection goes: an address, and a port where another one than the usual is meant.
struct ip_endpoint {
  ip_bytes address{};
  std::uint16_t port = 0;  // 0: the one that the URL names
  friend bool operator==(const ip_endpoint&, const ip_endpoint&) = default;
};
// "10.1.2.3", "10.1.2.3:8443", "fd00::1" or "[fd00::1]:8443".
std::optional<ip_endpoint> parse_ip_endpoint(std::string_view text);
std::string to_string(const ip_endpoint& e);

// Whether one of them holds the address.
bool contains(std::span<const network> networks, const ip_bytes& address) noexcept;

// What an outbound request must not reach by accident (K29).
enum class reach {
  open,     // a public address
  guarded,  // loopback, private, shared, documentation, benchmarks: only where the configuration names it
  never,    // link-local, multicast, unspecified, reserved, metadata services of clouds: not even then
};
// An address that carries an IPv4 one for a translator (NAT64, 6to4, IPv4-compatible) is judged by what it carries, because
// that is where its packets end. Of IPv6 only 2000::/3 is public. Source: the IANA special-purpose registries (RFC 6890).
reach classify(const ip_bytes& address) noexcept;
// Whether a request may be sent there: `open`, or `guarded` and in one of `allow`. Which is asked of the address as it is: a
// form that carries 10.0.0.1 is not in 10.0.0.0/8.
bool may_reach(const ip_bytes& address, std::span<const network> allow) noexcept;

}  // namespace recibo
