#include "../src/config/units.hpp"
#include "../src/config/url.hpp"

#include <gtest/gtest.h>

namespace recibo::config {
namespace {

using std::chrono::milliseconds;

TEST(Units, ReadsDurations) {
  EXPECT_EQ(parse_duration("500ms"), milliseconds(500));
  EXPECT_EQ(parse_duration("5m"), milliseconds(300'000));
  EXPECT_EQ(parse_duration("90d"), milliseconds(90ll * 86'400'000));
  EXPECT_EQ(parse_duration("0s"), milliseconds(0));
  for (const auto bad :
       {"", "5", "m", "-5m", "+5m", "5 m", "1.5h", "5M", "5min", "1h30m", "36501d", "99999999999999999999d", "0x5m"})
    EXPECT_FALSE(parse_duration(bad)) << bad;
}

TEST(Units, WritesTheShortestDuration) {
  EXPECT_EQ(duration_text(milliseconds(300'000)), "5m");
  EXPECT_EQ(duration_text(milliseconds(90'000)), "90s");
  EXPECT_EQ(duration_text(milliseconds(86'400'000)), "1d");
  EXPECT_EQ(duration_text(milliseconds(1'500)), "1500ms");
  EXPECT_EQ(duration_text(milliseconds(0)), "0s");
}

TEST(Units, ReadsSizes) {
  EXPECT_EQ(parse_size("1MiB"), 1u << 20);
  EXPECT_EQ(parse_size("8KiB"), 8192u);
  EXPECT_EQ(parse_size("512B"), 512u);
  EXPECT_EQ(size_text(1u << 20), "1MiB");
  EXPECT_EQ(size_text(1536), "1536B");
  for (const auto bad : {"", "1", "1MB", "1kB", "1M", "-1B", "1.5MiB", "1025GiB", "18446744073709551615GiB"})
    EXPECT_FALSE(parse_size(bad)) << bad;
}

TEST(Url, TakesHttpAndHttps) {
  const auto full = parse_http_url("https://ledger.internal:8443/hooks?a=b");
  ASSERT_TRUE(full.url) << full.why;
  EXPECT_EQ(full.url->host, "ledger.internal");
  EXPECT_EQ(full.url->port, 8443);
  EXPECT_TRUE(full.url->tls);
  EXPECT_EQ(parse_http_url("http://[fd00::1]/x").url->host, "fd00::1");
  EXPECT_EQ(parse_http_url("http://10.0.0.1").url->port, 80);
  EXPECT_TRUE(parse_http_url("https://ledger?x").url);
}

TEST(Url, RefusesWhatCouldGoElsewhere) {
  for (const auto bad : {"",
                         "ledger",
                         "/hooks",
                         "//ledger/",
                         "ftp://ledger.test/",
                         "HTTPS://ledger/",
                         "https:ledger",
                         "https://",
                         "https:///x",
                         "https://user:pw@ledger.test/",
                         "https://user@ledger/",
                         "https://ledger/#x",
                         "https://ledger\\@evil/",
                         "https://led ger/",
                         "https://lédger/",
                         "https://ledger:0/",
                         "https://ledger:99999/",
                         "https://ledger:/",
                         "https://ledger:80x/",
                         "https://[fd00::1/",
                         "https://[ledger]/",
                         "https://[::1]x/",
                         "https://.ledger/",
                         "https://a..b/",
                         "http://2130706433/",
                         "http://0x7f.1/",
                         "http://127.1/",
                         "http://169.254.169.254.1/",
                         "https://ledger%2f/"})
    EXPECT_FALSE(parse_http_url(bad).url) << bad;
}

}  // namespace
}  // namespace recibo::config
