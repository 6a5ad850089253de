#include "recibo/config/document.hpp"

#include "unit/config/support.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace recibo::config {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

document parse(std::string_view text, std::map<std::string, std::string> env = {}) {
  return parse_document(text, testing::env_of(std::move(env)));
}

std::string at(const position& p) { return std::to_string(p.line) + ":" + std::to_string(p.column); }

std::vector<std::string> faults(const document& d) {
  std::vector<std::string> out;
  for (const auto& f : d.faults) out.push_back(at(f.at) + ": " + f.message);
  return out;
}

struct bad_text {
  const char* name;
  std::string text;
  std::vector<std::string> expected;
};

class BadText : public ::testing::TestWithParam<bad_text> {};

TEST_P(BadText, IsReportedWhereItStands) { EXPECT_EQ(faults(parse(GetParam().text)), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    Document, BadText,
    ::testing::Values(
        bad_text{"Empty", "", {"1:1: the file holds no configuration"}},
        bad_text{"OnlyAComment", "# nothing\n", {"1:1: the file holds no configuration"}},
        bad_text{"DuplicateKey", "a: 1\nb: 2\na: 3\n", {"3:1: the key \"a\" stands here a second time"}},
        bad_text{"DuplicateKeyDeep", "a:\n  - b: {c: 1, c: 2}\n", {"2:15: the key \"c\" stands here a second time"}},
        bad_text{"DuplicateKeyQuoted", "a: 1\n'a': 3\n", {"2:1: the key \"a\" stands here a second time"}},
        bad_text{"TwoDuplicates",
                 "a: {b: 1, b: 2}\na: 3\n",
                 {"1:11: the key \"b\" stands here a second time", "2:1: the key \"a\" stands here a second time"}},
        bad_text{"MergeKey", "x: &x {a: 1}\ny:\n  <<: *x\n", {"3:3: merge keys (<<) are not used here: write the keys out"}},
        bad_text{"SecondDocument", "a: 1\n---\nb: 2\n", {"2:1: a second document begins here: the file holds one configuration"}},
        bad_text{
            "SecondDocumentByIndentation", "- 1\n-2\n", {"2:1: a second document begins here: the file holds one configuration"}},
        bad_text{"EmptySecondDocument", "a: 1\n---\n", {"2:1: a second document begins here: the file holds one configuration"}},
        bad_text{"TabInIndentation", "a:\n\tb: 1\n", {"2:1: a tab in the indentation: YAML takes spaces only"}},
        bad_text{"TabAfterBlanks", "a:\n  \tb: 1\n", {"2:3: a tab in the indentation: YAML takes spaces only"}},
        bad_text{"DoubleQuoteNotClosed", "a: \"b\nc: d\n", {"1:4: this quote is never closed"}},
        bad_text{"SingleQuoteNotClosed", "a: 'it''s\n", {"1:4: this quote is never closed"}},
        bad_text{"MapNotClosed", "a: {b: 1\n", {"2:1: this is not YAML: end of map flow not found"}},
        bad_text{"WrongIndentation", "a:\n  - b\n c: d\n", {"3:2: this is not YAML: end of map not found"}},
        bad_text{"ColonInPlainText", "a: b: c\n", {"1:5: this is not YAML: illegal map value"}},
        bad_text{"Tag", "a: !foo bar\n", {"1:4: YAML tags are not used here"}},
        bad_text{"StandardTag", "a: !!str 5\n", {"1:4: YAML tags are not used here"}},
        bad_text{"TagOfAMap", "a: !x {b: 1}\n", {"1:4: YAML tags are not used here"}},
        bad_text{"ListAsKey", "{a: 1, [1, 2]: 3}\n", {"1:8: a key must be text, not a list or a map"}},
        bad_text{"NullAsKey", "~: 1\n", {"1:1: a key must be text"}},
        bad_text{"UnknownAlias", "a: *b\n", {"1:4: this is not YAML: the referenced anchor is not defined"}},
        bad_text{"AliasInsideItself", "a: &x [*x]\n", {"1:8: this alias stands inside what it names"}},
        bad_text{"NotUtf8", "a: \xff\n", {"1:4: this is not UTF-8"}},
        bad_text{"Utf16",
                 std::string("\xff\xfe"
                             "a\0:\0",
                             6),
                 {"1:1: this is not UTF-8"}},
        bad_text{"Nul", std::string("a: \0b\n", 6), {"1:4: a control character"}},
        bad_text{"Escape", "a: \x1b[31m\n", {"1:4: a control character"}},
        bad_text{"LoneCarriageReturn", "a: 1\rb: 2\n", {"1:5: a carriage return alone: lines end in LF or CR LF"}},
        bad_text{"VariableInKey", "${A}: 1\n", {"1:1: ${…} is replaced in values only, not in keys"}},
        bad_text{"VariableNotSet", "a: x\nb: ${NO}\n", {"2:4: b: the environment variable NO is not set"}},
        bad_text{"VariablesNotSet",
                 "a: \"${ONE} and ${TWO}\"\n",
                 {"1:5: a: the environment variable ONE is not set", "1:16: a: the environment variable TWO is not set"}},
        bad_text{"VariableNotSetInBlock", "a: |\n  x\n  ${NO}\n", {"3:3: a: the environment variable NO is not set"}},
        bad_text{"VariableNeverClosed", "a: x${NO\n", {"1:5: a: \"${\" is never closed; a literal one is written \"$${\""}},
        bad_text{"VariableInFlowWithoutQuotes",
                 "a: {b: ${C}}\n",
                 {"1:9: this is not YAML: end of map flow not found; a value with ${…} inside { } or [ ] has to be in quotes"}},
        bad_text{"VariableWithoutName",
                 "a: ${}\n",
                 {"1:4: a: expected ${NAME} or ${NAME:-default}; a literal \"${\" is written \"$${\""}},
        bad_text{"VariableWithBadName",
                 "a: ${A-B}\n",
                 {"1:4: a: expected ${NAME} or ${NAME:-default}; a literal \"${\" is written \"$${\""}},
        bad_text{"ColumnsAreCharacters", "é: {ü: 1, ü: 2}\n", {"1:11: the key \"ü\" stands here a second time"}}),
    [](const auto& one) { return std::string(one.param.name); });

TEST(Document, KnowsThePlaceOfEveryKeyAndValue) {
  const auto d = parse("a: 1\nb:\n  - x\n  - {c: [y, 'z']}\nd: \"q\"\n");
  ASSERT_THAT(faults(d), IsEmpty());
  ASSERT_EQ(d.root.entries.size(), 3u);
  EXPECT_EQ(at(d.root.entries[0].at), "1:1");
  EXPECT_EQ(at(d.root.find("a")->at), "1:4");
  const node& b = *d.root.find("b");
  EXPECT_EQ(at(b.items[0].at), "3:5");
  EXPECT_EQ(at(b.items[1].entries[0].at), "4:6");
  EXPECT_EQ(at(b.items[1].find("c")->items[1].at), "4:13");
  EXPECT_EQ(at(d.root.find("d")->at), "5:4");
  EXPECT_FALSE(d.root.find("d")->plain);
  EXPECT_TRUE(d.root.find("a")->plain);
}

TEST(Document, AnAbsentValueStandsAtItsKey) {
  const auto d = parse("a:\nb: ~\nc: {d: , e}\n");
  ASSERT_THAT(faults(d), IsEmpty());
  EXPECT_EQ(at(d.root.find("a")->at), "1:1");
  EXPECT_EQ(at(d.root.find("b")->at), "2:1");
  EXPECT_EQ(at(d.root.find("c")->find("d")->at), "3:5");
  EXPECT_EQ(at(d.root.find("c")->find("e")->at), "3:10");
  EXPECT_EQ(d.root.find("a")->what, node::kind::null);
}

TEST(Document, AnAliasStandsWhereItIsWritten) {
  const auto d = parse("a: &x {b: 1}\nc: *x\nd: &y text\ne: *y\n");
  ASSERT_THAT(faults(d), IsEmpty());
  EXPECT_EQ(at(d.root.find("a")->at), "1:7");
  EXPECT_EQ(at(d.root.find("c")->at), "2:4");
  EXPECT_EQ(at(d.root.find("c")->find("b")->at), "1:11");
  EXPECT_EQ(at(d.root.find("d")->at), "3:7");
  EXPECT_EQ(at(d.root.find("e")->at), "4:4");
  EXPECT_EQ(d.root.find("e")->text, "text");
}

TEST(Document, MultiplyingAliasesEnd) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += (j ? ", " : "") + before;
    text += "]\n";
  }
  const auto d = parse(text);
  ASSERT_EQ(d.faults.size(), 1u);
  EXPECT_EQ(d.faults[0].message, "too many values; are aliases multiplying each other?");
  EXPECT_EQ(d.faults[0].at.line, 5);
}

TEST(Document, DepthIsBounded) {
  const auto d = parse(std::string(100'000, '['));
  EXPECT_EQ(d.faults.size(), 1u);
}

TEST(Document, ReplacesVariables) {
  const auto d = parse("a: ${A}\nb: \"x-${A}-${B:-other}-y\"\nc: ${EMPTY:-full}\nd: '$${A}'\ne: $A {\nf: ${EMPTY}\ng: ${NO:-}\n",
                       {{"A", "1"}, {"EMPTY", ""}});
  ASSERT_THAT(faults(d), IsEmpty());
  EXPECT_EQ(d.root.find("a")->text, "1");
  EXPECT_TRUE(d.root.find("a")->expanded);
  EXPECT_EQ(d.root.find("b")->text, "x-1-other-y");
  EXPECT_EQ(d.root.find("c")->text, "full");
  EXPECT_EQ(d.root.find("d")->text, "${A}");
  EXPECT_FALSE(d.root.find("d")->expanded);
  EXPECT_EQ(d.root.find("e")->text, "$A {");
  EXPECT_EQ(d.root.find("f")->text, "");
  EXPECT_EQ(d.root.find("g")->text, "");
  EXPECT_THAT(d.variables,
              ElementsAre(std::pair<std::string, std::string>("A", "1"), std::pair<std::string, std::string>("EMPTY", "")));
}

TEST(Document, AValueIsNotReplacedAgain) {
  const auto d = parse("a: ${A}\n", {{"A", "${B}"}});
  ASSERT_THAT(faults(d), IsEmpty());
  EXPECT_EQ(d.root.find("a")->text, "${B}");
}

TEST(Document, AByteOrderMarkAndCarriageReturnsAreFine) {
  const auto d = parse(
      "\xef\xbb\xbf"
      "a: 1\r\nb:\r\n  c: 2\r\n");
  ASSERT_THAT(faults(d), IsEmpty());
  EXPECT_EQ(at(d.root.find("b")->find("c")->at), "3:6");
  EXPECT_EQ(d.root.find("b")->find("c")->text, "2");
}

TEST(Document, ATabBetweenTokensOrInABlankLineIsFine) {
  EXPECT_THAT(faults(parse("a: 1\t# comment\n\t\n  \t# comment\nb: 2\n")), IsEmpty());
}

}  // namespace
}  // namespace recibo::config
