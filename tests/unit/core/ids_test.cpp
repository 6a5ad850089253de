#include "recibo/core/ids.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <unordered_set>
#include <vector>

namespace recibo {
namespace {

using namespace std::chrono_literals;

const sys_micros start = parse_rfc3339("2026-10-01T10:00:00.123456Z").value();

TEST(Ids, AFreshOneIsAVersion7Uuid) {
  const auto id = make_id<operation_id>(start);
  EXPECT_EQ(id.bytes[6] >> 4, 7);
  EXPECT_EQ(id.bytes[8] >> 6, 2);
  EXPECT_EQ(uuid_v7_time(id.bytes), parse_rfc3339("2026-10-01T10:00:00.123Z").value());
  const std::string text = to_string(id);
  EXPECT_EQ(text.size(), 36u);
  EXPECT_EQ(parse_id<operation_id>(text).value(), id);
}

TEST(Ids, TheyIncreaseWithinOneInstant) {
  auto last = make_id<delivery_id>(start);
  for (int i = 0; i < 100'000; ++i) {
    const auto next = make_id<delivery_id>(start);
    ASSERT_LT(last, next);
    last = next;
  }
}

TEST(Ids, TheyIncreaseWhenTheClockStepsBackALittle) {
  const auto first = make_id<delivery_id>(start + 1h);
  const auto second = make_id<delivery_id>(start + 1h - 9s);
  EXPECT_LT(first, second);
  EXPECT_EQ(uuid_v7_time(first.bytes), uuid_v7_time(second.bytes));
}

TEST(Ids, ALongStepBackIsFollowed) {
  make_id<delivery_id>(start + 2h);
  const auto later = make_id<delivery_id>(start);
  EXPECT_EQ(uuid_v7_time(later.bytes), std::chrono::floor<std::chrono::milliseconds>(start));
}

TEST(Ids, TextAndBytesSortAlike) {
  std::vector<delivery_id> ids;
  for (int i = 0; i < 1000; ++i) ids.push_back(make_id<delivery_id>(start + 3h + std::chrono::milliseconds(i / 3)));
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end()));
  EXPECT_TRUE(std::is_sorted(ids.begin(), ids.end(), [](const auto& a, const auto& b) { return to_string(a) < to_string(b); }));
}

TEST(Ids, ThreadsDoNotRepeatEachOther) {
  constexpr int threads = 4, each = 5000;
  std::vector<std::vector<operation_id>> made(threads);
  std::vector<std::thread> running;
  for (auto& mine : made) {
    running.emplace_back([&mine] {
      for (int i = 0; i < each; ++i) mine.push_back(make_id<operation_id>(start));
    });
  }
  for (auto& t : running) t.join();
  std::unordered_set<operation_id> all;
  for (const auto& mine : made) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), std::size_t{threads} * each);
}

TEST(Ids, InstantsOutside48BitsAreHeldAtTheEdge) {
  std::thread([] {
    EXPECT_EQ(uuid_v7_time(uuid_v7_bytes(sys_micros{-5s})), sys_micros{});
    EXPECT_EQ(uuid_v7_time(uuid_v7_bytes(sys_micros::max())), sys_micros{std::chrono::milliseconds((std::int64_t{1} << 48) - 1)});
    EXPECT_EQ(uuid_v7_bytes(sys_micros::max())[6] >> 4, 7);
  }).join();
}

TEST(Ids, UuidTextIsReadInEitherCase) {
  const auto id = parse_uuid_bytes("0199EF5a-b87b-7CDE-8f01-23456789abCD").value();
  EXPECT_EQ(uuid_text(id), "0199ef5a-b87b-7cde-8f01-23456789abcd");
}

TEST(Ids, WhatIsNoUuidIsRefused) {
  for (const char* text :
       {"", "0199ef5a-b87b-7cde-8f01-23456789abc", "0199ef5a-b87b-7cde-8f01-23456789abcde", "0199ef5ab87b7cde8f0123456789abcd",
        "{0199ef5a-b87b-7cde-8f01-23456789abcd}", "0199ef5a-b87b-7cde-8f01-23456789abcg", "0199ef5ab-87b-7cde-8f01-23456789abcd",
        "-199ef5a-b87b-7cde-8f01-23456789abcd", "0199ef5a-b87b-7cde-8f01-+3456789abcd", "0199ef5a-b87b-7cde-8f01 23456789abcd"}) {
    const auto id = parse_id<operation_id>(text);
    ASSERT_FALSE(id) << text;
    EXPECT_EQ(id.error().code, permanent::malformed_field);
  }
}

TEST(Ids, ANilOneSaysSo) {
  EXPECT_TRUE(operation_id{}.is_nil());
  EXPECT_FALSE(make_id<operation_id>(start).is_nil());
  EXPECT_EQ(operation_id{}.binary(), std::string_view("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16));
}

struct id_case {
  const char* name;
  std::string id;
  bool request_id;
  bool alias;
};

const auto id_cases = std::to_array<id_case>({
    {"plain", "req-1001", true, true},
    {"awkward", R"(a:b@c&d=e+f;g"<h>\i')", true, true},
    {"all_of_printable_ascii", "!\"$&'()*+,-.0123456789:;<=>@AZ[\\]^_`az{|}~", true, true},
    {"slash", "a/b", false, true},
    {"percent", "a%2Fb", false, true},
    {"question_mark", "a?b", false, true},
    {"hash", "a#b", false, true},
    {"space", "a b", false, true},
    {"single_byte", "x", true, true},
    {"bytes_255", std::string(255, 'x'), true, true},
    {"bytes_256", std::string(256, 'x'), false, false},
    {"bytes_12800", std::string(12800, 'a'), false, false},
    {"empty", "", false, false},
    {"one_blank", " ", false, false},
    {"blanks", "   ", false, false},
    {"no_break_space", "\xc2\xa0", false, false},
    {"ideographic_space", "\xe3\x80\x80", false, false},
    {"zero_width_space", "\xe2\x80\x8b", false, false},
    {"byte_order_mark", "\xef\xbb\xbf", false, false},
    {"blank_around", " a ", false, true},
    {"dot", ".", false, true},
    {"two_dots", "..", false, true},
    {"three_dots", "...", true, true},
    {"dots_inside", "a..b", true, true},
    {"tab", "a\tb", false, false},
    {"line_end", "a\n", false, false},
    {"carriage_return", "a\r\nHost: evil.example", false, false},
    {"nul", std::string("a\0b", 3), false, false},
    {"escape", "\x1b[31m", false, false},
    {"delete", "a\x7f", false, false},
    {"c1_control", "a\xc2\x85", false, false},
    {"umlaut", "m\xc3\xbcller", false, true},
    {"emoji", "\xf0\x9f\x98\x8a", false, true},
    {"characters_127_of_two_bytes",
     [] {
       std::string s;
       for (int i = 0; i < 127; ++i) s += "\xc3\xbc";
       return s;
     }(),
     false, true},
    {"characters_128_of_two_bytes",
     [] {
       std::string s;
       for (int i = 0; i < 128; ++i) s += "\xc3\xbc";
       return s;
     }(),
     false, false},
    {"lone_continuation", "a\x80", false, false},
    {"byte_ff", "\xff", false, false},
    {"cut_in_two", "a\xf0\x9f\x98", false, false},
    {"overlong_slash", "\xc0\xaf", false, false},
    {"surrogate", "\xed\xa0\x80", false, false},
    {"above_unicode", "\xf4\x90\x80\x80", false, false},
});

class IdChecks : public testing::TestWithParam<id_case> {};

TEST_P(IdChecks, RequestIdAndAliasAreTakenOrRefusedByRule) {
  const auto& row = GetParam();
  const auto request_id = check_request_id(row.id);
  EXPECT_EQ(request_id.has_value(), row.request_id);
  if (!request_id) {
    EXPECT_EQ(request_id.error().code, permanent::malformed_field);
    EXPECT_EQ(request_id.error().detail.substr(0, 11), "request_id ");
  }
  const auto alias = check_alias(row.id, "reference");
  EXPECT_EQ(alias.has_value(), row.alias);
  if (!alias) {
    EXPECT_EQ(alias.error().code, permanent::malformed_field);
    EXPECT_EQ(alias.error().detail.substr(0, 10), "reference ");
    // The detail is shown to the caller and logged: it names the rule and never repeats the value.
    EXPECT_LT(alias.error().detail.size(), 100u);
  }
}

INSTANTIATE_TEST_SUITE_P(Ids, IdChecks, testing::ValuesIn(id_cases), [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace recibo
