#include "recibo/receive/rate.hpp"

#include <gtest/gtest.h>

namespace recibo::receive {
namespace {

using namespace std::chrono_literals;

int taken(rate_limiter& limiter, const config::rate& allowed, std::chrono::steady_clock::time_point at, int tries) {
  int out = 0;
  for (int i = 0; i < tries; ++i) out += limiter.take("p1", allowed, at) ? 1 : 0;
  return out;
}

TEST(Rate, ABurstThenTheRate) {
  rate_limiter limiter;
  const config::rate allowed{10, 3};
  const auto start = std::chrono::steady_clock::time_point(1000s);
  EXPECT_EQ(taken(limiter, allowed, start, 10), 3);
  EXPECT_EQ(taken(limiter, allowed, start + 50ms, 10), 0);
  EXPECT_EQ(taken(limiter, allowed, start + 200ms, 10), 2);
  EXPECT_EQ(taken(limiter, allowed, start + 1h, 10), 3);
}

TEST(Rate, WithoutABurstASecondsWorth) {
  rate_limiter limiter;
  EXPECT_EQ(taken(limiter, {5, 0}, {}, 10), 5);
  rate_limiter slow;
  EXPECT_EQ(taken(slow, {0.5, 0}, {}, 10), 1);
  EXPECT_EQ(taken(slow, {0.5, 0}, std::chrono::steady_clock::time_point(2s), 10), 1);
}

TEST(Rate, ProvidersDoNotShareABucket) {
  rate_limiter limiter;
  EXPECT_TRUE(limiter.take("p1", {1, 1}, {}));
  EXPECT_FALSE(limiter.take("p1", {1, 1}, {}));
  EXPECT_TRUE(limiter.take("p2", {1, 1}, {}));
}

TEST(Rate, ATimeBeforeTheLastGainsNothing) {
  rate_limiter limiter;
  const auto start = std::chrono::steady_clock::time_point(1000s);
  EXPECT_EQ(taken(limiter, {1, 2}, start, 5), 2);
  EXPECT_EQ(taken(limiter, {1, 2}, start - 10s, 5), 0);
}

TEST(Rate, ASmallerBurstAfterAReloadCountsAtOnce) {
  rate_limiter limiter;
  EXPECT_TRUE(limiter.take("p1", {100, 100}, {}));
  EXPECT_EQ(taken(limiter, {100, 2}, {}, 10), 2);
}

}  // namespace
}  // namespace recibo::receive
