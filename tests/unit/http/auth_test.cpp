#include "recibo/http/auth.hpp"

#include "recibo/core/digest.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace recibo::http {
namespace {

using config::role;

const sys_micros noon{std::chrono::seconds(1'790'848'800)};

config::token token(std::string name, role r, std::string text) {
  config::token made;
  made.name = std::move(name);
  made.role = r;
  made.sha256 = to_hex(binary(sha256(text)));
  return made;
}

std::vector<config::token> tokens() {
  std::vector<config::token> made{token("ops", role::operator_, "ops-token"), token("checkout", role::client, "checkout-token"),
                                  token("old", role::admin, "old-token")};
  made[0].payload = true;
  made[2].expires = noon;
  return made;
}

result<principal> ask(header_list headers, sys_micros at = noon) { return authenticate(headers, tokens(), at); }

TEST(Auth, ATokenNamesItsPrincipal) {
  const auto ops = ask({{"authorization", "Bearer ops-token"}});
  ASSERT_TRUE(ops);
  EXPECT_EQ(ops->name, "ops");
  EXPECT_EQ(ops->role, role::operator_);
  EXPECT_TRUE(ops->payload);
  EXPECT_FALSE(ops->client);
  const auto checkout = ask({{"Authorization", "bearer   checkout-token"}});
  ASSERT_TRUE(checkout);
  EXPECT_EQ(checkout->client, "checkout");
  EXPECT_FALSE(checkout->payload);
}

TEST(Auth, AnythingElseIsUnauthorizedAndReadsTheSame) {
  const std::string digest = to_hex(binary(sha256("ops-token")));
  const header_list rows[] = {
      {},
      {{"Authorization", ""}},
      {{"Authorization", "Bearer"}},
      {{"Authorization", "Bearer "}},
      {{"Authorization", "ops-token"}},
      {{"Authorization", "Basic ops-token"}},
      {{"Authorization", "Bearerops-token"}},
      {{"Authorization", "Bearer ops-token x"}},
      {{"Authorization", "Bearer ops-tokem"}},
      {{"Authorization", "Bearer " + digest}},
      {{"Authorization", "Bearer \"ops-token\""}},
      {{"Authorization", "Bearer ops-token"}, {"authorization", "Bearer ops-token"}},
      {{"Authorization", "Bearer old-token"}},
      {{"X-Authorization", "Bearer ops-token"}},
  };
  for (const auto& headers : rows) {
    const auto got = ask(headers);
    ASSERT_FALSE(got);
    EXPECT_EQ(got.error().code, make_error_code(permanent::unauthorized));
    EXPECT_EQ(got.error().detail, ask({}).error().detail);
  }
}

TEST(Auth, ATokenIsValidUntilItExpires) {
  EXPECT_TRUE(ask({{"Authorization", "Bearer old-token"}}, noon - std::chrono::microseconds(1)));
  EXPECT_FALSE(ask({{"Authorization", "Bearer old-token"}}, noon));
}

TEST(Auth, WithoutTokensNobodyEnters) { EXPECT_FALSE(authenticate({{"Authorization", "Bearer x"}}, {}, noon)); }

// A digest that is missing in the configuration must not match anything.
TEST(Auth, AnEmptyDigestMatchesNothing) {
  std::vector<config::token> broken{token("x", role::admin, "y")};
  broken[0].sha256.clear();
  EXPECT_FALSE(authenticate({{"Authorization", "Bearer x"}}, broken, noon));
}

TEST(Auth, RolesAreOrderedAndClientStandsApart) {
  const role order[] = {role::support, role::reader, role::operator_, role::admin};
  for (int held = 0; held < 4; ++held) {
    for (int least = 0; least < 4; ++least) EXPECT_EQ(permits(order[held], order[least]), held >= least);
    EXPECT_FALSE(permits(order[held], role::client));
    EXPECT_FALSE(permits(role::client, order[held]));
  }
  EXPECT_TRUE(permits(role::client, role::client));
}

TEST(Auth, ARefusalNamesWhatIsNeeded) {
  const auto ops = ask({{"Authorization", "Bearer ops-token"}}).value();
  EXPECT_TRUE(require_role(ops, role::reader));
  EXPECT_TRUE(require_payload(ops));
  const auto refused = require_role(ops, role::admin);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, make_error_code(permanent::forbidden));
  EXPECT_EQ(refused.error().detail, "This needs the role admin; the token has operator.");
  const auto checkout = ask({{"Authorization", "Bearer checkout-token"}}).value();
  EXPECT_EQ(require_payload(checkout).error().code, make_error_code(permanent::forbidden));
}

}  // namespace
}  // namespace recibo::http
