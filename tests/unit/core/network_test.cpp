#include "recibo/core/network.hpp"

#include <gtest/gtest.h>

namespace recibo {
namespace {

TEST(Network, ReadsNetworks) {
  const auto ten = parse_network("10.0.0.0/8");
  ASSERT_TRUE(ten);
  EXPECT_TRUE(ten->contains(*parse_ip("10.255.1.2")));
  EXPECT_FALSE(ten->contains(*parse_ip("11.0.0.0")));
  const auto local = parse_network("fd00::/8");
  ASSERT_TRUE(local);
  EXPECT_TRUE(local->contains(*parse_ip("fdff::1")));
  EXPECT_FALSE(local->contains(*parse_ip("fc00::1")));
  EXPECT_TRUE(parse_network("192.168.1.7")->contains(*parse_ip("192.168.1.7")));
  EXPECT_FALSE(parse_network("192.168.1.7")->contains(*parse_ip("192.168.1.6")));
  for (const auto bad :
       {"", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0/8", "ledger/8", "fd00::/129", "10.0.0.0/8x"})
    EXPECT_FALSE(parse_network(bad)) << bad;
}

TEST(Network, PrefixesNeedNotEndAtAByte) {
  const auto twelve = *parse_network("172.16.0.0/12");
  EXPECT_TRUE(twelve.contains(*parse_ip("172.31.255.255")));
  EXPECT_FALSE(twelve.contains(*parse_ip("172.32.0.0")));
}

TEST(Network, MappedAddressesAreIpv4) {
  EXPECT_EQ(parse_ip("::ffff:10.0.0.1"), parse_ip("10.0.0.1"));
  EXPECT_TRUE(is_v4(*parse_ip("::ffff:10.0.0.1")));
  EXPECT_FALSE(is_v4(*parse_ip("::1")));
  EXPECT_TRUE(parse_network("10.0.0.0/8")->contains(*parse_ip("::ffff:10.9.9.9")));
  EXPECT_TRUE(parse_network("::ffff:10.0.0.0/104")->contains(*parse_ip("10.9.9.9")));
}

TEST(Network, NoNetworkOfOneFamilyHoldsTheOther) {
  EXPECT_TRUE(parse_network("0.0.0.0/0")->contains(*parse_ip("8.8.8.8")));
  EXPECT_FALSE(parse_network("0.0.0.0/0")->contains(*parse_ip("2001:db8::1")));
  EXPECT_TRUE(parse_network("::/0")->contains(*parse_ip("2001:db8::1")));
  EXPECT_FALSE(parse_network("::/0")->contains(*parse_ip("8.8.8.8")));
}

TEST(Network, WhatIsNoAddressIsRefused) {
  for (const std::string_view bad :
       {std::string_view(""), std::string_view("10.0.0"), std::string_view("10.0.0.256"), std::string_view("2130706433"),
        std::string_view("0x7f.0.0.1"), std::string_view("[::1]"), std::string_view("fe80::1%eth0"),
        std::string_view(" 10.0.0.1"), std::string_view("10.0.0.1:80"), std::string_view("10.0.0.1\0", 9),
        std::string_view("010.0.0.1")})
    EXPECT_FALSE(parse_ip(bad)) << bad;
}

TEST(Network, EndpointsHaveAPortOrNone) {
  EXPECT_EQ(parse_ip_endpoint("10.0.0.9"), (ip_endpoint{*parse_ip("10.0.0.9"), 0}));
  EXPECT_EQ(parse_ip_endpoint("10.0.0.9:8443"), (ip_endpoint{*parse_ip("10.0.0.9"), 8443}));
  EXPECT_EQ(parse_ip_endpoint("fd00::9"), (ip_endpoint{*parse_ip("fd00::9"), 0}));
  EXPECT_EQ(parse_ip_endpoint("[fd00::9]:443"), (ip_endpoint{*parse_ip("fd00::9"), 443}));
  for (const auto text : {"10.0.0.9", "10.0.0.9:8443", "fd00::9", "[fd00::9]:443"})
    EXPECT_EQ(to_string(*parse_ip_endpoint(text)), text);
  for (const auto bad : {"", ":443", "10.0.0.9:", "10.0.0.9:0", "10.0.0.9:65536", "10.0.0.9:8x", "10.0.0.9:-1", "[10.0.0.9]:443",
                         "[fd00::9]", "[fd00::9", "[fd00::9]443", "host:443", "10.0.0.9/8", "10.0.0.9: 443"})
    EXPECT_FALSE(parse_ip_endpoint(bad)) << bad;
}

TEST(Network, WritesWhatItReads) {
  for (const auto text : {"10.0.0.0/8", "0.0.0.0/0", "192.168.1.7", "fd00::/8", "::/0", "2001:db8::1"})
    EXPECT_EQ(to_string(*parse_network(text)), text);
  EXPECT_EQ(to_string(*parse_ip("::ffff:10.0.0.1")), "10.0.0.1");
  EXPECT_EQ(to_string(*parse_ip("2001:0db8:0:0:0:0:0:1")), "2001:db8::1");
}

TEST(Network, OneOfSeveralIsEnough) {
  const network some[] = {*parse_network("10.0.0.0/8"), *parse_network("fd00::/8")};
  EXPECT_TRUE(contains(some, *parse_ip("fd12::1")));
  EXPECT_FALSE(contains(some, *parse_ip("192.168.0.1")));
  EXPECT_FALSE(contains({}, *parse_ip("10.0.0.1")));
}

// The edges of each network, and each form in which IPv6 carries an IPv4 address.
TEST(Network, KnowsWhatMustNotBeReached) {
  for (const auto never : {"0.0.0.0",
                           "0.255.255.255",
                           "169.254.0.0",
                           "169.254.169.254",
                           "169.254.255.255",
                           "224.0.0.1",
                           "239.255.255.255",
                           "240.0.0.0",
                           "255.255.255.255",
                           "100.100.100.200",
                           "168.63.129.16",
                           "192.0.0.192",
                           "::",
                           "fe80::1",
                           "febf::1",
                           "ff02::1",
                           "100::1",
                           "4000::1",
                           "fd00:ec2::254",
                           "fd20:ce::254",
                           "::ffff:169.254.169.254",
                           "::169.254.169.254",
                           "64:ff9b::169.254.169.254",
                           "64:ff9b:1::169.254.169.254",
                           "2002:a9fe:a9fe::1",
                           "64:ff9b::a9fe:a9fe"})
    EXPECT_EQ(classify(*parse_ip(never)), reach::never) << never;
  for (const auto guarded : {"127.0.0.1",         "127.255.255.255",
                             "10.0.0.0",          "10.255.255.255",
                             "172.16.0.0",        "172.31.255.255",
                             "192.168.0.0",       "192.168.255.255",
                             "100.64.0.0",        "100.127.255.255",
                             "192.0.0.1",         "192.0.2.1",
                             "198.18.0.1",        "198.19.255.255",
                             "198.51.100.7",      "203.0.113.255",
                             "192.88.99.1",       "::1",
                             "fc00::1",           "fd00::1",
                             "fec0::1",           "2001:db8::1",
                             "2001::1",           "2001:10::1",
                             "3fff::1",           "64:ff9b:1::1.1.1.1",
                             "::ffff:10.0.0.1",   "::ffff:127.0.0.1",
                             "64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1",
                             "2002:7f00:1::1",    "2002:a00:1::",
                             "::127.0.0.1"})
    EXPECT_EQ(classify(*parse_ip(guarded)), reach::guarded) << guarded;
  for (const auto open :
       {"8.8.8.8",         "1.0.0.0",          "9.255.255.255",   "11.0.0.0",      "100.63.255.255",  "100.128.0.0",
        "126.255.255.255", "128.0.0.0",        "169.253.255.255", "169.255.0.0",   "172.15.255.255",  "172.32.0.0",
        "192.167.255.255", "192.169.0.0",      "198.17.255.255",  "198.20.0.0",    "223.255.255.255", "2606:4700::1111",
        "2a00::1",         "64:ff9b::8.8.8.8", "2002:808:808::1", "::ffff:8.8.8.8"})
    EXPECT_EQ(classify(*parse_ip(open)), reach::open) << open;
}

TEST(Network, AListOpensWhatIsGuardedAndNothingElse) {
  const network all[] = {*parse_network("0.0.0.0/0"), *parse_network("::/0")};
  const network ten[] = {*parse_network("10.0.0.0/8")};
  EXPECT_TRUE(may_reach(*parse_ip("8.8.8.8"), {}));
  EXPECT_FALSE(may_reach(*parse_ip("10.0.0.1"), {}));
  EXPECT_TRUE(may_reach(*parse_ip("10.0.0.1"), ten));
  EXPECT_FALSE(may_reach(*parse_ip("127.0.0.1"), ten));
  // A form that carries 10.0.0.1 is another address: it has to be named itself.
  EXPECT_FALSE(may_reach(*parse_ip("64:ff9b::10.0.0.1"), ten));
  EXPECT_TRUE(may_reach(*parse_ip("127.0.0.1"), all));
  EXPECT_TRUE(may_reach(*parse_ip("::1"), all));
  EXPECT_FALSE(may_reach(*parse_ip("169.254.169.254"), all));
  EXPECT_FALSE(may_reach(*parse_ip("64:ff9b::169.254.169.254"), all));
}

}  // namespace
}  // namespace recibo
