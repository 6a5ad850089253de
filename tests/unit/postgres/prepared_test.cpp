#include "../../../src/postgres/prepared.hpp"

#include <gtest/gtest.h>

namespace recibo::postgres::prepared_cases {
namespace {

const statement one{"one", "SELECT 1", {}};

TEST(PreparedStatements, AreUnknownUntilTheServerConfirms) {
  prepared_statements known;
  EXPECT_FALSE(known.of(one).there);
  EXPECT_EQ(known.of(one).as, "one");
  known.of(one).there = true;
  const statement same = one;
  EXPECT_TRUE(known.of(same).there);
}

TEST(PreparedStatements, ForgottenOnesGetAFreshNameEachTime) {
  prepared_statements known;
  known.of(one).there = true;
  known.forget(one);
  EXPECT_FALSE(known.of(one).there);
  EXPECT_EQ(known.of(one).as, "one/1");
  known.forget(one);
  EXPECT_EQ(known.of(one).as, "one/2");
}

TEST(PreparedStatements, UnnamedOnesAreNotKept) {
  prepared_statements known;
  const statement first{"", "SELECT 1", {}}, second{"", "SELECT 2", {}};
  known.forget(first);
  known.forget(second);
  EXPECT_FALSE(known.of(one).there);
}

TEST(PreparedStatementsDeath, TwoTextsUnderOneNameAbort) {
  prepared_statements known;
  known.of(one);
  const statement other{"one", "SELECT 2", {}};
  EXPECT_DEATH(known.of(other), "two statements are named one");
}

}  // namespace
}  // namespace recibo::postgres::prepared_cases
