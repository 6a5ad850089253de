// The example with random damage: never a crash, never a secret in a message, every problem inside the file, and
// settings exactly when there is no problem. RECIBO_MUTATIONS says how many, RECIBO_SEED where to start.
#include "unit/config/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

namespace recibo::config {
namespace {

std::uint64_t number_from_env(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class mutator {
 public:
  explicit mutator(std::uint64_t seed) : random_(seed) {}

  void damage(std::string& text) {
    static const std::vector<std::string> pieces = {
        "{",    "}",  "[",    "]",    ":",      ": ",   ",",     "\"",    "'",  "\n",  "\n  ",   "\t",
        "- ",   "#",  "${",   "${X}", "${X:-}", "&a ",  "*a",    "<<: ",  "|",  ">\n", "!!int ", "---\n",
        "null", "~",  "\xff", "\xc3", "\r",     "\\",   "? ",    "none",  "-1", "0",   "1e9",    "99999999999999999999",
        "{}",   "[]", "off",  "true", "5m",     "1MiB", "/a/~2", "%YAML", "@",  "`",   "\x00x",  "acme"};
    const std::size_t at = below(text.size() + 1);
    switch (below(6)) {
      case 0: text.insert(at, pieces[below(pieces.size())]); break;
      case 1: text.erase(at, 1 + below(8)); break;
      case 2: text.erase(at, 1 + below(300)); break;
      case 3: text.insert(at, text.substr(below(text.size() + 1), 1 + below(200))); break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(below(256));
        break;
      default: swap_lines(text); break;
    }
  }

  std::size_t below(std::size_t n) { return n == 0 ? 0 : std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }

 private:
  void swap_lines(std::string& text) {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      lines.push_back(text.substr(i, end - i));
      i = end + 1;
    }
    if (lines.empty()) return;
    std::swap(lines[below(lines.size())], lines[below(lines.size())]);
    text.clear();
    for (const auto& line : lines) text += line + "\n";
  }

  std::mt19937_64 random_;
};

TEST(Mutation, DamageIsReportedAndNeverFatal) {
  const std::string example = testing::file_text(RECIBO_SOURCE_DIR "/config/recibo.yaml");
  const std::uint64_t rounds = number_from_env("RECIBO_MUTATIONS", 400), seed = number_from_env("RECIBO_SEED", 1);
  int refused = 0;
  for (std::uint64_t round = seed; round < seed + rounds; ++round) {
    SCOPED_TRACE("RECIBO_SEED=" + std::to_string(round));
    mutator m(round);
    std::string text = example;
    for (std::size_t n = 1 + m.below(4); n > 0; --n) m.damage(text);
    const int lines = static_cast<int>(std::count(text.begin(), text.end(), '\n')) + 1;
    const auto l = testing::load(text, testing::example_env());
    ASSERT_EQ(static_cast<bool>(l.settings), l.problems.empty());
    refused += l.settings ? 0 : 1;
    for (const auto& p : l.problems) {
      ASSERT_GE(p.line, 1);
      ASSERT_LE(p.line, lines);
      ASSERT_GE(p.column, 1);
      ASSERT_THAT(p.message, ::testing::Not(::testing::HasSubstr("canary")));
      ASSERT_FALSE(p.message.empty());
    }
    for (const auto& w : l.warnings) ASSERT_THAT(w.message, ::testing::Not(::testing::HasSubstr("canary")));
    if (l.settings) {
      ASSERT_THAT(effective_json(*l.settings), ::testing::Not(::testing::HasSubstr("canary")));
    }
  }
  // The damage does matter: most of it is noticed, and not all of it.
  EXPECT_GT(refused, static_cast<int>(rounds / 3));
  EXPECT_LT(refused, static_cast<int>(rounds));
}

}  // namespace
}  // namespace recibo::config
