// Several news of one request about one subject; the sequences that can be believed; and what items come to.
#include "recibo/transition/decide.hpp"
#include "tables.hpp"

#include <gtest/gtest.h>

namespace recibo::transition::together_cases {
namespace {

using namespace tables;
using namespace std::chrono_literals;

constexpr std::optional<std::int64_t> none;

// A ring that can be thrown either way, and ends.
workflow lamp() {
  std::vector<move> moves;
  add(moves, {"off"}, "switch_on", "on", {provider});
  add(moves, {"on"}, "switch_off", "off", {provider});
  add(moves, {"on", "off"}, "scrap", "gone", {provider});
  return made("lamp", "off", {open("off"), open("on"), closed("gone")}, std::move(moves));
}

news said(std::string_view event, std::optional<std::int64_t> sequence = {}, std::optional<sys_micros> at = {}) {
  return news{.event = event, .occurred_at = at, .sequence = sequence};
}

std::vector<std::string> order_of(const workflow& table, std::string_view state, const std::vector<news>& all,
                                  order_rule rule = order_rule::table) {
  const auto got = decide_together(table, subject{.state = state}, all, rule);
  if (got.contradicts) return {"contradicts"};
  std::vector<std::string> out;
  for (const auto i : got.order) out.emplace_back(all[i].event);
  return out;
}

using words = std::vector<std::string>;

TEST(Together, OneAndNoneAreDecidedAsTheyStand) {
  EXPECT_EQ(order_of(payment(), "accepted", {said("complete")}), words{"complete"});
  EXPECT_EQ(order_of(payment(), "accepted", {}), words{});
}

TEST(Together, AStoryIsToldInTheOrderThatTheTableAllows) {
  EXPECT_EQ(order_of(payment(), "accepted", {said("progress"), said("complete")}), (words{"progress", "complete"}));
  EXPECT_EQ(order_of(payment(), "accepted", {said("complete"), said("progress")}), (words{"progress", "complete"}));
  EXPECT_EQ(order_of(payment(), "completed", {said("complete"), said("progress")}), (words{"complete", "progress"}));
}

TEST(Together, TwoEndsContradictEachOther) {
  EXPECT_EQ(order_of(payment(), "accepted", {said("complete"), said("fail")}), words{"contradicts"});
  EXPECT_EQ(order_of(payment(), "completed", {said("complete"), said("fail")}), words{"contradicts"});
  EXPECT_EQ(order_of(payment(), "accepted", {said("fail"), said("progress"), said("complete")}), words{"contradicts"});
}

TEST(Together, WhereTheTableAllowsTwoEndsOnlyTheTimeTells) {
  EXPECT_EQ(order_of(lamp(), "off", {said("switch_on"), said("switch_off")}), words{"contradicts"});
  const sys_micros noon{1'790'848'800s};
  EXPECT_EQ(order_of(lamp(), "off", {said("switch_off", none, noon), said("switch_on", none, noon - 1s)}),
            (words{"switch_on", "switch_off"}));
  EXPECT_EQ(order_of(lamp(), "off", {said("switch_off", none, noon), said("switch_on", none, noon)}), words{"contradicts"});
}

TEST(Together, APromisedSequenceIsTheOrder) {
  const auto by = order_rule::sequence;
  EXPECT_EQ(order_of(lamp(), "off", {said("switch_off", 2), said("switch_on", 1)}, by), (words{"switch_on", "switch_off"}));
  EXPECT_EQ(order_of(lamp(), "off", {said("switch_off", 2), said("switch_on", 1)}), words{"contradicts"}) << "nobody promised it";
  EXPECT_EQ(order_of(payment(), "accepted", {said("fail", 2), said("complete", 1)}, by), words{"contradicts"});
}

TEST(Together, TheSameEventSeveralTimesStaysTogether) {
  EXPECT_EQ(order_of(payment(), "accepted", {said("progress"), said("complete"), said("progress")}),
            (words{"progress", "progress", "complete"}));
}

TEST(Sequences, OfOneCount) {
  EXPECT_TRUE(of_one_count(1, 1));
  EXPECT_TRUE(of_one_count(0, 1'000'000));
  EXPECT_FALSE(of_one_count(0, 1'000'001));
  EXPECT_TRUE(of_one_count(1'767'225'600'000, 1'700'000'000'000));
  EXPECT_FALSE(of_one_count(7, 9'000'000'000'000'000'000));
  EXPECT_FALSE(of_one_count(-9'000'000'000'000'000'000, 9'000'000'000'000'000'000));
}

TEST(Sequences, TheWatermarkIsNotCarriedOffByAnAbsurdOne) {
  EXPECT_EQ(watermark_after(none, 7), 7);
  EXPECT_EQ(watermark_after(7, none), 7);
  EXPECT_EQ(watermark_after(7, 9), 9);
  EXPECT_EQ(watermark_after(9, 7), 9);
  EXPECT_EQ(watermark_after(7, 9'000'000'000'000'000'000), 7);
  EXPECT_EQ(watermark_after(none, 9'000'000'000'000'000'000), none);
  EXPECT_EQ(watermark_after(1'000'000'000'000, 8), 8) << "the first one was the absurd one";
}

TEST(Clocks, OnlyWhatAClockCanHaveShownBreaksTies) {
  const sys_micros now{1'790'848'800s};
  EXPECT_EQ(believable(now, now), now);
  EXPECT_EQ(believable(now - 24h * 300, now), now - 24h * 300);
  EXPECT_EQ(believable(now + 25h, now), std::nullopt);
  EXPECT_EQ(believable(sys_micros{}, now), std::nullopt);
  EXPECT_EQ(believable(std::nullopt, now), std::nullopt);
}

workflow batch() {
  std::vector<move> moves;
  add(moves, {"open"}, "progress", "working", {provider});
  add(moves, {"open", "working"}, "complete", "done", {provider});
  add(moves, {"open", "working"}, "fail", "failed", {operator_});
  std::optional<workflow> out;
  std::vector<items_rule> rules;
  rules.push_back({items_rule::quantifier::all, {"done"}, "complete"});
  rules.push_back({items_rule::quantifier::all, {"done", "failed"}, "fail"});
  rules.push_back({items_rule::quantifier::any, {"working", "done", "failed"}, "progress"});
  const auto problems = workflow::make("batch", "open", {open("open"), open("working"), closed("done"), closed("failed")},
                                       std::move(moves), out, std::move(rules));
  if (!out) throw std::logic_error(problems.front().message);
  return std::move(*out);
}

std::string by_items(std::string_view state, const item_counts& counts) {
  static const workflow table = batch();
  const auto* row = decide_by_items(table, state, counts);
  return row ? row->event : "";
}

TEST(Items, TheFirstRuleThatHoldsAndHasARowIsTaken) {
  EXPECT_EQ(by_items("open", {{"open", 2}}), "");
  EXPECT_EQ(by_items("open", {{"open", 1}, {"done", 1}}), "progress");
  EXPECT_EQ(by_items("working", {{"open", 1}, {"done", 1}}), "") << "it is there already";
  EXPECT_EQ(by_items("working", {{"done", 2}, {"open", 0}}), "complete");
  EXPECT_EQ(by_items("working", {{"done", 1}, {"failed", 1}}), "fail") << "the rule is the permission, whoever may raise it";
  EXPECT_EQ(by_items("done", {{"failed", 2}}), "") << "an end is an end";
  EXPECT_EQ(by_items("open", {}), "");
}

TEST(Items, RulesArePartOfTheDefinitionAndOfNoOlderOne) {
  const workflow with = batch();
  const auto again = workflow::parse(with.definition());
  ASSERT_TRUE(again);
  EXPECT_EQ(again->digest(), with.digest());
  ASSERT_EQ(again->items().size(), 3u);
  EXPECT_EQ(again->items()[1].states, (std::vector<std::string>{"done", "failed"}));
  EXPECT_EQ(lamp().definition().find("items"), std::string::npos);
}

TEST(Items, ARuleNamesStatesAndAnEventOfTheTable) {
  std::vector<move> moves;
  add(moves, {"off"}, "on", "on", {provider});
  std::optional<workflow> out;
  const auto problems = workflow::make("w", "off", {open("off"), closed("on")}, std::move(moves), out,
                                       {{items_rule::quantifier::any, {"of"}, "on"}, {items_rule::quantifier::all, {}, "up"}});
  ASSERT_EQ(problems.size(), 3u);
  EXPECT_EQ(problems[0].where, "items/0/states");
  EXPECT_EQ(problems[1].where, "items/1/states");
  EXPECT_EQ(problems[2].where, "items/1/event");
  EXPECT_FALSE(out);
}

TEST(Combined, WhatTheElementsComeTo) {
  using enum disposition;
  const auto of = [](std::vector<disposition> all) { return combined(all); };
  EXPECT_EQ(of({}), ignored);
  EXPECT_EQ(of({ignored, ignored}), ignored);
  EXPECT_EQ(of({applied, ignored}), applied);
  EXPECT_EQ(of({applied, redundant, stale}), applied);
  EXPECT_EQ(of({redundant, stale}), stale);
  EXPECT_EQ(of({applied, unmapped}), partial);
  EXPECT_EQ(of({redundant, review}), partial);
  EXPECT_EQ(of({review, review}), review);
  EXPECT_EQ(of({parked, parked}), parked);
  EXPECT_EQ(of({applied, parked}), partial);
}

}  // namespace
}  // namespace recibo::transition::together_cases
