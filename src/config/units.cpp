#include "units.hpp"

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

}  // namespace recibo::config
