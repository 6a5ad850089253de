#include "recibo/receive/kept_head.hpp"

#include "support.hpp"

namespace recibo::receive {
namespace {

using namespace testing;
using place = config::source::place;

http::request kept(const config::provider& how, const http::request& from) {
  http::request out;
  restore_head(keep_head(how, from), out);
  return out;
}

TEST(KeptHead, WhatACallbackSaysBesideItsBodyComesBack) {
  http::request from;
  from.query = "delivery=d%201&kind=paid";
  from.headers = {{"X-Event", "paid"}, {"Idempotency-Key", "k1"}, {"Idempotency-Key", "k2"}, {"webhook-id", "evt \"1\""}};
  const auto back = kept(p1(), from);
  EXPECT_EQ(back.query, from.query);
  EXPECT_EQ(back.headers, from.headers) << "one that stands twice too: that is what is wrong with it";
}

TEST(KeptHead, WhatAuthenticatesIsLeftOut) {
  for (const char* name : {"Authorization", "proxy-authorization", "COOKIE", "X-Signature", "Stripe-Signature",
                           "X-Hub-Signature-256", "x-webhook-token", "X-Gitlab-Token", "X-Api-Key", "x-client-secret",
                           "X-Password", "X-Amz-Security-Token", "X-Auth0-Thing", "PAYPAL-CERT-URL", "x-hmac", "X-JWT"}) {
    http::request from;
    from.headers = {{name, "SECRET"}};
    EXPECT_TRUE(kept(p1(), from).headers.empty()) << name;
  }
  http::request from;
  from.query = "a=1&access_token=SECRET&%74oken=SECRET&sig=SECRET&b=2";
  EXPECT_EQ(kept(p1(), from).query, "a=1&b=2");
}

TEST(KeptHead, WhatIsReadIsKeptWhateverItIsCalledButForCredentials) {
  auto how = p1();
  how.extract.idempotency_key = {at_place(place::header, "x-auth-event")};
  how.extract.result["code"] = at_place(place::query, "token_type");
  how.extract.event = {at_place(place::header, "authorization")};
  http::request from;
  from.query = "token_type=card";
  from.headers = {{"X-Auth-Event", "e1"}, {"Authorization", "SECRET"}};
  const auto back = kept(how, from);
  EXPECT_EQ(back.query, "token_type=card");
  EXPECT_EQ(back.headers, (http::header_list{{"X-Auth-Event", "e1"}}));
}

TEST(KeptHead, IsBoundedAndHoldsText) {
  http::request from;
  from.headers = {{"X-Long", std::string(kept_value_max + 1, 'x')}, {"X-Bytes", "\xff"}, {"Host", "example"}, {"X-Fine", "y"}};
  EXPECT_EQ(kept(p1(), from).headers, (http::header_list{{"X-Fine", "y"}}));
  for (int i = 0; i < 100; ++i) from.headers.emplace_back("X-" + std::to_string(i), std::string(kept_value_max, 'z'));
  from.query = std::string(kept_value_max + 1, 'q');
  EXPECT_LE(keep_head(p1(), from).size(), 2 * kept_head_max);
}

TEST(KeptHead, TheOperationOfTheCallbackUrlComesBack) {
  http::request out;
  EXPECT_EQ(restore_head(keep_head(p1(), {}, "req-1001"), out), "req-1001");
  EXPECT_EQ(restore_head(keep_head(p1(), {}), out), "");
}

TEST(KeptHead, AnythingElseGivesNothing) {
  for (const char* text : {"", "{", "[]", "{}", R"({"headers":[["a"],"b",{}]})", "null"}) {
    http::request out;
    restore_head(text, out);
    EXPECT_TRUE(out.query.empty() && out.headers.empty()) << text;
  }
}

}  // namespace
}  // namespace recibo::receive
