// How lists that no index serves are searched: in windows of rows, for a bounded time, from where the last page ended.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>

namespace recibo::storage {

// How many rows one statement looks at. It begins small, for the usual list that is found at once, and grows.
inline constexpr std::array<std::int64_t, 3> windows{1'000, 5'000, 25'000};
// After this long the search returns what it has, and where to go on.
inline constexpr std::chrono::milliseconds search_time{1'500};

}  // namespace recibo::storage
