#include "recibo/observe/log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace recibo {
namespace {

using log::format;
using log::level;
using testing::HasSubstr;
using testing::Not;

constexpr std::string_view at = "2026-10-01T10:00:00.000000Z";

std::string json(std::string_view message, log::fields with = {}) {
  return log::render(format::json, level::info, at, message, with);
}

TEST(Log, FieldsFollowTimeLevelAndMessageInTheOrderGiven) {
  EXPECT_EQ(
      json("listening", {{"port", 8080}, {"name", "api"}, {"share", 0.5}, {"tls", false}}),
      R"({"time":"2026-10-01T10:00:00.000000Z","level":"info","msg":"listening","port":8080,"name":"api","share":0.5,"tls":false})");
}

TEST(Log, IntegersKeepEveryDigit) {
  EXPECT_THAT(
      json("n", {{"least", std::numeric_limits<std::int64_t>::min()}, {"most", std::numeric_limits<std::uint64_t>::max()}}),
      HasSubstr(R"("least":-9223372036854775808,"most":18446744073709551615)"));
}

TEST(Log, NumbersThatJsonCannotHoldAreText) {
  EXPECT_THAT(json("n", {{"a", std::numeric_limits<double>::infinity()}, {"b", std::numeric_limits<double>::quiet_NaN()}}),
              HasSubstr(R"("a":"inf","b":"nan")"));
}

// K30, S40: foreign text forges no line and no field and moves no terminal.
TEST(Log, ForeignTextStaysOneValue) {
  struct row {
    const char* name;
    std::string value;
    std::string written;
  };
  const row rows[] = {
      {"forged line", "x\n{\"level\":\"info\",\"msg\":\"forged\"}", R"("x\n{\"level\":\"info\",\"msg\":\"forged\"}")"},
      {"escape sequence", "\x1b[31m", R"("\u001b[31m")"},
      {"delete", "\x7f", R"("\u007f")"},
      {"control of ISO 6429 as UTF-8",
       "\xc2\x9b"
       "31m",
       R"("\u009b31m")"},
      {"next line",
       "a\xc2\x85"
       "b",
       R"("a\u0085b")"},
      {"line separator",
       "a\xe2\x80\xa8"
       "b\xe2\x80\xa9",
       R"("a\u2028b\u2029")"},
      {"NUL", std::string("a\0b", 3), R"("a\u0000b")"},
      {"text of other languages", "héllo 😊", R"("héllo 😊")"},
  };
  for (const row& r : rows) {
    for (const format how : {format::json, format::text}) {
      const std::string line = log::render(how, level::warn, at, "m", {{"v", r.value}});
      EXPECT_THAT(line, HasSubstr(r.written)) << r.name;
      for (const char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << r.name;
    }
  }
}

TEST(Log, BrokenUtf8BecomesTheReplacementCharacter) {
  EXPECT_THAT(json("m", {{"v", "a\xff"}}), HasSubstr("\"v\":\"a\xef\xbf\xbd\""));
}

TEST(Log, LongValuesAreCutAtACharacter) {
  const std::string line = json("m", {{"v", std::string(log::value_limit - 1, 'a') + "é" + std::string(500, 'b')}});
  EXPECT_THAT(line, HasSubstr(std::string(log::value_limit - 1, 'a') + "…\"}"));
  const std::string whole = json("m", {{"v", std::string(log::value_limit, 'a')}});
  EXPECT_THAT(whole, Not(HasSubstr("…")));
  const std::string broken = json("m", {{"v", std::string(5000, '\x80')}});
  EXPECT_LT(broken.size(), 3 * log::value_limit + 200);
}

TEST(Log, TextFormatIsTimeLevelMessageFields) {
  EXPECT_EQ(log::render(format::text, level::warn, at, "clock in doubt", {{"skew_ms", 1500}, {"peer", "a b"}}),
            "2026-10-01T10:00:00.000000Z warn  clock in doubt skew_ms=1500 peer=\"a b\"");
}

class LogStream : public testing::Test {
 protected:
  void TearDown() override { log::init(level::info, format::json); }
};

TEST_F(LogStream, WritesOneLineForEachRecordOfTheLevel) {
  log::init("warn", "json");
  EXPECT_TRUE(log::enabled(level::error));
  EXPECT_FALSE(log::enabled(level::info));
  testing::internal::CaptureStderr();
  log::info("not written");
  log::warn("written", {{"n", 1}});
  log::error("too");
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
  EXPECT_THAT(lines, testing::MatchesRegex("\\{\"time\":\"[0-9]+-[0-9]+-[0-9]+T[0-9:]+\\.[0-9][0-9][0-9][0-9][0-9][0-9]Z\","
                                           "\"level\":\"warn\",.*\n\\{.*\"msg\":\"too\"\\}\n"));
}

TEST_F(LogStream, GoesToTheStreamAskedFor) {
  log::init(level::info, format::text, log::stream::standard_output);
  testing::internal::CaptureStdout();
  log::info("here {} %v");
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("info  here {} %v\n"));
}

TEST_F(LogStream, UnknownWordsLeaveTheSettings) {
  log::init("loud", "xml");
  EXPECT_TRUE(log::enabled(level::info));
  EXPECT_FALSE(log::enabled(level::debug));
}

TEST_F(LogStream, OffWritesNothing) {
  log::init("off", "json");
  testing::internal::CaptureStderr();
  log::error("not written");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace recibo
