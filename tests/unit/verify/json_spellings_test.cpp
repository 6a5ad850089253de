#include "src/verify/json_spellings.hpp"
#include "src/verify/items.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace recibo::verify {
namespace {

std::size_t longest(const std::vector<spelling>& all) {
  std::size_t out = 0;
  for (const spelling& one : all) out = std::max(out, one.text.size());
  return out;
}

TEST(JsonSpellings, AreThoseOfTheSerialisers) {
  const auto all = json_spellings(R"({"b": "\u00e4/", "a": [1.50, true]})");
  std::set<std::string> texts;
  for (const spelling& one : all) texts.insert(one.text);
  EXPECT_EQ(texts.size(), all.size()) << "none stands twice";
  for (const char* expected : {"{\"b\":\"\xc3\xa4/\",\"a\":[1.50,true]}", R"({"b":"\u00e4/","a":[1.50,true]})",
                               R"({"b":"\u00e4\/","a":[1.50,true]})", R"({"a": [1.50, true], "b": "\u00e4/"})"})
    EXPECT_TRUE(texts.contains(expected)) << expected;
  EXPECT_TRUE(json_spellings("no JSON").empty());
}

// A stranger's body is written anew for each style: what that costs is bounded whatever stands in it. Deep nesting indents,
// control characters and characters beyond ASCII become escapes of six bytes.
TEST(JsonSpellings, AreNotMuchLongerThanTheDocument) {
  std::string deep;
  for (int i = 0; i < 60; ++i) deep += '[';
  for (int i = 0; i < 2000; ++i) deep += i == 0 ? "1" : ",1";
  for (int i = 0; i < 60; ++i) deep += ']';
  std::string wide = "\"";
  for (int i = 0; i < 2000; ++i) wide += "\xc2\x80";
  wide += '"';
  for (const std::string& document : {deep, wide}) {
    const auto all = json_spellings(document);
    EXPECT_LE(all.size(), 16u);
    EXPECT_FALSE(all.empty());
    EXPECT_LE(longest(all), 64 + 8 * document.size());
  }
}

TEST(CountElements, StopsBehindTheMost) {
  std::string many = R"({"items":[)";
  for (int i = 0; i < 1000; ++i) many += i == 0 ? "1" : ",1";
  many += "]}";
  EXPECT_EQ(count_elements(many, "/items", 1000), 1000u);
  EXPECT_EQ(count_elements(many, "/items", 100), 101u);
  // What follows is not read, and need not be JSON: the request is refused either way.
  EXPECT_EQ(count_elements(many.substr(0, 400) + "no JSON", "/items", 100), 101u);
  EXPECT_EQ(count_elements(many.substr(0, 150) + "no JSON", "/items", 100), std::nullopt);
}

}  // namespace
}  // namespace recibo::verify
