#include "recibo/core/clock.hpp"

#include <gtest/gtest.h>

#include <ctime>

#include <array>
#include <cstdlib>
#include <limits>

namespace recibo {
namespace {

using namespace std::chrono;

struct good_time {
  const char* name;
  const char* text;
  const char* instant;
};

class GoodTimes : public testing::TestWithParam<good_time> {};

TEST_P(GoodTimes, AreRead) {
  const auto at = parse_rfc3339(GetParam().text);
  ASSERT_TRUE(at) << at.error().detail;
  EXPECT_EQ(to_rfc3339(*at), GetParam().instant);
}

constexpr auto good_times = std::to_array<good_time>({
    {"utc", "2026-10-01T10:00:00Z", "2026-10-01T10:00:00.000000Z"},
    {"small_letters", "2026-10-01t10:00:00z", "2026-10-01T10:00:00.000000Z"},
    {"east", "2026-06-28T16:08:11+02:00", "2026-06-28T14:08:11.000000Z"},
    {"west", "2026-06-28T16:08:11-09:30", "2026-06-29T01:38:11.000000Z"},
    {"unknown_local_offset", "2026-06-28T16:08:11-00:00", "2026-06-28T16:08:11.000000Z"},
    {"one_digit_of_fraction", "2026-06-28T16:08:11.5Z", "2026-06-28T16:08:11.500000Z"},
    {"six_digits_of_fraction", "2026-06-28T16:08:11.000001Z", "2026-06-28T16:08:11.000001Z"},
    {"nine_digits_are_cut", "2026-06-28T16:08:11.123456999Z", "2026-06-28T16:08:11.123456Z"},
    {"thirty_digits_are_cut", "2026-06-28T16:08:11.999999999999999999999999999999Z", "2026-06-28T16:08:11.999999Z"},
    {"leap_day", "2024-02-29T00:00:00Z", "2024-02-29T00:00:00.000000Z"},
    {"leap_second", "2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000000Z"},
    {"leap_second_with_fraction", "2016-12-31T23:59:60.25Z", "2017-01-01T00:00:00.250000Z"},
    {"leap_second_elsewhere", "1990-12-31T15:59:60-08:00", "1991-01-01T00:00:00.000000Z"},
    {"before_1970", "1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"},
    {"first", "0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z"},
    {"last", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"},
});

INSTANTIATE_TEST_SUITE_P(Clock, GoodTimes, testing::ValuesIn(good_times), [](const auto& row) { return row.param.name; });

struct bad_time {
  const char* name;
  const char* text;
};

class BadTimes : public testing::TestWithParam<bad_time> {};

TEST_P(BadTimes, AreRefused) {
  const auto at = parse_rfc3339(GetParam().text);
  ASSERT_FALSE(at) << to_rfc3339(*at);
  EXPECT_EQ(at.error().code, permanent::malformed_field);
  EXPECT_FALSE(at.error().detail.empty());
}

constexpr auto bad_times = std::to_array<bad_time>({
    {"empty", ""},
    {"date_only", "2026-10-25"},
    {"no_offset", "2026-10-25T02:30:00"},
    {"blanks_and_no_colon", "2026-06-28 16:08:11 +0200"},
    {"blank_instead_of_t", "2026-06-28 16:08:11Z"},
    {"offset_without_colon", "2026-06-28T16:08:11+0200"},
    {"offset_of_hours", "2026-06-28T16:08:11+02"},
    {"offset_of_24_hours", "2026-06-28T16:08:11+24:00"},
    {"offset_of_60_minutes", "2026-06-28T16:08:11+01:60"},
    {"unicode_minus",
     "2026-06-28T16:08:11\xe2\x88\x92"
     "02:00"},
    {"zone_name", "2026-06-28T16:08:11[Europe/Paris]"},
    {"zone_name_behind", "2026-06-28T16:08:11Z[Europe/Paris]"},
    {"line_end_behind", "2026-06-28T16:08:11Z\n"},
    {"blank_before", " 2026-06-28T16:08:11Z"},
    {"no_seconds", "2026-06-28T16:08Z"},
    {"empty_fraction", "2026-06-28T16:08:11.Z"},
    {"comma_fraction", "2026-06-28T16:08:11,5Z"},
    {"hour_24", "2026-06-28T24:00:00Z"},
    {"minute_60", "2026-06-28T16:60:00Z"},
    {"second_61", "2016-12-31T23:59:61Z"},
    {"leap_second_at_noon", "2016-12-31T12:00:60Z"},
    {"leap_second_in_the_month", "2016-12-30T23:59:60Z"},
    {"leap_second_after_9999", "9999-12-31T23:59:60Z"},
    {"month_0", "2026-00-01T00:00:00Z"},
    {"month_13", "2026-13-01T00:00:00Z"},
    {"day_0", "2026-01-00T00:00:00Z"},
    {"day_31_in_june", "2026-06-31T00:00:00Z"},
    {"no_leap_day", "2023-02-29T00:00:00Z"},
    {"no_leap_day_in_1900", "1900-02-29T00:00:00Z"},
    {"year_0", "0000-12-31T23:59:59Z"},
    {"year_0_by_offset", "0001-01-01T00:00:00+00:01"},
    {"year_10000", "10000-01-01T00:00:00Z"},
    {"year_10000_by_offset", "9999-12-31T23:59:00-00:01"},
    {"signed_year", "+2026-06-28T16:08:11Z"},
    {"negative_year", "-2026-06-28T16:08:11Z"},
    {"two_digit_year", "26-06-28T16:08:11Z"},
    {"one_digit_month", "2026-6-28T16:08:11Z"},
    {"basic_format", "20260628T160811Z"},
    {"week_date", "2026-W26-7T16:08:11Z"},
    {"unix_seconds", "1767225600"},
    {"unix_milliseconds", "1767225600000"},
    {"arabic_digits", "\xd9\xa2\xd9\xa0\xd9\xa2\xd9\xa6-06-28T16:08:11Z"},
    {"http_date", "Sun, 06 Nov 1994 08:49:37 GMT"},
});

INSTANTIATE_TEST_SUITE_P(Clock, BadTimes, testing::ValuesIn(bad_times), [](const auto& row) { return row.param.name; });

TEST(Clock, NulBehindATimeIsRefused) {
  using namespace std::string_view_literals;
  EXPECT_FALSE(parse_rfc3339("2026-06-28T16:08:11Z\0"sv));
}

TEST(Clock, UnixSecondsAreRead) {
  EXPECT_EQ(parse_unix_seconds("0").value(), sys_micros{});
  EXPECT_EQ(to_rfc3339(parse_unix_seconds("1767225600").value()), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(to_rfc3339(parse_unix_seconds("0000001767225600").value()), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(to_rfc3339(parse_unix_seconds("253402300799").value()), "9999-12-31T23:59:59.000000Z");
}

TEST(Clock, UnixMillisecondsAreRead) {
  EXPECT_EQ(to_rfc3339(parse_unix_millis("1767225600000").value()), "2026-01-01T00:00:00.000000Z");
  EXPECT_EQ(to_rfc3339(parse_unix_millis("1767225600123").value()), "2026-01-01T00:00:00.123000Z");
  EXPECT_EQ(to_rfc3339(parse_unix_millis("253402300799999").value()), "9999-12-31T23:59:59.999000Z");
}

TEST(Clock, MillisecondsReadAsSecondsAreRefused) {
  // Year 57971 is what two other services stored (K25).
  EXPECT_FALSE(parse_unix_seconds("1767225600000"));
  EXPECT_FALSE(parse_unix_seconds("253402300800"));
  EXPECT_FALSE(parse_unix_millis("253402300800000"));
}

TEST(Clock, WhatIsNotOnlyDigitsIsNoUnixTime) {
  for (const char* text : {"", " ", "-1", "+1", "1.5", "1e9", "1767225600junk", " 1767225600", "1767225600 ", "1767225600\n",
                           "0x10", "123456789012345678", "99999999999999999999999999"}) {
    EXPECT_FALSE(parse_unix_seconds(text)) << text;
    EXPECT_FALSE(parse_unix_millis(text)) << text;
  }
}

TEST(Clock, TextIsTheSameInEveryZone) {
  const char* before = std::getenv("TZ");
  const std::string kept = before ? before : "";
  for (const char* zone : {"UTC", "Europe/Paris", "America/New_York"}) {
    setenv("TZ", zone, 1);
    tzset();
    EXPECT_EQ(to_rfc3339(sys_days{2026y / October / 25} + 1h), "2026-10-25T01:00:00.000000Z") << zone;
    EXPECT_EQ(parse_rfc3339("2026-10-25T01:00:00Z").value(), sys_micros(sys_days{2026y / October / 25} + 1h)) << zone;
  }
  before ? setenv("TZ", kept.c_str(), 1) : unsetenv("TZ");
  tzset();
}

TEST(Clock, AnInstantOutsideTheFormIsShownAsTheNearestInside) {
  EXPECT_EQ(to_rfc3339(sys_micros::max()), "9999-12-31T23:59:59.999999Z");
  EXPECT_EQ(to_rfc3339(sys_micros::min()), "0001-01-01T00:00:00.000000Z");
}

TEST(Clock, NowIsTheWallClock) {
  const auto before = system_clock::now();
  const auto at = now();
  EXPECT_GE(at, floor<microseconds>(before));
  EXPECT_LE(at, system_clock::now());
}

}  // namespace
}  // namespace recibo
