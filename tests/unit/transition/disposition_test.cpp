#include "recibo/transition/disposition.hpp"

#include <gtest/gtest.h>

#include <array>

namespace recibo::transition::disposition_cases {
namespace {

struct row {
  disposition value;
  const char* word;
  bool claims;
};

// The matrix of the outside contract: what takes the idempotency key.
constexpr auto rows = std::to_array<row>({
    {disposition::applied, "applied", true},
    {disposition::redundant, "redundant", true},
    {disposition::partial, "partial", true},
    {disposition::duplicate, "duplicate", false},
    {disposition::stale, "stale", true},
    {disposition::parked, "parked", false},
    {disposition::review, "review", true},
    {disposition::conflict, "conflict", false},
    {disposition::unmapped, "unmapped", false},
    {disposition::unprocessable, "unprocessable", false},
    {disposition::unknown_operation, "unknown_operation", false},
    {disposition::ignored, "ignored", false},
    {disposition::hint, "hint", true},
});

TEST(Disposition, EachHasItsWordThereAndBack) {
  for (const row& r : rows) {
    EXPECT_EQ(to_string(r.value), r.word);
    EXPECT_EQ(parse_disposition(r.word), r.value);
  }
}

TEST(Disposition, KeysAreClaimedAsTheMatrixSays) {
  for (const row& r : rows) EXPECT_EQ(claims_key(r.value), r.claims) << r.word;
}

TEST(Disposition, OtherWordsAreNone) {
  for (const char* word : {"", "Applied", "applied ", "unauthenticated", "unavailable", "none"})
    EXPECT_EQ(parse_disposition(word), std::nullopt) << word;
}

}  // namespace
}  // namespace recibo::transition::disposition_cases
