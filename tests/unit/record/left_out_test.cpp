// What is left of a failed callback: kept as text, and taken away part by part.
#include "recibo/record/left_out.hpp"
#include "recibo/record/work.hpp"

#include <gtest/gtest.h>

namespace recibo::record {
namespace {

TEST(LeftOut, IsReadAsItWasWritten) {
  const auto delivery = make_id<delivery_id>(sys_micros(std::chrono::microseconds(1'700'000'000'000'000)));
  const std::vector<left_part> left{{0, delivery, {}}, {3, std::nullopt, {}}, {7, delivery, {0, 2, 999}}};
  EXPECT_EQ(read_left_out(write_left_out(left)), left);
  const std::vector<left_part> items{{std::nullopt, delivery, {1}}};
  EXPECT_EQ(read_left_out(write_left_out(items)), items);
}

TEST(LeftOut, NothingIsMadeOfWhatIsNoList) {
  for (const auto* text : {"", "null", "{}", "[", "7"}) EXPECT_TRUE(read_left_out(text).empty()) << text;
}

TEST(LeftOut, WhereNothingIsSaidAllIsLeft) {
  replay by;
  EXPECT_EQ(left_of("", by), (std::vector<left_part>{{}})) << "one event: itself";
  by.part = 1;
  by.parts = 3;
  auto left = left_of("", by);
  ASSERT_EQ(left.size(), 3U);
  EXPECT_EQ(replayed_part(left, by, "") - left.begin(), 1);
  left.erase(replayed_part(left, by, ""));
  left = left_of(write_left_out(left), by);
  EXPECT_EQ(left.size(), 2U);
  EXPECT_EQ(replayed_part(left, by, ""), left.end()) << "it is decided";
}

}  // namespace
}  // namespace recibo::record
