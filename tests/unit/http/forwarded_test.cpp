#include "../../../src/http/forwarded.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace recibo::http {
namespace {

using which = config::forwarded_headers;

std::vector<network> networks(const std::vector<std::string>& texts) {
  std::vector<network> out;
  for (const auto& text : texts) out.push_back(*parse_network(text));
  return out;
}

const std::vector<network> trusted = networks({"10.0.0.0/8", "192.168.1.7", "fd00::/8"});

client_view view(const char* socket, const header_list& headers, which of = which::any) {
  return view_client(*parse_ip(socket), headers, trusted, of);
}

struct row {
  const char* socket;
  header_list headers;
  const char* client;
};

TEST(Forwarded, TheLastAddressThatIsNotTrustedIsTheClient) {
  const row rows[] = {
      {"203.0.113.1", {{"X-Forwarded-For", "1.2.3.4"}}, "203.0.113.1"},
      {"10.0.0.1", {}, "10.0.0.1"},
      {"10.0.0.1", {{"x-forwarded-for", "1.2.3.4"}}, "1.2.3.4"},
      {"10.0.0.1", {{"X-Forwarded-For", "9.9.9.9, 1.2.3.4"}}, "1.2.3.4"},
      {"10.0.0.1", {{"X-Forwarded-For", "1.2.3.4,10.9.9.9 , 192.168.1.7"}}, "1.2.3.4"},
      {"10.0.0.1", {{"X-Forwarded-For", "9.9.9.9"}, {"X-Other", "8.8.8.8"}, {"X-Forwarded-For", "1.2.3.4"}}, "1.2.3.4"},
      {"10.0.0.1", {{"X-Forwarded-For", "10.0.0.3, 10.0.0.2"}}, "10.0.0.3"},
      {"10.0.0.1", {{"X-Forwarded-For", "1.2.3.4, unknown"}}, "10.0.0.1"},
      {"10.0.0.1", {{"X-Forwarded-For", "1.2.3.4, 10.0.0.2, x"}}, "10.0.0.1"},
      {"10.0.0.1", {{"X-Forwarded-For", ""}}, "10.0.0.1"},
      {"10.0.0.1", {{"X-Forwarded-For", "1.2.3.4,"}}, "10.0.0.1"},
      {"10.0.0.1", {{"X-Forwarded-For", "2001:db8::1"}}, "2001:db8::1"},
      {"10.0.0.1", {{"X-Forwarded-For", "1.2.3.4:5678"}}, "1.2.3.4"},
      {"10.0.0.1", {{"X-Forwarded-For", "[2001:db8::1]:5678"}}, "2001:db8::1"},
      {"10.0.0.1", {{"X-Forwarded-For", "[2001:db8::1]x"}}, "10.0.0.1"},
      {"::ffff:10.0.0.1", {{"X-Forwarded-For", "::ffff:1.2.3.4"}}, "1.2.3.4"},
      {"::ffff:203.0.113.1", {}, "203.0.113.1"},
      {"fd12::1", {{"X-Forwarded-For", "1.2.3.4"}}, "1.2.3.4"},
      {"fe00::1", {{"X-Forwarded-For", "1.2.3.4"}}, "fe00::1"},
      {"192.168.1.8", {{"X-Forwarded-For", "1.2.3.4"}}, "192.168.1.8"},
      {"203.0.113.1", {{"Forwarded", "for=1.2.3.4"}}, "203.0.113.1"},
      {"10.0.0.1", {{"Forwarded", "for=1.2.3.4"}}, "1.2.3.4"},
      {"10.0.0.1", {{"forwarded", "For=9.9.9.9, proto=http;for=1.2.3.4;by=10.0.0.1"}}, "1.2.3.4"},
      {"10.0.0.1", {{"Forwarded", "for=\"[2001:db8::1]:4711\""}}, "2001:db8::1"},
      {"10.0.0.1", {{"Forwarded", "for=\"1.2.3.4:80\" , for=10.0.0.2"}}, "1.2.3.4"},
      {"10.0.0.1", {{"Forwarded", "for=9.9.9.9"}, {"Forwarded", "for=1.2.3.4"}}, "1.2.3.4"},
      {"10.0.0.1", {{"Forwarded", "for=1.2.3.4, for=unknown"}}, "10.0.0.1"},
      {"10.0.0.1", {{"Forwarded", "for=1.2.3.4, for=_hidden"}}, "10.0.0.1"},
      {"10.0.0.1", {{"Forwarded", "for=1.2.3.4, proto=https"}}, "10.0.0.1"},
      {"10.0.0.1", {{"Forwarded", "for=1.2.3.4, for=\"10.0.0.2"}}, "10.0.0.1"},
      {"10.0.0.1", {{"Forwarded", "for=1.2.3.4, nonsense"}}, "10.0.0.1"},
      {"10.0.0.1", {{"Forwarded", "host=\"a,for=9.9.9.9\";for=1.2.3.4"}}, "1.2.3.4"},
  };
  for (const row& r : rows)
    EXPECT_EQ(to_string(view(r.socket, r.headers).address), r.client)
        << r.socket << (r.headers.empty() ? "" : r.headers.front().second);
}

// A proxy writes one kind and passes the other on: a stranger's Forwarded must not win over our proxy's X-Forwarded-For.
TEST(Forwarded, TwoKindsThatDifferCountForNothing) {
  const header_list both{{"X-Forwarded-For", "1.2.3.4"}, {"Forwarded", "for=9.9.9.9"}};
  EXPECT_EQ(to_string(view("10.0.0.1", both).address), "10.0.0.1");
  EXPECT_EQ(to_string(view("10.0.0.1", both, which::x_forwarded).address), "1.2.3.4");
  EXPECT_EQ(to_string(view("10.0.0.1", both, which::forwarded).address), "9.9.9.9");
  const header_list agree{{"X-Forwarded-For", "1.2.3.4"}, {"Forwarded", "for=1.2.3.4;proto=https;host=a.example"}};
  EXPECT_EQ(to_string(view("10.0.0.1", agree).address), "1.2.3.4");
  EXPECT_EQ(view("10.0.0.1", agree).origin, "https://a.example");
}

TEST(Forwarded, TheOriginIsTheOneThatTheOutermostTrustedProxySaw) {
  struct origin_row {
    const char* socket;
    header_list headers;
    const char* origin;
  };
  const origin_row rows[] = {
      {"203.0.113.1", {{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Host", "evil.example"}}, ""},
      {"10.0.0.1", {{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Host", "a.example"}}, "https://a.example"},
      {"10.0.0.1", {{"X-Forwarded-Proto", "https"}, {"Host", "b.example:8443"}}, "https://b.example:8443"},
      {"10.0.0.1", {{"Host", "b.example"}}, ""},
      {"10.0.0.1", {{"X-Forwarded-Host", "a.example"}}, ""},
      {"10.0.0.1", {{"X-Forwarded-Proto", "ftp"}, {"X-Forwarded-Host", "a.example"}}, ""},
      {"10.0.0.1", {{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Host", "a.example/x"}}, ""},
      {"10.0.0.1", {{"X-Forwarded-Proto", "https"}, {"X-Forwarded-Host", "a@b"}}, ""},
      {"10.0.0.1",
       {{"X-Forwarded-For", "1.2.3.4, 10.0.0.2"}, {"X-Forwarded-Proto", "https, http"}, {"X-Forwarded-Host", "a.example, inner"}},
       "https://a.example"},
      {"10.0.0.1",
       {{"X-Forwarded-For", "9.9.9.9, 1.2.3.4"},
        {"X-Forwarded-Proto", "http, https"},
        {"X-Forwarded-Host", "evil.example, a.example"}},
       "https://a.example"},
      {"10.0.0.1",
       {{"Forwarded", "for=9.9.9.9;host=evil.example;proto=http, for=1.2.3.4;host=a.example;proto=https, for=10.0.0.2"}},
       "https://a.example"},
      {"10.0.0.1", {{"Forwarded", "for=1.2.3.4;host=\"a.example:8443\";proto=https"}}, "https://a.example:8443"},
      {"10.0.0.1",
       {{"Forwarded", "for=1.2.3.4;host=a.example;proto=https, for=10.0.0.2;proto=http;host=inner"}},
       "https://a.example"},
  };
  for (const origin_row& r : rows) EXPECT_EQ(view(r.socket, r.headers).origin, r.origin) << r.headers.front().second;
}

TEST(Forwarded, NobodyIsTrustedUnlessSaid) {
  EXPECT_EQ(to_string(view_client(*parse_ip("127.0.0.1"), {{"X-Forwarded-For", "1.2.3.4"}}, {}, which::any).address),
            "127.0.0.1");
}

}  // namespace
}  // namespace recibo::http
