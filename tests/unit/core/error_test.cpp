#include "recibo/core/error.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <string>

namespace recibo {
namespace {

// Values count from 1 without gaps; the word of the category itself marks the end.
template <class Enum>
std::set<std::string> words(std::string_view end) {
  std::set<std::string> out;
  for (int value = 1;; ++value) {
    const std::string word(code_word(make_error_code(static_cast<Enum>(value))));
    if (word == end) return out;
    EXPECT_TRUE(out.insert(word).second) << word << " stands for two values";
    EXPECT_TRUE(std::all_of(word.begin(), word.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; })) << word;
  }
}

TEST(Error, EveryValueHasAWordOfItsOwn) {
  std::set<std::string> all;
  std::size_t count = 0;
  for (const auto& some : {words<permanent>("permanent"), words<transient>("transient"), words<uncertain>("uncertain")}) {
    EXPECT_FALSE(some.empty());
    count += some.size();
    all.insert(some.begin(), some.end());
  }
  EXPECT_EQ(all.size(), count);
}

TEST(Error, ACodeIsOfOneKind) {
  const error refused(permanent::malformed_field, "why"), later(transient::queue_full), doubtful(uncertain::commit_unknown);
  EXPECT_TRUE(refused.is_permanent() && !refused.is_transient() && !refused.is_uncertain());
  EXPECT_TRUE(!later.is_permanent() && later.is_transient() && !later.is_uncertain());
  EXPECT_TRUE(!doubtful.is_permanent() && !doubtful.is_transient() && doubtful.is_uncertain());
  // Equal numbers of different kinds are different errors.
  EXPECT_NE(make_error_code(permanent::signature_missing), make_error_code(transient::database_away));
}

TEST(Error, AForeignCodeHasNoWordOfOurs) {
  EXPECT_EQ(code_word(boost::system::errc::make_error_code(boost::system::errc::timed_out)), "internal");
}

TEST(Error, AskingForTheValueOfAnErrorThrowsItsWord) {
  const result<int> failed = error(permanent::not_found, "no such operation");
  try {
    static_cast<void>(failed.value());
    FAIL() << "nothing was thrown";
  } catch (const std::runtime_error& thrown) {
    EXPECT_STREQ(thrown.what(), "not_found: no such operation");
  }
}

}  // namespace
}  // namespace recibo
