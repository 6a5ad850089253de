#include "recibo/receive/key_budget.hpp"

#include <gtest/gtest.h>

namespace recibo::receive {
namespace {

using namespace std::chrono_literals;

key_budget::rules small() {
  key_budget::rules how;
  how.anybody = {3, 6};
  how.known = {2, 6};
  how.repeated = {1, 6};
  return how;
}

class KeyBudget : public ::testing::Test {
 protected:
  // Inventions from everywhere until none is let through.
  void exhaust() {
    for (int i = 0; i < 100; ++i) budget_.take("p", "invented-" + std::to_string(serial_++), "203.0.113.7", at_);
  }

  key_budget budget_{small()};
  key_budget::time_point at_ = std::chrono::steady_clock::now() + 1h;
  int serial_ = 0;
};

TEST_F(KeyBudget, InventionsGetWhatAnybodyGets) {
  int let_through = 0;
  for (int i = 0; i < 1000; ++i) let_through += budget_.take("p", "id-" + std::to_string(i), "203.0.113.7", at_) ? 1 : 0;
  EXPECT_EQ(let_through, 3);
  at_ += 10s;
  EXPECT_TRUE(budget_.take("p", "next", "203.0.113.7", at_));
  EXPECT_FALSE(budget_.take("p", "one more", "203.0.113.7", at_));
}

TEST_F(KeyBudget, ANetworkThatHasSentWhatVerifiesHasItsOwn) {
  budget_.vouch("p", "192.0.2.10", at_);
  exhaust();
  EXPECT_TRUE(budget_.take("p", "new", "192.0.2.99", at_)) << "a neighbour of the same network";
  EXPECT_FALSE(budget_.take("p", "other", "198.51.100.1", at_));
  EXPECT_TRUE(budget_.take("q", "new", "198.51.100.1", at_)) << "each provider has its own";
}

TEST_F(KeyBudget, AnIdThatComesAgainIsNoInvention) {
  exhaust();
  EXPECT_FALSE(budget_.take("p", "new", "198.51.100.1", at_));
  EXPECT_FALSE(budget_.take("p", "new", "198.51.100.1", at_)) << "at once is no repetition";
  at_ += 2s;
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(budget_.take("p", "invented-again-" + std::to_string(i), "203.0.113.7", at_));
  EXPECT_TRUE(budget_.take("p", "new", "198.51.100.1", at_));
  EXPECT_FALSE(budget_.take("p", "new", "198.51.100.1", at_)) << "the budget of repetitions is bounded too";
}

TEST_F(KeyBudget, OnlyTheLatestNetworksAreKept) {
  auto how = small();
  how.networks_most = 2;
  key_budget budget(how);
  budget.vouch("p", "192.0.2.1", at_);
  budget.vouch("p", "198.51.100.1", at_ + 1s);
  budget.vouch("p", "203.0.113.1", at_ + 2s);
  for (int i = 0; i < 10; ++i) budget.take("p", "x" + std::to_string(i), "10.0.0.1", at_ + 3s);
  EXPECT_FALSE(budget.take("p", "a", "192.0.2.1", at_ + 3s));
  EXPECT_TRUE(budget.take("p", "b", "203.0.113.1", at_ + 3s));
}

TEST(KeyBudgetNetwork, OfAnAddress) {
  EXPECT_EQ(network_of("192.0.2.77"), "192.0.2.0");
  EXPECT_EQ(network_of("2001:db8:1:2:3::4"), "2001:db8:1::");
  EXPECT_EQ(network_of(""), "");
  EXPECT_EQ(network_of("unix"), "unix");
}

}  // namespace
}  // namespace recibo::receive
