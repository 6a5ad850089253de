#include "recibo/core/json.hpp"
#include "recibo/core/secret.hpp"
#include "recibo/core/utf8.hpp"

#include <gtest/gtest.h>

#include <array>
#include <concepts>
#include <ostream>
#include <string>
#include <type_traits>

namespace recibo {
namespace {

using namespace std::string_literals;

struct json_case {
  const char* name;
  std::string text;
  std::string json;
};

const auto json_cases = std::to_array<json_case>({
    {"empty", "", R"("")"},
    {"plain", "req-1001", R"("req-1001")"},
    {"quote_and_backslash", R"(a"b\c)", R"("a\"b\\c")"},
    {"slash_stays", "a/b", R"("a/b")"},
    {"short_escapes", "\b\f\n\r\t", R"("\b\f\n\r\t")"},
    {"nul", "a\0b"s, R"("a\u0000b")"},
    {"escape_and_delete", "\x1b[31m\x7f", R"("\u001b[31m\u007f")"},
    {"forged_line", "x\n{\"level\":\"info\"}", R"("x\n{\"level\":\"info\"}")"},
    {"umlaut_stays", "m\xc3\xbcller", "\"m\xc3\xbcller\""},
    {"emoji_stays", "\xf0\x9f\x98\x8a", "\"\xf0\x9f\x98\x8a\""},
    {"line_separator_stays", "\xe2\x80\xa8", "\"\xe2\x80\xa8\""},
    {"byte_ff",
     "a\xff"
     "b",
     "\"a\xef\xbf\xbd"
     "b\""},
    {"cut_emoji", "a\xf0\x9f\x98", "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"surrogate", "\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    {"overlong_quote", "\xc0\xa2", "\"\xef\xbf\xbd\xef\xbf\xbd\""},
    {"broken_before_quote", "\xc3\"", "\"\xef\xbf\xbd\\\"\""},
});

class JsonStrings : public testing::TestWithParam<json_case> {};

TEST_P(JsonStrings, AreEscaped) {
  EXPECT_EQ(json_string(GetParam().text), GetParam().json);
  EXPECT_TRUE(is_utf8(json_string(GetParam().text)));
}

INSTANTIATE_TEST_SUITE_P(Json, JsonStrings, testing::ValuesIn(json_cases), [](const auto& row) { return row.param.name; });

TEST(Json, AppendKeepsWhatWasThere) {
  std::string out = "{\"a\":";
  append_json_string(out, "b");
  EXPECT_EQ(out, R"({"a":"b")");
}

TEST(Utf8, CharactersAtTheEdges) {
  for (const auto& [bytes, length, point] : {std::tuple{"\x7f"s, 1u, U'\x7f'},
                                             {"\xc2\x80"s, 2u, U'\x80'},
                                             {"\xdf\xbf"s, 2u, U'\x7ff'},
                                             {"\xe0\xa0\x80"s, 3u, U'\x800'},
                                             {"\xed\x9f\xbf"s, 3u, U'\xd7ff'},
                                             {"\xee\x80\x80"s, 3u, U'\xe000'},
                                             {"\xef\xbf\xbf"s, 3u, U'\xffff'},
                                             {"\xf0\x90\x80\x80"s, 4u, U'\x10000'},
                                             {"\xf4\x8f\xbf\xbf"s, 4u, U'\x10ffff'},
                                             {"\0"s, 1u, U'\0'}}) {
    char32_t read = 1;
    EXPECT_EQ(utf8_character(bytes, read), length);
    EXPECT_EQ(read, point);
    EXPECT_TRUE(is_utf8(bytes));
    if (length > 1) {
      EXPECT_FALSE(is_utf8(bytes.substr(0, length - 1)));
    }
  }
}

TEST(Utf8, WhatIsBroken) {
  for (const auto& bytes :
       {"\x80"s, "\xbf"s, "\xc0\x80"s, "\xc1\xbf"s, "\xe0\x9f\xbf"s, "\xed\xa0\x80"s, "\xed\xbf\xbf"s, "\xf0\x8f\xbf\xbf"s,
        "\xf4\x90\x80\x80"s, "\xf5\x80\x80\x80"s, "\xfe"s, "\xff"s, "a\xc3"s, "\xc3z"s}) {
    EXPECT_FALSE(is_utf8(bytes));
  }
  EXPECT_TRUE(is_utf8(""));
}

template <class T>
concept printable = requires(std::ostream& out, const T& value) {
  out << value;
};

TEST(Secret, CannotBePrintedOrConverted) {
  static_assert(!printable<secret>);
  static_assert(!std::convertible_to<secret, std::string>);
  static_assert(!std::convertible_to<secret, std::string_view>);
  static_assert(!std::convertible_to<std::string, secret>);
  EXPECT_EQ(secret("test-secret-A").reveal(), "test-secret-A");
}

TEST(Secret, CopiesAndMovesAreWhole) {
  const std::string long_text(100, 's');
  for (const std::string& text : {"short"s, long_text, ""s}) {
    secret first(text);
    secret copy = first;
    EXPECT_EQ(copy.reveal(), text);
    secret moved = std::move(copy);
    EXPECT_EQ(moved.reveal(), text);
    secret assigned(long_text + "other");
    assigned = first;
    EXPECT_EQ(assigned.reveal(), text);
    const secret& same = assigned;
    assigned = same;
    EXPECT_EQ(assigned.reveal(), text);
    secret taken(std::string("before"));
    taken = std::move(assigned);
    EXPECT_EQ(taken.reveal(), text);
    EXPECT_EQ(taken.empty(), text.empty());
  }
}

TEST(Secret, DestructionWipesItsMemory) {
  alignas(secret) std::array<unsigned char, sizeof(secret)> room{};
  auto* inside = new (room.data()) secret(std::string("ABCDEFGHIJ"));  // short enough to stand in the object itself
  inside->~secret();
  EXPECT_EQ(std::string_view(reinterpret_cast<const char*>(room.data()), room.size()).find("ABCDE"), std::string_view::npos);
}

}  // namespace
}  // namespace recibo
