// What an answer to a notification means, and how far apart attempts are (R19, R21, S37).
#include "recibo/notify/retry.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace recibo::notify {
namespace {

using namespace std::chrono_literals;

const sys_micros noon{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + 12h};

struct row {
  int status;
  verdict what;
  std::string reason;
  bool theirs;
  bool of_address = false;
};

TEST(Judge, ByStatus) {
  const std::vector<row> rows = {
      {200, verdict::delivered, "delivered", true},
      {204, verdict::delivered, "delivered", true},
      {299, verdict::delivered, "delivered", true},
      {301, verdict::never, "redirect", false, true},
      {307, verdict::never, "redirect", false, true},
      {400, verdict::never, "refused", false},
      {401, verdict::unauthorized, "unauthorized", false},
      {403, verdict::unauthorized, "unauthorized", false},
      {404, verdict::never, "no_endpoint", false, true},
      {405, verdict::never, "no_endpoint", false, true},
      {407, verdict::unauthorized, "unauthorized", false},
      {408, verdict::again, "too_early_or_slow", true},
      {409, verdict::again, "busy", true},
      {410, verdict::gone, "gone", true},
      {413, verdict::never, "refused", false},
      {422, verdict::never, "refused", false},
      {425, verdict::again, "too_early_or_slow", true},
      {429, verdict::again, "over_rate", true},
      {500, verdict::again, "server_error", true},
      {503, verdict::again, "server_error", true},
      {599, verdict::again, "server_error", true},
  };
  for (const auto& r : rows) {
    const auto got = judge(r.status, "", noon);
    EXPECT_EQ(got.what, r.what) << r.status;
    EXPECT_EQ(got.reason, r.reason) << r.status;
    EXPECT_EQ(got.theirs, r.theirs) << r.status;
    EXPECT_EQ(got.of_address, r.of_address) << r.status;
    EXPECT_FALSE(got.retry_after) << r.status;
  }
}

TEST(Judge, RetryAfterInSecondsOrAsADate) {
  EXPECT_EQ(judge(503, "120", noon).retry_after, 120s);
  EXPECT_EQ(judge(429, "0", noon).retry_after, 0s);
  EXPECT_EQ(judge(503, "Sun, 01 Mar 2026 12:01:30 GMT", noon).retry_after, 90s);
  EXPECT_EQ(judge(503, "Sun, 01 Mar 2026 11:00:00 GMT", noon).retry_after, 0s) << "a date that has passed";
  for (const char* bad : {"", "-1", "1.5", "soon", "120s", "Sun, 01 Mar 2026 12:01:30", "Sun, 41 Mar 2026 12:01:30 GMT",
                          "Sun, 01 Foo 2026 12:01:30 GMT", "-99999999999999999999"})
    EXPECT_FALSE(judge(503, bad, noon).retry_after) << bad;
  for (const char* most : {"99999999999999999999", "9223372036854775807", "Fri, 31 Dec 9999 23:59:59 GMT"})
    EXPECT_EQ(judge(503, most, noon).retry_after, retry_after_most) << "the longest wish is a wish: " << most;
  EXPECT_FALSE(judge(400, "120", noon).retry_after) << "it will not come again";
}

TEST(Judge, RetryAfterInTheObsoleteFormsOfADate) {
  EXPECT_EQ(judge(503, "Sunday, 01-Mar-26 12:01:30 GMT", noon).retry_after, 90s);
  EXPECT_EQ(judge(503, "Sun Mar  1 12:01:30 2026", noon).retry_after, 90s);
  EXPECT_EQ(judge(503, "Thu Mar 12 12:00:00 2026", noon).retry_after, std::chrono::hours(11 * 24));
  EXPECT_EQ(judge(503, "Sunday, 06-Nov-94 08:49:37 GMT", noon).retry_after, 0s) << "more than fifty years ahead is past";
  EXPECT_EQ(judge(503, "Sunday, 01-Mar-76 12:00:00 GMT", noon).retry_after, retry_after_most) << "fifty years ahead";
  for (const char* bad : {"Sunday, 01-Mar-26 12:01:30", "Sunday, 01-Foo-26 12:01:30 GMT", "Sun Mar  1 12:01:30 2026 GMT",
                          "Sun Mar  1 25:01:30 2026", "Sun Mar 41 12:01:30 2026", "Sun, 01 Mar 2026 12:01:30 GMTx"})
    EXPECT_FALSE(judge(503, bad, noon).retry_after) << bad;
}

TEST(LongestWish, OfSeveralLinesTheLongestCounts) {
  using list = http::header_list;
  EXPECT_EQ(longest_wish(list{{"Retry-After", "1"}, {"retry-after", "4"}}, noon), "4");
  EXPECT_EQ(longest_wish(list{{"Retry-After", "4"}, {"Retry-After", "1"}}, noon), "4");
  EXPECT_EQ(longest_wish(list{{"Retry-After", "soon"}, {"Retry-After", "1"}}, noon), "1");
  EXPECT_EQ(longest_wish(list{{"Retry-After", "60"}, {"Retry-After", "Sun, 01 Mar 2026 12:01:30 GMT"}}, noon),
            "Sun, 01 Mar 2026 12:01:30 GMT");
  EXPECT_EQ(longest_wish(list{{"Content-Length", "4"}}, noon), "");
}

TEST(Judge, NoAnswer) {
  EXPECT_EQ(judge(error(transient::connect_failed)).what, verdict::again);
  EXPECT_EQ(judge(error(transient::connect_failed)).reason, "connect_failed");
  EXPECT_EQ(judge(error(uncertain::answer_unknown)).what, verdict::again);
  EXPECT_EQ(judge(error(permanent::certificate_refused)).what, verdict::again);
  EXPECT_FALSE(judge(error(permanent::address_refused)).theirs);
  EXPECT_EQ(judge(error(permanent::url_refused)).what, verdict::never);
}

TEST(NextWait, DoublesUpToItsMostAndEnds) {
  const config::retry_rule rule{5, 10s, 60s};
  EXPECT_EQ(next_wait(rule, 1, {}, 0.999999), 9999ms);
  EXPECT_EQ(next_wait(rule, 1, {}, 0.0), 500ms);
  EXPECT_EQ(next_wait(rule, 2, {}, 0.0), 1000ms);
  EXPECT_EQ(next_wait(rule, 4, {}, 0.0), 3000ms) << "capped at 60 s";
  EXPECT_FALSE(next_wait(rule, 5, {}, 0.0));
  EXPECT_FALSE(next_wait(rule, 6, {}, 0.0));
  const config::retry_rule many{100, 1s, 6h};
  EXPECT_EQ(next_wait(many, 99, {}, 0.0), std::chrono::milliseconds(6h) / 20);
}

TEST(NextWait, KeepsToWhatWasAskedUpToItsMost) {
  const config::retry_rule rule{5, 10s, 60s};
  judgement asked;
  asked.retry_after = 30s;
  for (double random : {0.0, 0.5, 0.99}) {
    const auto wait = *next_wait(rule, 1, asked, random);
    EXPECT_GE(wait, 30s);
    EXPECT_LE(wait, 40s);
  }
  asked.retry_after = std::chrono::seconds::max();
  EXPECT_GE(*next_wait(rule, 1, asked, 0.0), 60s);
  asked.retry_after = 10h;
  EXPECT_GE(*next_wait(rule, 1, asked, 0.0), 60s);
  EXPECT_LE(*next_wait(rule, 1, asked, 0.99), 70s);
}

// Five hundred that failed at once come back over at least half of the interval (S37).
TEST(NextWait, SpreadsThoseWhoFailedTogether) {
  const config::retry_rule rule{12, 60s, 6h};
  std::mt19937 random(7);
  std::uniform_real_distribution<double> any(0, 1);
  std::vector<std::chrono::milliseconds> waits;
  for (int i = 0; i < 500; ++i) waits.push_back(*next_wait(rule, 1, {}, any(random)));
  const auto [least, most] = std::minmax_element(waits.begin(), waits.end());
  EXPECT_GE(*most - *least, 30s);
  EXPECT_LE(*most, 60s);
}

TEST(RecentAttempts, OpenAfterTenOfWhichHalfFailed) {
  recent_attempts seen;
  auto now = recent_attempts::time_point(1h);
  for (int i = 0; i < 9; ++i) seen.add(false, now);
  EXPECT_FALSE(seen.out_of_order(now)) << "nine are too few to tell";
  seen.add(false, now);
  EXPECT_TRUE(seen.out_of_order(now));
  for (int i = 0; i < 11; ++i) seen.add(true, now + 15s);
  EXPECT_FALSE(seen.out_of_order(now + 15s));
  EXPECT_FALSE(seen.out_of_order(now + 10min)) << "what is old says nothing";
}

TEST(RecentAttempts, OpenAfterTenAstrayWhateverWasTakenBefore) {
  const auto now = recent_attempts::time_point(1h);
  recent_attempts seen;
  for (int i = 0; i < 3'000; ++i) seen.add(true, now);
  for (int i = 0; i < 9; ++i) seen.add_astray(now);
  EXPECT_FALSE(seen.out_of_order(now)) << "nine are too few to tell";
  seen.add(false, now);
  EXPECT_FALSE(seen.out_of_order(now)) << "another trouble, and not dead for it";
  seen.add_astray(now);
  EXPECT_TRUE(seen.out_of_order(now));
  EXPECT_TRUE(seen.out_of_order(now + 1h)) << "one an hour is none the less dead";
  seen.clear();
  EXPECT_FALSE(seen.out_of_order(now));
  // Half of a balancer's routes are gone.
  for (int i = 0; i < 3'000; ++i) seen.add(true, now);
  int astray = 0;
  for (; !seen.out_of_order(now) && astray < 100; ++astray) {
    seen.add(true, now);
    seen.add_astray(now);
  }
  EXPECT_EQ(astray, 10);
  seen.clear();
  for (int i = 0; i < 300; ++i) {
    seen.add_astray(now);
    for (int passed = 0; passed < 9; ++passed) seen.add(true, now);
  }
  EXPECT_FALSE(seen.out_of_order(now)) << "one in ten is the fault of that one";
}

TEST(BreakerWait, Grows) {
  EXPECT_EQ(breaker_wait(1, 0.5), 10s);
  EXPECT_EQ(breaker_wait(2, 0.5), 20s);
  EXPECT_EQ(breaker_wait(50, 0.5), 600s);
  EXPECT_EQ(breaker_wait(1, 0.0), 8s);
}

}  // namespace
}  // namespace recibo::notify
