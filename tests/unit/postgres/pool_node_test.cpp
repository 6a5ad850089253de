#include "../../../src/postgres/pool_node.hpp"

#include <gtest/gtest.h>

namespace recibo::postgres {
namespace {

using next = pool_node::next;
using std::chrono_literals::operator""ms;

// A pool of which `busy` connections are in use.
pool_node with_busy(int size, int busy) {
  pool_node n(size);
  for (int i = 0; i < busy; ++i) {
    n.connecting();
    n.connected();
    n.took();
  }
  return n;
}

TEST(PoolNode, FirstRequestWaitsForAnAttempt) {
  pool_node n(2);
  EXPECT_EQ(n.on_request(), next::wait);
  EXPECT_FALSE(n.should_connect());  // nobody waits yet
  n.waits();
  EXPECT_TRUE(n.should_connect());
  n.connecting();
  EXPECT_FALSE(n.should_connect());
}

TEST(PoolNode, ConnectsForEachWhoWaitsUpToItsSize) {
  pool_node n(2);
  for (int i = 0; i < 5; ++i) n.waits();
  int started = 0;
  for (; n.should_connect(); ++started) n.connecting();
  EXPECT_EQ(started, 2);
}

TEST(PoolNode, FreeConnectionIsTaken) {
  auto n = with_busy(1, 1);
  EXPECT_EQ(n.on_request(), next::wait);
  n.came_back();
  EXPECT_EQ(n.on_request(), next::take);
}

TEST(PoolNode, AwayFailsAtOnceAndOneAttemptGoesOn) {
  pool_node n(4);
  n.connecting();
  n.connecting();
  EXPECT_FALSE(n.connect_failed());
  EXPECT_TRUE(n.connect_failed());
  EXPECT_EQ(n.on_request(), next::fail);
  n.waits();
  EXPECT_FALSE(n.should_connect());
  EXPECT_EQ(n.state().connecting, 1);
}

TEST(PoolNode, AwayWaitsWhileSomebodyHoldsAConnectionThatWorks) {
  auto n = with_busy(2, 1);
  n.connecting();
  EXPECT_TRUE(n.connect_failed());  // for example: the server takes no more connections
  EXPECT_EQ(n.on_request(), next::wait);
  n.lost();
  EXPECT_EQ(n.on_request(), next::fail);
}

TEST(PoolNode, ComesBackByItself) {
  pool_node n(2);
  n.connecting();
  n.connect_failed();
  EXPECT_TRUE(n.away());
  n.connected();
  EXPECT_FALSE(n.away());
  EXPECT_EQ(n.on_request(), next::take);
}

TEST(PoolNode, ClosedTakesNothingAndConnectsNoMore) {
  pool_node n(2);
  n.waits();
  n.close();
  EXPECT_EQ(n.on_request(), next::fail);
  EXPECT_FALSE(n.should_connect());
  n.connecting();
  EXPECT_FALSE(n.connect_failed());
}

TEST(PoolNode, BackoffDoublesUpToASecondAndJitterTakesHalfAtMost) {
  pool_node n(1);
  n.connecting();
  for (const auto expected : {50ms, 100ms, 200ms, 400ms, 800ms, 1000ms, 1000ms}) {
    n.connect_failed();
    EXPECT_EQ(n.backoff(0), expected);
    EXPECT_EQ(n.backoff(1), expected - expected / 2);
  }
  for (int i = 0; i < 100; ++i) n.connect_failed();
  EXPECT_EQ(n.backoff(0), 1000ms);
  n.connected();
  n.connecting();
  n.connect_failed();
  EXPECT_EQ(n.backoff(0), 50ms);
}

}  // namespace
}  // namespace recibo::postgres
