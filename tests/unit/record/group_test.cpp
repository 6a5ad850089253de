// Several events of one request, and what is said of items, as the recorder keeps them.
#include "src/record/group.hpp"
#include "src/record/items_text.hpp"

#include <gtest/gtest.h>

namespace recibo::record {
namespace {

using transition::disposition;

config::provider provider() {
  config::provider out;
  out.name = "p1";
  return out;
}

outcome of(disposition d, bool replayed = false, int status = 200) {
  outcome out;
  out.disposition = d;
  out.replayed = replayed;
  out.status = status;
  return out;
}

class Group : public ::testing::Test {
 protected:
  callback_group made(std::size_t parts) {
    callback_group g;
    g.parts.resize(parts);
    for (auto& p : g.parts) p.provider = &from;
    return g;
  }
  config::provider from = provider();
};

TEST_F(Group, OneWordIsOneAnswer) {
  const auto g = made(2);
  const auto all = combine(g, {of(disposition::unmapped, false, 202), of(disposition::unmapped, false, 202)});
  EXPECT_EQ(all.disposition, disposition::unmapped);
  EXPECT_EQ(all.status, 202);
  EXPECT_FALSE(all.replayed);
  EXPECT_EQ(all.parts.size(), 2u);
}

TEST_F(Group, SomeAreApartial) {
  const auto g = made(2);
  const auto some = combine(g, {of(disposition::applied), of(disposition::unprocessable, false, 422)});
  EXPECT_EQ(some.disposition, disposition::partial);
  EXPECT_EQ(some.status, 200);
}

TEST_F(Group, AReplayIsOneWhereNothingWasNew) {
  const auto g = made(2);
  EXPECT_TRUE(combine(g, {of(disposition::applied, true), of(disposition::unmapped)}).replayed);
  EXPECT_FALSE(combine(g, {of(disposition::applied, true), of(disposition::applied)}).replayed);
  EXPECT_FALSE(combine(g, {of(disposition::unmapped), of(disposition::unmapped)}).replayed);
}

TEST_F(Group, WhatIsSettledIsNotLookedAtAgain) {
  auto g = made(3);
  g.settled = {std::nullopt, of(disposition::parked)};
  int seen = 0;
  for_each_callback(work(g), [&](const callback&) { ++seen; });
  EXPECT_EQ(seen, 2);
}

TEST(ItemsText, WhatIsParkedComesBackAsItWasSaid) {
  std::vector<item_news> items(3);
  items[0] = {"a",
              "ok",
              "complete",
              sys_micros(std::chrono::microseconds(1'790'848'800'123'456)),
              9'223'372'036'854'775'807,
              R"({"score":0.50})",
              std::nullopt};
  items[1].item_id = "b \"quoted\"";
  items[1].event_raw = "odd";
  items[2].unprocessable = error(permanent::missing_field, "item_id: absent or blank");
  const auto back = read_item_news(write_item_news(items));
  ASSERT_EQ(back.size(), 3u);
  EXPECT_EQ(back[0], items[0]);
  EXPECT_EQ(back[1], items[1]);
  ASSERT_TRUE(back[2].unprocessable);
  EXPECT_EQ(back[2].unprocessable->code, make_error_code(permanent::missing_field));
  EXPECT_EQ(write_item_news({}), "");
  EXPECT_TRUE(read_item_news("").empty());
}

TEST(ItemsText, ResultsLeaveOutWhatIsNotKnown) {
  std::vector<item_result> results(2);
  results[0].item_id = "a";
  results[0].outcome = disposition::applied;
  results[0].state = "completed";
  results[1].outcome = disposition::unprocessable;
  results[1].detail = "item_id: absent";
  results[1].index = 1;
  EXPECT_EQ(write_item_results(results), R"([{"item_id":"a","disposition":"applied","state":"completed"},)"
                                         R"({"index":1,"disposition":"unprocessable","detail":"item_id: absent"}])");
}

}  // namespace
}  // namespace recibo::record
