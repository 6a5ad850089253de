// What a replica has heard of its providers, with a clock of the test's own (R30).
#include "recibo/process/silence.hpp"

#include <gtest/gtest.h>

namespace recibo::process {
namespace {

using namespace std::chrono_literals;

const std::chrono::steady_clock::time_point start{};

TEST(Hearing, TheLatestWordCountsInWhateverOrderTheyAreTold) {
  hearing ears;
  ears.heard("acme", start + 5s);
  ears.heard("acme", start + 3s);
  ears.heard("other", start + 1s);
  const auto heard = ears.take();
  ASSERT_EQ(heard.size(), 2U);
  EXPECT_EQ(heard.at("acme").last, start + 5s);
  EXPECT_EQ(heard.at("acme").callbacks, 2);
  EXPECT_EQ(heard.at("other").last, start + 1s);
  EXPECT_TRUE(ears.take().empty()) << "what was taken is told by whoever took it";
}

TEST(Hearing, WhatCouldNotBeToldIsKept) {
  hearing ears;
  ears.heard("acme", start + 5s);
  const auto untold = ears.take();
  ears.heard("acme", start + 9s);
  ears.give_back(untold);
  const auto both = ears.take();
  EXPECT_EQ(both.at("acme").last, start + 9s);
  EXPECT_EQ(both.at("acme").callbacks, 2);
  ears.give_back(untold);
  EXPECT_EQ(ears.take().at("acme").last, start + 5s);
}

TEST(Hearing, OnlyWhatVerifiedIsItsVoice) {
  for (const auto* word : {"applied", "duplicate", "conflict", "unmapped", "unprocessable", "unknown_operation", "ignored"})
    EXPECT_TRUE(is_its_voice(word)) << word;
  for (const auto* word : {"unauthenticated", "unavailable", "overloaded", "handshake", ""})
    EXPECT_FALSE(is_its_voice(word)) << word;
}

}  // namespace
}  // namespace recibo::process
