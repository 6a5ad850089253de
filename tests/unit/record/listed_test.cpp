#include "recibo/record/listed.hpp"

#include <gtest/gtest.h>

namespace recibo::record {
namespace {

TEST(SameContent, AListedEventIsWhatTheCallbackIsUnderItsKey) {
  const auto one = sha256("fields of a callback"), other = sha256("other fields");
  EXPECT_TRUE(same_content(one, one, "k"));
  EXPECT_FALSE(same_content(one, other, "k"));
  EXPECT_TRUE(same_content(listed_content("k"), one, "k"));
  EXPECT_TRUE(same_content(one, listed_content("k"), "k"));
  EXPECT_FALSE(same_content(one, listed_content("other key"), "k"));
}

}  // namespace
}  // namespace recibo::record
