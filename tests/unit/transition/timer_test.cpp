// When a timer runs out, with a clock of the test's own (R22, R44).
#include "recibo/transition/timer.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace recibo::transition {
namespace {

using namespace std::chrono_literals;

const sys_micros clock_noon = *parse_rfc3339("2026-10-01T12:00:00Z");
sys_micros after_noon(std::chrono::seconds s) { return clock_noon + s; }

struct outage_case {
  const char* name;
  timer_kind what;
  std::chrono::seconds set, due;
  std::vector<std::pair<std::chrono::seconds, std::chrono::seconds>> downtimes;
  std::chrono::seconds gap, expected;
};

const outage_case outage_cases[] = {
    {"no_outage", timer_kind::limit, 0s, 60s, {}, 30s, 60s},
    {"within", timer_kind::limit, 0s, 60s, {{20s, 30s}}, 0s, 70s},
    {"the_gap_counts_too", timer_kind::limit, 0s, 60s, {{20s, 30s}}, 15s, 85s},
    {"due_meanwhile", timer_kind::limit, 0s, 60s, {{50s, 500s}}, 0s, 510s},
    {"due_before_it_began", timer_kind::limit, 0s, 60s, {{60s, 90s}}, 30s, 60s},
    {"set_after_it_ended", timer_kind::limit, 100s, 160s, {{20s, 100s}}, 30s, 160s},
    {"set_meanwhile", timer_kind::limit, 50s, 110s, {{20s, 80s}}, 10s, 150s},
    {"two_apart", timer_kind::limit, 0s, 60s, {{10s, 20s}, {40s, 50s}}, 0s, 80s},
    {"two_within_one_gap_are_one_pause", timer_kind::limit, 0s, 60s, {{10s, 20s}, {25s, 30s}}, 20s, 100s},
    {"a_short_one_within_the_gap_of_a_long_one", timer_kind::limit, 0s, 60s, {{10s, 20s}, {21s, 22s}}, 20s, 92s},
    {"put_off_into_a_second_one", timer_kind::limit, 0s, 60s, {{10s, 30s}, {70s, 90s}}, 0s, 100s},
    {"a_deadline_far_ahead_stays", timer_kind::deadline, 0s, 600s, {{20s, 30s}}, 30s, 600s},
    {"a_deadline_meanwhile_waits_for_the_end", timer_kind::deadline, 0s, 60s, {{50s, 90s}}, 0s, 90s},
    {"a_deadline_within_the_gap_waits_too", timer_kind::deadline, 0s, 100s, {{50s, 90s}}, 30s, 120s},
    {"a_deadline_before_it_began", timer_kind::deadline, 0s, 40s, {{50s, 90s}}, 30s, 40s},
};

TEST(Timer, AnOutagePutsOffWhatRunsMeanwhile) {
  for (const auto& c : outage_cases) {
    std::vector<downtime> downtimes;
    for (const auto& [began, ended] : c.downtimes) downtimes.push_back({after_noon(began), after_noon(ended)});
    const auto due = put_off(c.what, after_noon(c.set), after_noon(c.due), downtimes, c.gap);
    EXPECT_EQ(due - clock_noon, c.expected) << c.name;
  }
}

TEST(Timer, OneThatWasPutOffIsNotPutOffByTheSameOutageAgain) {
  const std::vector<downtime> downtimes{{after_noon(50s), after_noon(90s)}};
  const auto once = put_off(timer_kind::limit, clock_noon, after_noon(60s), downtimes, 30s);
  EXPECT_EQ(once, after_noon(130s));
  // Put off at 91 s, which is when it is set anew.
  EXPECT_EQ(put_off(timer_kind::limit, after_noon(91s), once, downtimes, 30s), once);
}

TEST(Timer, WhileAnOutageGoesOnNothingRunsOutAndNoGapIsCountedYet) {
  const std::vector<downtime> until_100{{after_noon(40s), after_noon(100s), true}};
  const auto once = put_off(timer_kind::limit, clock_noon, after_noon(95s), until_100, 300s);
  EXPECT_EQ(once, after_noon(155s)) << "55 s of it were left when it began";
  EXPECT_EQ(put_off(timer_kind::limit, clock_noon, after_noon(41s), until_100, 300s), after_noon(130s))
      << "looked at each half minute";
  EXPECT_EQ(put_off(timer_kind::deadline, clock_noon, after_noon(60s), until_100, 300s), after_noon(130s));
  EXPECT_EQ(put_off(timer_kind::limit, clock_noon, after_noon(40s), until_100, 300s), after_noon(40s)) << "it ran out before";
  // Put off at 100 s; it ends at 160 s, and the provider sends again for 30 s.
  const std::vector<downtime> over{{after_noon(40s), after_noon(160s)}};
  EXPECT_EQ(put_off(timer_kind::limit, after_noon(100s), once, over, 30s), after_noon(245s)) << "55 s after 190 s";
}

TEST(Timer, OnlyThePlaceInTheOrderOfTimesCounts) {
  // A clock that was set back or forward moves all times alike; so does a change to summer time, which moves none.
  for (const auto step : {-3600s, 0s, 3600s, 86400s * 365}) {
    const std::vector<downtime> downtimes{{after_noon(20s) + step, after_noon(30s) + step}};
    EXPECT_EQ(put_off(timer_kind::limit, clock_noon + step, after_noon(60s) + step, downtimes, 0s), after_noon(70s) + step);
  }
}

TEST(Timer, KindsHaveOneWordEach) {
  for (const auto k : {timer_kind::limit, timer_kind::deadline}) EXPECT_EQ(parse_timer_kind(to_string(k)), k);
  EXPECT_FALSE(parse_timer_kind("clock"));
}

}  // namespace
}  // namespace recibo::transition
