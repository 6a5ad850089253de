#include "recibo/verify/strict_json.hpp"

#include <gtest/gtest.h>

namespace recibo::verify {
namespace {

std::vector<std::optional<std::string>> texts(std::string_view document, const std::vector<std::string_view>& pointers) {
  std::vector<std::optional<std::string>> out;
  for (const auto& v : read_json(document, pointers).values) out.push_back(v ? std::optional(v->text) : std::nullopt);
  return out;
}

std::optional<std::string> at(std::string_view document, std::string_view pointer) { return texts(document, {pointer}).front(); }

std::string why(std::string_view document) {
  const auto read = read_json(document, {});
  return read.broken ? read.broken->detail : "fine";
}

TEST(StrictJson, PointersLeadToMembersAndElements) {
  constexpr std::string_view document = R"({"a":{"b":[10,{"c":"x"},true]},"":{"":1},"m~n":2,"s/t":3,"d":null})";
  EXPECT_EQ(at(document, "/a/b/0"), "10");
  EXPECT_EQ(at(document, "/a/b/1/c"), "x");
  EXPECT_EQ(at(document, "/a/b/2"), "true");
  EXPECT_EQ(at(document, "/a/b/3"), std::nullopt);
  EXPECT_EQ(at(document, "/a/b/00"), std::nullopt);
  EXPECT_EQ(at(document, "/a/b/-"), std::nullopt);
  EXPECT_EQ(at(document, "//"), "1");
  EXPECT_EQ(at(document, "/m~0n"), "2");
  EXPECT_EQ(at(document, "/s~1t"), "3");
  EXPECT_EQ(at(document, "/d"), "null");
  EXPECT_EQ(at(document, "/a/b/1/c/x"), std::nullopt);
  EXPECT_EQ(at(document, "/A"), std::nullopt);
  EXPECT_EQ(at("7", ""), "7");
  EXPECT_EQ(texts(R"({"a":1,"b":2})", {"/b", "/a", "/b"}), (std::vector<std::optional<std::string>>{"2", "1", "2"}));
}

TEST(StrictJson, MalformedPointersFindNothing) {
  EXPECT_FALSE(is_json_pointer("a"));
  EXPECT_FALSE(is_json_pointer("/a~2"));
  EXPECT_FALSE(is_json_pointer("/a~"));
  EXPECT_TRUE(is_json_pointer(""));
  EXPECT_TRUE(is_json_pointer("/"));
  EXPECT_EQ(at(R"({"a":1})", "a"), std::nullopt);
}

TEST(StrictJson, NumbersKeepEveryDigit) {
  for (const char* number :
       {"0", "-0", "-1", "9007199254740993", "9007199254740992", "9223372036854775807", "18446744073709551615",
        "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "123456789012345678901234567890", "1.50", "-0.0",
        "1e5", "1E400000000000000000000", "1E-5", "0.1000000000000000055511151231257827", "2.5E+3"}) {
    const std::string document = "{\"n\":" + std::string(number) + "}";
    if (std::string_view(number).starts_with("1E4")) {
      EXPECT_EQ(why(document), "a number is too large");
    } else {
      EXPECT_EQ(at(document, "/n"), number);
    }
  }
}

TEST(StrictJson, ContainersAreWrittenAgainCompactly) {
  constexpr std::string_view document =
      "{ \"r\" : { \"b\" : [ 1.0 , -0 , \"\\u00e9\\n\\\"\" , [ ] , { } ] , \"a\" : null } , \"z\" : [ [ 1 ] , { \"k\" : false } "
      "] }";
  EXPECT_EQ(at(document, "/r"), "{\"b\":[1.0,-0,\"\xc3\xa9\\n\\\"\",[],{}],\"a\":null}");
  EXPECT_EQ(at(document, "/z"), R"([[1],{"k":false}])");
  EXPECT_EQ(at(document, "/z/1"), R"({"k":false})");
  EXPECT_EQ(texts(document, {"/z", "/z/0", "/z/0/0"}),
            (std::vector<std::optional<std::string>>{R"([[1],{"k":false}])", "[1]", "1"}));
  // Beyond the bound the text is dropped, the kind stays.
  const std::string large = "{\"r\":[\"" + std::string(json_container_max, 'x') + "\",1],\"s\":1}";
  const std::string_view pointers[] = {"/r", "/s"};
  const auto read = read_json(large, pointers);
  ASSERT_TRUE(read.values[0] && read.values[1]);
  EXPECT_EQ(read.values[0]->kind, json_value::kind::array);
  EXPECT_EQ(read.values[0]->text, "");
  EXPECT_EQ(read.values[1]->text, "1");
}

struct broken_case {
  const char* name;
  std::string document;
  const char* reason;
};

TEST(StrictJson, WhatIsAmbiguousOrCannotBeRepresentedIsRefused) {
  const auto deep = [](int levels) {
    return std::string(static_cast<std::size_t>(levels), '[') + std::string(static_cast<std::size_t>(levels), ']');
  };
  const broken_case cases[] = {
      {"empty", "", "the text is empty"},
      {"only blanks", "  \n", "not JSON at byte"},
      {"byte order mark", "\xef\xbb\xbf{}", "byte order mark"},
      {"member twice", R"({"a":1,"a":1})", "two members"},
      {"member twice, spelled otherwise", R"({"a":1,"\u0061":1})", "two members"},
      {"member twice, deep", R"({"x":[{"y":{"a":1,"b":2,"a":3}}]})", "two members"},
      {"NUL in a string", R"({"a":"x\u0000y"})", "U+0000"},
      {"NUL in a name", R"({"a\u0000":1})", "U+0000"},
      {"raw NUL", std::string("{\"a\":\"x\0y\"}", 11), "not JSON at byte"},
      {"lone high surrogate", R"({"a":"\ud800"})", "not JSON at byte"},
      {"lone low surrogate", R"({"a":"\udc00"})", "not JSON at byte"},
      {"surrogates in wrong order", R"({"a":"\udc00\ud800"})", "not JSON at byte"},
      {"broken UTF-8", "{\"a\":\"\xff\"}", "not JSON at byte"},
      {"overlong UTF-8", "{\"a\":\"\xc0\xaf\"}", "not JSON at byte"},
      {"surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", "not JSON at byte"},
      {"UTF-8 cut off", "{\"a\":\"\xf0\x9f\x98\"}", "not JSON at byte"},
      {"UTF-16", std::string("{\0}\0", 4), "not JSON at byte"},
      {"65 levels", deep(65), "deeper than 64"},
      {"endless levels", std::string(1 << 20, '['), "deeper than 64"},
      {"number too large", R"({"a":1E400})", "too large"},
      {"text behind", "{} x", "not JSON at byte"},
      {"text behind a NUL", std::string("{}\0x", 4), "not JSON at byte"},
      {"two documents", "{}{}", "not JSON at byte"},
      {"comma at the end", R"({"a":1,})", "not JSON at byte"},
      {"comment", "{/* */}", "not JSON at byte"},
      {"single quotes", "{'a':1}", "not JSON at byte"},
      {"NaN", R"({"a":NaN})", "not JSON at byte"},
      {"leading zero", R"({"a":01})", "not JSON at byte"},
      {"plus sign", R"({"a":+1})", "not JSON at byte"},
      {"no fraction", R"({"a":1.})", "not JSON at byte"},
      {"cut off", R"({"a":1)", "not JSON at byte"},
      {"control character", "{\"a\":\"x\ny\"}", "not JSON at byte"},
      {"unknown escape", R"({"a":"\x41"})", "not JSON at byte"},
  };
  for (const broken_case& c : cases) {
    EXPECT_NE(why(c.document).find(c.reason), std::string::npos) << c.name << ": " << why(c.document);
    const std::string_view pointers[] = {"/a"};
    const auto read = read_json(c.document, pointers);
    ASSERT_TRUE(read.broken) << c.name;
    EXPECT_EQ(code_word(read.broken->code), "malformed_json");
    // The reader of our own API's bodies draws the same line, but for numbers, which it never converts.
    EXPECT_EQ(parse_json(c.document).has_value(), std::string_view(c.name) == "number too large") << c.name;
  }
  EXPECT_EQ(why(deep(64)), "fine");
  EXPECT_EQ(why(R"({"a":"\ud83d\ude0a"})"), "fine");
  EXPECT_EQ(why(R"([{"a":1},{"a":1}])"), "fine");
  EXPECT_EQ(why(" \t\r\n{}\n"), "fine");
}

TEST(StrictJson, WhatIsNotAmbiguousIsReadAllTheSame) {
  EXPECT_EQ(texts(R"({"id":"r","s":1,"s":2,"t":3})", {"/id", "/s", "/t"}),
            (std::vector<std::optional<std::string>>{"r", std::nullopt, "3"}));
  // What lies below an ambiguous member is ambiguous too, wherever it was found.
  EXPECT_EQ(texts(R"({"a":{"x":1},"a":{}})", {"/a/x"}), std::vector<std::optional<std::string>>{std::nullopt});
  EXPECT_EQ(texts(R"({"a":{},"a":{"x":1}})", {"/a/x"}), std::vector<std::optional<std::string>>{std::nullopt});
  // Text that is no JSON says nothing at all.
  EXPECT_EQ(texts(R"({"id":"r",)", {"/id"}), std::vector<std::optional<std::string>>{std::nullopt});
}

TEST(StrictJson, ManyNamesAreStillComparedExactly) {
  std::string document = "{";
  for (int i = 0; i < 2000; ++i) document += "\"name" + std::to_string(i) + "\":" + std::to_string(i) + ",";
  EXPECT_EQ(at(document + "\"last\":1}", "/name1999"), "1999");
  EXPECT_EQ(why(document + "\"last\":1}"), "fine");
  EXPECT_EQ(why(document + "\"name7\":1}"), "an object has two members of the same name");
  EXPECT_EQ(why(document + "\"name1999\":1}"), "an object has two members of the same name");
}

}  // namespace
}  // namespace recibo::verify
