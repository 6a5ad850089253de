#include "recibo/core/url.hpp"

#include <gtest/gtest.h>

namespace recibo {
namespace {

TEST(Url, IsTakenApart) {
  struct row {
    const char *text, *host;
    std::uint16_t port;
    const char *target, *authority, *origin;
  };
  const row rows[] = {
      {"https://ledger.internal:8443/hooks?a=b", "ledger.internal", 8443, "/hooks?a=b", "ledger.internal:8443",
       "https://ledger.internal:8443"},
      {"https://Ledger.Test", "ledger.test", 443, "/", "ledger.test", "https://ledger.test"},
      {"https://ledger.test:443/", "ledger.test", 443, "/", "ledger.test", "https://ledger.test"},
      {"http://ledger.test:443/", "ledger.test", 443, "/", "ledger.test:443", "http://ledger.test:443"},
      {"https://ledger.test./a", "ledger.test", 443, "/a", "ledger.test", "https://ledger.test"},
      {"https://ledger?x", "ledger", 443, "/?x", "ledger", "https://ledger"},
      {"http://[FD00::0:1]:81/x", "fd00::1", 81, "/x", "[fd00::1]:81", "http://[fd00::1]:81"},
      {"http://10.0.0.1", "10.0.0.1", 80, "/", "10.0.0.1", "http://10.0.0.1"},
      {"https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443, "/", "xn--bcher-kva.example",
       "https://xn--bcher-kva.example"},
      {"https://ledger/a/../b//c;d?e=%20/?@", "ledger", 443, "/a/../b//c;d?e=%20/?@", "ledger", "https://ledger"},
  };
  for (const row& r : rows) {
    const auto read = parse_http_url(r.text);
    ASSERT_TRUE(read.url) << r.text << ": " << read.why;
    EXPECT_EQ(read.url->host, r.host) << r.text;
    EXPECT_EQ(read.url->port, r.port) << r.text;
    EXPECT_EQ(read.url->target, r.target) << r.text;
    EXPECT_EQ(read.url->authority(), r.authority) << r.text;
    EXPECT_EQ(read.url->origin(), r.origin) << r.text;
  }
}

TEST(Url, RefusesWhatCouldGoElsewhere) {
  for (const auto bad : {"",
                         "ledger",
                         "/hooks",
                         "//ledger/",
                         "ftp://ledger.test/",
                         "file:///etc/passwd",
                         "gopher://ledger/",
                         "HTTPS://ledger/",
                         "https:ledger",
                         "https://",
                         "https:///x",
                         "https://user:pw@ledger.test/",
                         "https://user@ledger/",
                         "https://ledger.test:443@evil/",
                         "https://ledger/#x",
                         "https://ledger#@evil/",
                         "https://ledger\\@evil/",
                         "https://led ger/",
                         "https://led\tger/",
                         "https://ledger/a\r\nHost: evil",
                         "https://ledger/\x7f",
                         "https://lédger/",
                         "https://ledger/é",
                         "https://ledger\xe3\x80\x82test/",
                         "https://ledger:0/",
                         "https://ledger:99999/",
                         "https://ledger:/",
                         "https://ledger:80x/",
                         "https://ledger:+80/",
                         "https://ledger:80:81/",
                         "https://[fd00::1/",
                         "https://[ledger]/",
                         "https://[::1]x/",
                         "https://[fe80::1%25lo]/",
                         "https://[127.0.0.1]/",
                         "https://fd00::1/",
                         "https://./",
                         "https://.ledger/",
                         "https://a..b/",
                         "https://ledger../",
                         "http://2130706433/",
                         "http://0x7f000001/",
                         "http://0x7f.1/",
                         "http://127.1/",
                         "http://127.1./",
                         "http://0177.0.0.1/",
                         "http://127.0.0.01/",
                         "http://169.254.169.254.1/",
                         "https://ledger%2f/",
                         "https://ledger%2e/"})
    EXPECT_FALSE(parse_http_url(bad).url) << bad;
  EXPECT_FALSE(parse_http_url(std::string_view("https://ledger/\0", 16)).url);
}

TEST(Url, TheReasonHoldsNothingOfTheUrl) {
  const std::string why = parse_http_url("https://user:hunter2@ledger.test/").why;
  EXPECT_EQ(why.find("hunter2"), std::string::npos);
}

TEST(Url, PercentEncodingMakesOneSegment) {
  EXPECT_EQ(percent_encode("../../admin?b=c#d\r\n%"), "..%2F..%2Fadmin%3Fb%3Dc%23d%0D%0A%25");
  EXPECT_EQ(percent_encode("AZaz09-._~"), "AZaz09-._~");
}

// S39: whatever the value, the request goes to the template's host, and the value is one segment.
TEST(UrlTemplate, AValueStaysInItsSegment) {
  const auto how = url_template::parse("https://api.p1.test/operations/{reference}?at={request_id}", {"reference", "request_id"});
  ASSERT_TRUE(how) << how.error().detail;
  struct row {
    std::string_view value, target;
  };
  const row rows[] = {
      {"ch_1", "/operations/ch_1?at=r"},
      {"../../admin", "/operations/..%2F..%2Fadmin?at=r"},
      {"..%2f..%2fadmin", "/operations/..%252f..%252fadmin?at=r"},
      {"x@169.254.169.254/", "/operations/x%40169.254.169.254%2F?at=r"},
      {"//169.254.169.254/", "/operations/%2F%2F169.254.169.254%2F?at=r"},
      {"a?b=c#d", "/operations/a%3Fb%3Dc%23d?at=r"},
      {"%2e%2e", "/operations/%252e%252e?at=r"},
      {"{request_id}", "/operations/%7Brequest_id%7D?at=r"},
      {"é ", "/operations/%C3%A9%20?at=r"},
      {"...", "/operations/...?at=r"},
  };
  for (const row& r : rows) {
    const auto url = how->fill({{"reference", r.value}, {"request_id", "r"}});
    ASSERT_TRUE(url) << r.value << url.error().detail;
    EXPECT_EQ(url->target, r.target);
    EXPECT_EQ(url->host, "api.p1.test");
    EXPECT_EQ(url->port, 443);
  }
  EXPECT_EQ(how->fill({{"reference", "a"}, {"request_id", ".."}})->target, "/operations/a?at=..");
  for (const std::string_view bad : {"", ".", "..", "a\r\nHost: evil.example", "a\n", "\x7f", "a\tb"})
    EXPECT_FALSE(how->fill({{"reference", bad}, {"request_id", "r"}})) << bad;
  EXPECT_FALSE(how->fill({{"reference", "a"}}));
  EXPECT_EQ(how->gaps(), (std::vector<std::string>{"reference", "request_id"}));
}

TEST(UrlTemplate, APieceOfASegmentMayNotMakeItADotSegment) {
  const auto how = url_template::parse("https://h/x/.{a}/y", {"a"});
  ASSERT_TRUE(how);
  EXPECT_FALSE(how->fill({{"a", "."}}));
  EXPECT_EQ(how->fill({{"a", "json"}})->target, "/x/.json/y");
  const auto encoded = url_template::parse("https://h/%2E{a}", {"a"});
  ASSERT_TRUE(encoded);
  EXPECT_FALSE(encoded->fill({{"a", "."}}));
}

TEST(UrlTemplate, GapsStandWhereTheyCannotChangeTheHost) {
  for (const auto bad : {"https://{a}/", "https://x{a}.test/", "https://h:{a}/", "{a}://h/", "{a}", "https://h{a}",
                         "https://h/{b}", "https://h/{a", "https://h/a}", "https://h/{}", "https://h/{{a}}", "ftp://h/{a}",
                         "https://h/#{a}", "https://h/../{a}", "https://h/%2e%2E/{a}", "https://h/./x"})
    EXPECT_FALSE(url_template::parse(bad, {"a"})) << bad;
  EXPECT_EQ(url_template::parse("https://h?x={a}", {"a"})->fill({{"a", "1&y=2"}})->target, "/?x=1%26y%3D2");
  EXPECT_EQ(url_template::parse("https://h", {"a"})->fill({})->target, "/");
  EXPECT_EQ(url_template::parse("https://h/v1", {"a"})->fill({})->target, "/v1");
}

}  // namespace
}  // namespace recibo
