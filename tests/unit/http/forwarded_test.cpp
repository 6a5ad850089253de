#include "../../../src/http/forwarded.hpp"

#include <gtest/gtest.h>

#include <stdexcept>

namespace recibo::http {
namespace {

std::string client(const char* socket, header_list headers, const std::vector<std::string>& trusted) {
  return client_address(boost::asio::ip::make_address(socket), headers, trusted_networks(trusted));
}

TEST(Forwarded, TheLastAddressThatIsNotTrustedIsTheClient) {
  const std::vector<std::string> trusted{"10.0.0.0/8", "192.168.1.7", "fd00::/8"};
  struct row {
    const char* socket;
    header_list headers;
    const char* client;
  };
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
      {"10.0.0.1", {{"X-Forwarded-For", "2001:db8::1"}}, "2001:db8::1"},
      {"::ffff:10.0.0.1", {{"X-Forwarded-For", "::ffff:1.2.3.4"}}, "1.2.3.4"},
      {"::ffff:203.0.113.1", {}, "203.0.113.1"},
      {"fd12::1", {{"X-Forwarded-For", "1.2.3.4"}}, "1.2.3.4"},
      {"fe00::1", {{"X-Forwarded-For", "1.2.3.4"}}, "fe00::1"},
      {"192.168.1.8", {{"X-Forwarded-For", "1.2.3.4"}}, "192.168.1.8"},
  };
  for (const row& r : rows) EXPECT_EQ(client(r.socket, r.headers, trusted), r.client) << r.socket;
}

TEST(Forwarded, PrefixesNeedNotEndAtAByte) {
  EXPECT_EQ(client("172.31.255.255", {{"X-Forwarded-For", "1.2.3.4"}}, {"172.16.0.0/12"}), "1.2.3.4");
  EXPECT_EQ(client("172.32.0.0", {{"X-Forwarded-For", "1.2.3.4"}}, {"172.16.0.0/12"}), "172.32.0.0");
  EXPECT_EQ(client("8.8.8.8", {{"X-Forwarded-For", "1.2.3.4"}}, {"0.0.0.0/0"}), "1.2.3.4");
}

TEST(Forwarded, WhatIsNoNetworkIsRefused) {
  for (const char* text :
       {"", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "10.0.0.0/8x", "10.0.0.0/-1", "host", "fd00::/129", "10.0.0/8"}) {
    EXPECT_THROW(trusted_networks({text}), std::invalid_argument) << text;
  }
}

}  // namespace
}  // namespace recibo::http
