#include "../src/config/units.hpp"

#include <gtest/gtest.h>

namespace recibo::config {
namespace {

using std::chrono::milliseconds;

TEST(Units, ReadsDurations) {
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("5m"), milliseconds(300'000));
  EXPECT_EQ(parse_duration("90d"), milliseconds(90ll * 86'400'000));
  EXPECT_EQ(parse_duration("0s"), milliseconds(0));
  for (const auto bad :
       {"", "5", "m", "-5m", "+5m", "5 m", "1.5h", "5M", "5min", "1h30m", "36501d", "99999999999999999999d", "0x5m"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Units, WritesTheShortestDuration) {
  EXPECT_EQ(duration_text(milliseconds(300'000)), "5m");
  EXPECT_EQ(duration_text(milliseconds(90'000)), "90s");
  EXPECT_EQ(duration_text(milliseconds(86'400'000)), "1d");
  EXPECT_EQ(duration_text(milliseconds(1'500)), "1500ms");
  EXPECT_EQ(duration_text(milliseconds(0)), "0s");
}

TEST(Units, ReadsSizes) {
  EXPECT_EQ(parse_size("1MiB"), 1u << 20);
  EXPECT_EQ(parse_size("8KiB"), 8192u);
  EXPECT_EQ(parse_size("512B"), 512u);
  EXPECT_EQ(size_text(1u << 20), "1MiB");
  EXPECT_EQ(size_text(1536), "1536B");
  for (const auto bad : {"", "1", "1MB", "1kB", "1M", "-1B", "1.5MiB", "1025GiB", "18446744073709551615GiB"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

}  // namespace
}  // namespace recibo::config
