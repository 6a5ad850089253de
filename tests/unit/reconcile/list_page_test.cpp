#include "src/reconcile/list_page.hpp"

#include <gtest/gtest.h>

namespace recibo::reconcile {
namespace {

config::list_rule list_of(const char* url, const char* parameter = "cursor", std::optional<std::string> next = "/next") {
  config::list_rule out;
  auto how = url_template::parse(url, {"since"});
  EXPECT_TRUE(how.has_value());
  out.url = std::move(*how);
  out.parameter = parameter;
  out.next = std::move(next);
  return out;
}

constexpr sys_micros since{std::chrono::microseconds(1'700'000'000'123'456)};

TEST(PageRequest, SaysSinceWhenAsItsProviderWritesIt) {
  auto rule = list_of("https://api.p1.test/events?from={since}");
  const std::pair<verify::timestamp_format, const char*> rows[] = {
      {verify::timestamp_format::rfc3339, "/events?from=2023-11-14T22%3A13%3A20.123456Z"},
      {verify::timestamp_format::unix_s, "/events?from=1700000000"},
      {verify::timestamp_format::unix_ms, "/events?from=1700000000123"},
  };
  for (const auto& [how, target] : rows) {
    rule.since = how;
    const auto request = page_request(rule, since, "");
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->url.target, target);
    EXPECT_EQ(request->method, "GET");
  }
}

TEST(PageRequest, ACursorIsOneValueOfOneParameter) {
  const std::pair<const char*, const char*> rows[] = {
      {"https://api.p1.test/events", "/events?cursor=a%26b%3Dc%23d%2F..%2F"},
      {"https://api.p1.test/events?limit=10", "/events?limit=10&cursor=a%26b%3Dc%23d%2F..%2F"},
  };
  for (const auto& [url, target] : rows) {
    const auto request = page_request(list_of(url), since, "a&b=c#d/../");
    ASSERT_TRUE(request.has_value());
    EXPECT_EQ(request->url.target, target);
    EXPECT_EQ(request->url.host, "api.p1.test");
  }
}

TEST(NextPage, StandsInTheAnswer) {
  const auto rule = list_of("https://api.p1.test/events", "cursor", "/meta/a~1b");
  EXPECT_EQ(next_page(rule, R"({"meta":{"a/b":"c2"}})", "c1", 3)->cursor, "c2");
  EXPECT_EQ(next_page(rule, R"({"meta":{"a/b":7}})", "", 3)->cursor, "7");
  for (const char* last : {R"({"meta":{"a/b":null}})", R"({"meta":{"a/b":""}})", R"({"meta":{}})", R"({"meta":[]})", "{}",
                           R"({"meta":{"a/b":false}})"})
    EXPECT_EQ(next_page(rule, last, "c1", 3)->cursor, "") << last;
}

TEST(NextPage, WhatCannotBeAskedForIsSaid) {
  const auto rule = list_of("https://api.p1.test/events");
  EXPECT_EQ(next_page(rule, "<html>", "", 0).error().code, permanent::answer_malformed);
  EXPECT_EQ(next_page(rule, R"({"next":{"url":"https://evil.example"}})", "", 1).error().code, permanent::answer_malformed);
  EXPECT_EQ(next_page(rule, "{\"next\":\"a\\u000ab\"}", "", 1).error().code, permanent::answer_malformed);
  EXPECT_EQ(next_page(rule, "{\"next\":\"" + std::string(2049, 'x') + "\"}", "", 1).error().code, permanent::answer_malformed);
  EXPECT_EQ(next_page(rule, R"({"next":true})", "", 1).error().code, permanent::answer_malformed);
}

TEST(NextPage, OneThatNamesItselfIsTheLast) {
  const auto rule = list_of("https://api.p1.test/events");
  const auto same = next_page(rule, R"({"next":"c1"})", "c1", 1);
  EXPECT_EQ(same->cursor, "");
  EXPECT_TRUE(same->repeated) << "it would never end";
  EXPECT_FALSE(next_page(rule, R"({"next":"c2"})", "c1", 1)->repeated);
  EXPECT_FALSE(next_page(rule, R"({"next":""})", "", 1)->repeated);
}

TEST(NextPage, IsCountedUpUntilOneIsEmpty) {
  auto rule = list_of("https://api.p1.test/events", "page", std::nullopt);
  EXPECT_EQ(next_page(rule, "", "", 5)->cursor, "2");
  EXPECT_EQ(next_page(rule, "", "2", 5)->cursor, "3");
  EXPECT_EQ(next_page(rule, "", "3", 0)->cursor, "");
  rule.first = 0;
  EXPECT_EQ(next_page(rule, "", "", 5)->cursor, "1");
}

TEST(NextPage, IsNoneWhereThereIsOnePage) {
  const auto rule = list_of("https://api.p1.test/events", "", std::nullopt);
  EXPECT_EQ(next_page(rule, R"({"next":"c1"})", "", 5)->cursor, "");
}

}  // namespace
}  // namespace recibo::reconcile
