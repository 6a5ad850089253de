#include "../../../src/postgres/conninfo.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace recibo::postgres {
namespace {

std::vector<target> targets_of(const char* url) {
  const auto parsed = conninfo::parse(secret(url));
  return parsed ? parsed->targets() : std::vector<target>();
}

std::string option(const conninfo& from, const std::string& keyword) {
  std::string found = "(none)";
  for (const auto& [k, v] : from.options_for(from.targets().front(), from.passes().front())) {
    if (k == keyword) found = v;
  }
  return found;
}

TEST(Conninfo, SeveralHostsEachWithItsPort) {
  const auto t = targets_of("postgresql://u:p@first:5433,10.0.0.2,[::1]:5434/db");
  ASSERT_EQ(t.size(), 3U);
  EXPECT_EQ(t[0].host, "first");
  EXPECT_EQ(t[0].port, "5433");
  EXPECT_TRUE(t[0].needs_lookup());
  EXPECT_EQ(t[1].host, "10.0.0.2");
  EXPECT_EQ(t[1].port, "");
  EXPECT_FALSE(t[1].needs_lookup());
  EXPECT_EQ(t[2].host, "::1");
  EXPECT_EQ(t[2].port, "5434");
  EXPECT_FALSE(t[2].needs_lookup());
}

TEST(Conninfo, OnePortServesAllHosts) {
  const auto t = targets_of("host=a,b port=6000");
  ASSERT_EQ(t.size(), 2U);
  EXPECT_EQ(t[1].port, "6000");
}

TEST(Conninfo, AddressesAndSocketsAreNotLookedUp) {
  for (const auto* url :
       {"host=db hostaddr=10.0.0.1", "hostaddr=10.0.0.1", "host=/run/postgresql", "host=@abstract", "dbname=x host=''"}) {
    const auto t = targets_of(url);
    ASSERT_EQ(t.size(), 1U) << url;
    EXPECT_FALSE(t[0].needs_lookup()) << url;
  }
}

TEST(Conninfo, WhatCannotBeReadIsRefusedAndNotQuoted) {
  for (const auto* url : {"postgresql://u:hunter2@h:1%zz/db", "postgresql://u:hunter2@[::1/db", "hunter2",
                          "host=a,b port=1,2,3 password=hunter2", "host=a,b hostaddr=10.0.0.1 password=hunter2"}) {
    const auto parsed = conninfo::parse(secret(url));
    ASSERT_FALSE(parsed) << url;
    EXPECT_EQ(parsed.error().code, permanent::invalid_configuration) << url;
    EXPECT_EQ(parsed.error().detail.find("hunter2"), std::string::npos) << url;
  }
}

TEST(Conninfo, AsksForAServerThatWritesUnlessTheUrlSaysOtherwise) {
  EXPECT_EQ(conninfo::parse(secret("host=a"))->passes(), std::vector<std::string>{"read-write"});
  EXPECT_EQ(conninfo::parse(secret("host=a target_session_attrs=any"))->passes(), std::vector<std::string>{"any"});
  EXPECT_EQ(conninfo::parse(secret("host=a target_session_attrs=prefer-standby"))->passes(),
            (std::vector<std::string>{"standby", "any"}));
}

TEST(Conninfo, DefaultsGiveWayToTheUrl) {
  const auto plain = conninfo::parse(secret("postgresql://u:p@h/db"));
  EXPECT_EQ(option(*plain, "tcp_user_timeout"), "10000");
  EXPECT_EQ(option(*plain, "fallback_application_name"), "recibo");
  EXPECT_EQ(option(*plain, "password"), "p");
  const auto own = conninfo::parse(secret("postgresql://u@h/db?tcp_user_timeout=3000&keepalives=0&application_name=mine"));
  EXPECT_EQ(option(*own, "tcp_user_timeout"), "3000");
  EXPECT_EQ(option(*own, "keepalives"), "0");
  EXPECT_EQ(option(*own, "application_name"), "mine");
}

TEST(Conninfo, TellsWhichServerParametersTheUrlSets) {
  const auto own = conninfo::parse(secret("host=h options='-c statement_timeout=9s'"));
  EXPECT_TRUE(own->sets("statement_timeout"));
  EXPECT_FALSE(own->sets("idle_in_transaction_session_timeout"));
}

TEST(Conninfo, ConnectTimeoutIsRead) {
  EXPECT_EQ(conninfo::parse(secret("host=h connect_timeout=3"))->connect_timeout(), 3);
  EXPECT_EQ(conninfo::parse(secret("host=h connect_timeout=0"))->connect_timeout(), std::nullopt);
  EXPECT_EQ(conninfo::parse(secret("host=h"))->connect_timeout(), std::nullopt);
}

}  // namespace
}  // namespace recibo::postgres
