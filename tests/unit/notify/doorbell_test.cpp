// What replicas tell each other about the outbox.
#include "src/notify/doorbell.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace recibo::notify {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Word, NamesWhoHasSomething) {
  EXPECT_EQ(write_word("one", {"ledger", "mail"}), "one:ledger,mail");
  EXPECT_THAT(read_word("one:ledger,mail", "two"), ElementsAre("ledger", "mail"));
  EXPECT_THAT(read_word("-:*", "two"), ElementsAre("*"));
}

TEST(Word, OfOurselvesSaysNothing) { EXPECT_THAT(read_word("one:ledger,mail", "one"), IsEmpty()); }

TEST(Word, NonsenseSaysNothing) {
  for (const char* word : {"", ":", "ledger", "one:", "one:,,"}) EXPECT_THAT(read_word(word, "two"), IsEmpty()) << word;
}

TEST(Word, TooManyNamesMeanAny) {
  destination_names many;
  for (int i = 0; i < 400; ++i) many.insert("a-destination-with-quite-a-long-name-" + std::to_string(i));
  EXPECT_EQ(write_word("one", many), "one:*");
  EXPECT_LT(write_word("one", {*many.begin()}).size(), 8'000u);
}

}  // namespace
}  // namespace recibo::notify
