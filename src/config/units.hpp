// Durations, sizes and networks as they are written in the configuration. Pure.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::config {

// "500ms", "5m", "90d": digits and one unit of ms, s, m, h, d. nullopt: anything else, or beyond a hundred years.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
// The shortest such text.
std::string duration_text(std::chrono::milliseconds d);

// "1MiB", "8KiB", "512B", "2GiB". nullopt: anything else, or beyond 1024 GiB.
std::optional<std::uint64_t> parse_size(std::string_view text);
std::string size_text(std::uint64_t bytes);

// An address as 16 bytes, IPv4 as ::ffff:a.b.c.d, so that both families compare.
using ip_bytes = std::array<std::uint8_t, 16>;
std::optional<ip_bytes> parse_ip(std::string_view text);

struct network {
  ip_bytes base{};
  int prefix = 128;  // in terms of the 16 bytes
  bool contains(const ip_bytes& address) const noexcept;
};
// "10.0.0.0/8", "fd00::/8", or one address. Bits behind the prefix must be zero.
std::optional<network> parse_network(std::string_view text);

// What an outbound request must not reach by accident (K29).
enum class reach {
  open,     // a public address
  guarded,  // loopback, private or shared: only where `allow` names it
  never,    // link-local, multicast, unspecified, reserved: never
};
reach classify(const ip_bytes& address) noexcept;

}  // namespace recibo::config
