// Durations and sizes as they are written in the configuration. Pure.
#pragma once

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

}  // namespace recibo::config
