#include "recibo/core/json_value.hpp"
#include "recibo/core/json_writer.hpp"

#include <gtest/gtest.h>

namespace recibo {
namespace {

using kind = json_value::kind;

TEST(JsonValue, KeepsNumbersAsTheyWereWritten) {
  for (const std::string number :
       {"0", "-0", "1.50", "9007199254740993", "1e400", "-12.3E-5", "123456789012345678901234567890"}) {
    const auto value = parse_json(number);
    ASSERT_TRUE(value) << number;
    EXPECT_EQ(value->type, kind::number);
    EXPECT_EQ(value->text, number);
  }
}

TEST(JsonValue, DecodesEscapesToUtf8) {
  const auto value = parse_json(R"("\" \\ \/ \b\f\n\r\t \u00e9 \u20AC \ud83d\ude0a é")");
  ASSERT_TRUE(value);
  EXPECT_EQ(value->text, "\" \\ / \b\f\n\r\t é € 😊 é");
}

TEST(JsonValue, KeepsMembersInOrderAndFindsThem) {
  const auto value = parse_json(R"( {"b": [1, true, null], "a": {"": "x"}} )");
  ASSERT_TRUE(value);
  ASSERT_EQ(value->members.size(), 2U);
  EXPECT_EQ(value->members[0].name, "b");
  EXPECT_EQ(value->find("b")->elements.size(), 3U);
  EXPECT_EQ(value->find("a")->find("")->text, "x");
  EXPECT_EQ(value->find("c"), nullptr);
}

struct refused {
  const char* name;
  std::string text;
};

class Refused : public ::testing::TestWithParam<refused> {};

TEST_P(Refused, IsMalformedJson) {
  const auto value = parse_json(GetParam().text);
  ASSERT_FALSE(value) << GetParam().name;
  EXPECT_EQ(value.error().code, make_error_code(permanent::malformed_json));
  EXPECT_FALSE(value.error().detail.empty());
}

INSTANTIATE_TEST_SUITE_P(
    JsonValue, Refused,
    ::testing::Values(refused{"Empty", ""}, refused{"Blanks", " \n"}, refused{"ByteOrderMark", "\xef\xbb\xbf{}"},
                      refused{"Behind", "{} {}"}, refused{"BehindANul", std::string("{}\0x", 4)},
                      refused{"NameTwice", R"({"a":1,"a":2})"}, refused{"NameTwiceByEscape", R"({"a":1,"\u0061":2})"},
                      refused{"Nul", R"("\u0000")"}, refused{"LoneHigh", R"("\ud800")"}, refused{"LoneLow", R"("\udc00")"},
                      refused{"HighThenOther", R"("\ud800A")"}, refused{"BrokenUtf8", "\"\xff\""},
                      refused{"OverlongUtf8", "\"\xc0\x80\""}, refused{"RawControl", "\"a\nb\""}, refused{"LeadingZero", "01"},
                      refused{"Plus", "+1"}, refused{"BarePoint", "1."}, refused{"BareExponent", "1e"}, refused{"Minus", "-"},
                      refused{"NaN", "NaN"}, refused{"SingleQuotes", "{'a':1}"}, refused{"TrailingComma", "[1,]"},
                      refused{"TrailingCommaInObject", R"({"a":1,})"}, refused{"Comment", "[1/*x*/]"}, refused{"Open", "[1"},
                      refused{"OpenString", "\"a"}, refused{"CutEscape", "\"\\u00"}, refused{"BadEscape", R"("\x")"},
                      refused{"Word", "tru"}, refused{"TooDeep", std::string(65, '[') + std::string(65, ']')}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(JsonValue, TellsTheRuleAndTheByteAndNothingOfTheText) {
  const auto why = [](std::string_view text) { return parse_json(text).error().detail; };
  EXPECT_EQ(why(R"({"secret":1,"secret":2})"), "an object has two members of the same name (byte 20)");
  EXPECT_EQ(why(R"(["secret\u0000"])"), "a string holds U+0000 (byte 15)");
  EXPECT_EQ(why(std::string(65, '[')), "nested deeper than 64 levels (byte 65)");
  EXPECT_TRUE(why(R"({"a":secret})").starts_with("not JSON at byte 6: "));
  for (const std::string_view text : {R"({"a":secret})", R"(["secret)", R"(["secret\ud800"])", R"({"a" "secret"})",
                                      R"({"a":1} "secret")", "[\"secret\xff\"]"}) {
    const auto detail = why(text);
    EXPECT_TRUE(detail.starts_with("not JSON at byte ")) << detail;
    EXPECT_NE(detail.find(": "), std::string::npos) << detail;
    EXPECT_EQ(detail.find("secret"), std::string::npos) << detail;
    EXPECT_EQ(detail.find("last read"), std::string::npos) << detail;
  }
}

TEST(JsonValue, TakesSixtyFourLevels) { EXPECT_TRUE(parse_json(std::string(64, '[') + std::string(64, ']'))); }

TEST(JsonValue, NoticesANameTwiceAmongMany) {
  std::string text = "{";
  for (int i = 0; i < 1000; ++i) text += "\"n" + std::to_string(i) + "\":0,";
  EXPECT_TRUE(parse_json(text + "\"m\":0}"));
  EXPECT_FALSE(parse_json(text + "\"n7\":0}"));
  EXPECT_FALSE(parse_json(text + "\"n999\":0}"));
}

TEST(CanonicalJson, IsOneTextForOneDocument) {
  EXPECT_EQ(*canonical_json(std::string_view(R"( {"b": 1, "a": [ "\u00e9", {"d":null,"c":true} ]} )")),
            R"({"a":["é",{"c":true,"d":null}],"b":1})");
  EXPECT_EQ(*canonical_json(std::string_view(R"({"":1,"B":2,"a":3,"ab":4})")), R"({"":1,"B":2,"a":3,"ab":4})");
}

TEST(CanonicalJson, WritesNumbersAsNumericDoes) {
  const std::pair<const char*, const char*> cases[] = {
      {"1", "1"},
      {"-0", "0"},
      {"-0.00", "0.00"},
      {"1.50", "1.50"},
      {"1e2", "100"},
      {"1.5e3", "1500"},
      {"1.50e1", "15.0"},
      {"1e-3", "0.001"},
      {"-12.5E-1", "-1.25"},
      {"0e5", "0"},
      {"0.0e1", "0"},
      {"1E+2", "100"},
      {"12345e-2", "123.45"},
      {"0.001e3", "1"},
      {"0.0010e2", "0.10"},
      {"100e-2", "1.00"},
      {"1e0", "1"},
      {"1e000000000000000002", "100"},
  };
  for (const auto& [from, to] : cases) EXPECT_EQ(*canonical_json(std::string_view(from)), to) << from;
}

TEST(CanonicalJson, RefusesNumbersThatWouldFillTheMemory) {
  for (const auto& number : std::vector<std::string>{"1e401", "1e-401", "1e999999999999", std::string(401, '9')})
    EXPECT_FALSE(canonical_json(std::string_view(number))) << number;
  EXPECT_TRUE(canonical_json(std::string_view("1e399")));
}

TEST(CanonicalJson, IsItsOwnCanonicalForm) {
  const std::string text = R"({"a":"x\"\\\n","n":-1.250,"z":[[],{}]})";
  EXPECT_EQ(*canonical_json(std::string_view(*canonical_json(std::string_view(text)))), *canonical_json(std::string_view(text)));
}

TEST(JsonPointer, EscapesTildeAndSlash) { EXPECT_EQ(json_pointer_token("a/b~c"), "a~1b~0c"); }

TEST(JsonWriter, PutsCommasAndEscapes) {
  json_writer out;
  out.begin_object()
      .text("a", "x\"y")
      .number("b", -3)
      .flag("c", true)
      .null("d")
      .text("e", std::optional<std::string>())
      .text_or_null("f", "");
  out.key("g").begin_array().text("1").number(2).begin_object().end_object().begin_array().end_array().end_array();
  out.raw("h", "{\"i\":1}").time("j", sys_micros{}).end_object();
  EXPECT_EQ(
      out.str(),
      R"({"a":"x\"y","b":-3,"c":true,"d":null,"e":null,"f":null,"g":["1",2,{},[]],"h":{"i":1},"j":"1970-01-01T00:00:00.000000Z"})");
}

}  // namespace
}  // namespace recibo
