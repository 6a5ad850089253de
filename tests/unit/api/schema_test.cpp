#include "recibo/api/schema.hpp"

#include <gtest/gtest.h>

namespace recibo::api {
namespace {

const schema& body() {
  static const auto made = [] {
    auto s = closed_object({
        required("name", text(5)),
        optional("id", text(text_rule::request_id)),
        optional("alias", text(text_rule::alias)),
        optional("amount", text(text_rule::decimal)),
        optional("currency", text(text_rule::currency)),
        optional("at", instant()),
        optional("count", integer(1, 200)),
        optional("sure", boolean()),
        optional("word", one_of({"open", "resolved"})),
        optional("items", list(closed_object({required("item_id", text(text_rule::alias))}), 2)),
        optional("free", map()),
        optional("note", text(100, text_rule::prose)),
        optional("why", words(100, text_rule::prose)),
    });
    s.together = {"amount", "currency"};
    return s;
  }();
  return made;
}

struct judged {
  const char* name;
  const char* json;
  std::optional<permanent> refused;
  const char* pointer = "";
};

class Validate : public ::testing::TestWithParam<judged> {};

TEST_P(Validate, JudgesAndNamesThePlace) {
  const auto value = parse_json(GetParam().json);
  ASSERT_TRUE(value);
  const auto came = validate(body(), *value);
  if (!GetParam().refused) {
    EXPECT_TRUE(came) << came.error().detail;
    return;
  }
  ASSERT_FALSE(came);
  EXPECT_EQ(came.error().code, make_error_code(*GetParam().refused)) << came.error().detail;
  EXPECT_EQ(came.error().detail.rfind(GetParam().pointer, 0), 0U) << came.error().detail;
}

INSTANTIATE_TEST_SUITE_P(
    Schema, Validate,
    ::testing::Values(
        judged{"Least", R"({"name":"x"})", std::nullopt},
        judged{
            "All",
            R"({"name":"12345","id":"a:b","alias":"é x","amount":"-1.50","currency":"EUR","at":"2026-10-01T10:00:00+02:00","count":200,"sure":false,"word":"open","items":[{"item_id":"1"},{"item_id":"2"}],"free":{"x":[1]},"note":"a\nb"})",
            std::nullopt},
        judged{"SaysSomething", R"({"name":"x","why":" \n."})", std::nullopt},
        judged{"Empty", R"({"name":"x","why":""})", permanent::malformed_field, "/why: says nothing"},
        judged{"Blank", R"({"name":"x","why":" \t\n"})", permanent::malformed_field, "/why: says nothing"},
        judged{"BlankBeyondAscii", R"({"name":"x","why":"\u00a0\u2003\u3000"})", permanent::malformed_field,
               "/why: says nothing"},
        judged{"NullIsAbsent", R"({"name":"x","id":null,"count":null})", std::nullopt},
        judged{"NotAnObject", R"([])", permanent::malformed_field, "is an object"},
        judged{"Missing", R"({})", permanent::missing_field, "/name"},
        judged{"NullIsNotRequired", R"({"name":null})", permanent::malformed_field, "/name"},
        judged{"Unknown", R"({"name":"x","a/b":1})", permanent::unknown_field, "/a~1b"},
        judged{"TooLong", R"({"name":"123456"})", permanent::malformed_field, "/name"},
        judged{"WrongType", R"({"name":7})", permanent::malformed_field, "/name"},
        judged{"Control", R"({"name":"a\u0007"})", permanent::malformed_field, "/name"},
        judged{"LineBreakInALine", R"({"name":"a\nb"})", permanent::malformed_field, "/name"},
        judged{"RequestId", R"({"name":"x","id":"a/b"})", permanent::malformed_field, "/id: request_id"},
        judged{"EmptyAlias", R"({"name":"x","alias":""})", permanent::malformed_field, "/alias"},
        judged{"FloatAmount", R"({"name":"x","amount":19.99,"currency":"EUR"})", permanent::malformed_field,
               "/amount: is a decimal in a string"},
        judged{"ExponentAmount", R"({"name":"x","amount":"1e3","currency":"EUR"})", permanent::malformed_field, "/amount"},
        judged{"SmallCurrency", R"({"name":"x","amount":"1","currency":"eur"})", permanent::malformed_field, "/currency"},
        judged{"AmountAlone", R"({"name":"x","amount":"1"})", permanent::missing_field, "/currency"},
        judged{"LocalTime", R"({"name":"x","at":"2026-10-25T02:30:00"})", permanent::malformed_field, "/at"},
        judged{"TooMany", R"({"name":"x","count":201})", permanent::malformed_field, "/count"},
        judged{"Fraction", R"({"name":"x","count":1.5})", permanent::malformed_field, "/count"},
        judged{"Exponent", R"({"name":"x","count":1e2})", permanent::malformed_field, "/count"},
        judged{"NoSuchWord", R"({"name":"x","word":"shut"})", permanent::malformed_field, "/word"},
        judged{"Inner", R"({"name":"x","items":[{"item_id":"1"},{"item_id":2}]})", permanent::malformed_field,
               "/items/1/item_id"},
        judged{"InnerUnknown", R"({"name":"x","items":[{"item_id":"1","x":2}]})", permanent::unknown_field, "/items/0/x"},
        judged{"LongList", R"({"name":"x","items":[{"item_id":"1"},{"item_id":"2"},{"item_id":"3"}]})",
               permanent::malformed_field, "/items"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(Schema, ChecksParametersByTheSameRules) {
  EXPECT_TRUE(validate_text(integer(1, 200), "50", "limit"));
  for (const auto* bad : {"0", "201", "x", "", "1 ", "+1", "1.0", "99999999999999999999"})
    EXPECT_FALSE(validate_text(integer(1, 200), bad, "limit")) << bad;
  EXPECT_TRUE(validate_text(boolean(), "true", "overdue"));
  EXPECT_FALSE(validate_text(boolean(), "1", "overdue"));
  EXPECT_FALSE(validate_text(text(63), std::string_view("a\0b", 3), "state"));
  EXPECT_FALSE(validate_text(text(63), "\xff", "state"));
  EXPECT_EQ(validate_text(integer(1, 200), "x", "limit").error().detail, "limit: is an integer from 1 to 200");
}

TEST(Schema, PrintsItself) {
  json_writer out;
  write_schema(out, body());
  const auto& text = out.str();
  EXPECT_TRUE(parse_json(text));
  EXPECT_NE(text.find(R"("required":["name"])"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("additionalProperties":false)"), std::string::npos);
  EXPECT_NE(text.find(R"("dependentRequired":{"amount":["currency"],"currency":["amount"]})"), std::string::npos);
  EXPECT_NE(text.find(R"("enum":["open","resolved",null])"), std::string::npos);
  EXPECT_NE(text.find(R"("maxItems":2)"), std::string::npos);

  json_writer link;
  write_schema(link, nullable(component("Operation")));
  EXPECT_EQ(link.str(), R"({"anyOf":[{"$ref":"#/components/schemas/Operation"},{"type":"null"}]})");
}

}  // namespace
}  // namespace recibo::api
