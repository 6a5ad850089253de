// What sign_request() makes, verify() takes, for every preset that signs with a shared secret.
#include "support.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

using namespace testing;

std::string secret_for(const scheme& how) {
  if (!how.key.split.empty()) return "public-A" + how.key.split + "test-secret-A";
  switch (how.key.encoding) {
    case text_encoding::utf8:
    case text_encoding::html: return "test-secret-A";
    case text_encoding::base64: return how.key.strip_prefix + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    case text_encoding::hex: return "11223344D785FBAE710E7F943F307971BB61B21281C98C9129B3D4018A57B2EB";
    case text_encoding::pem: break;
  }
  return {};
}

bool reads_a_form(const scheme& how) {
  return std::any_of(how.content.begin(), how.content.end(), [](const content_part& p) {
    return p.what == content_part::source::form || p.what == content_part::source::form_sorted ||
           p.what == content_part::source::url_plivo;
  });
}

// A body in which the scheme finds what it reads there.
std::string body_for(const scheme& how) {
  if (reads_a_form(how)) return "To=%2B1555&bt_payload=PHg%2BCg%3D%3D%0A&From=a+b";
  if (how.name == "adyen")
    return R"({"notificationItems":[{"NotificationRequestItem":{"pspReference":"1","amount":{"value":5}}}]})";
  if (how.name == "microsoft-graph") return R"({"value":[{"id":1},{"id":2}]})";
  if (how.name == "mailgun") return R"({"signature":{"timestamp":")" + std::to_string(b0_time) + R"(","token":"t"}})";
  return "{\"webhookTimestamp\":" + std::to_string(b0_time) + "000}";
}

// What the provider would have sent beside the signature.
headers sent_with(const scheme& how) {
  headers out{{"Content-Type", reads_a_form(how) ? "application/x-www-form-urlencoded" : "application/json"}};
  for (const content_part& part : how.content) {
    if (part.what == content_part::source::header) out.emplace_back(part.names.front(), "id-1");
  }
  return out;
}

TEST(Sign, EveryPresetAcceptsWhatItsSignatureMakes) {
  const auto now = at_unix(b0_time) + std::chrono::microseconds(123456);
  int tried = 0;
  for (const auto& [name, how] : presets()) {
    if (how.is_asymmetric() || how.kind == scheme_kind::http_signatures) continue;
    const auto key = make_secret(how, "s", secret_for(how));
    ASSERT_FALSE(key.key.empty()) << name;
    headers sent = sent_with(how);
    std::string body = body_for(how);
    const auto added =
        sign_request(how, signed_message{"POST", "https://hooks.example.com/x?a=%3A1", "data.id=AB", sent, body}, key, now);
    ASSERT_TRUE(added) << name << ": " << added.error().detail;
    EXPECT_EQ(added->body.has_value(), how.signature.from != place::header) << name;
    sent.insert(sent.end(), added->headers.begin(), added->headers.end());
    if (added->body) body = *added->body;
    const signed_message again{"POST", "https://hooks.example.com/x?a=%3A1", "data.id=AB", sent, body};
    EXPECT_EQ(verdict(verify(how, again, keyring{{key}}, now)), "valid") << name;
    const auto other =
        make_secret(how, "s", how.key.encoding == text_encoding::utf8 ? "pub|other" : "whsec_" + secret_for(how) + "AA==");
    EXPECT_NE(verdict(verify(how, again, keyring{{other}}, now)), "valid") << name;
    ++tried;
  }
  EXPECT_EQ(tried, 48);
}

TEST(Sign, WhatOnlyTheProviderCanSignIsSaid) {
  for (const auto& [name, how] : presets()) {
    if (!how.is_asymmetric()) continue;
    named_secret key = make_secret(p1_scheme(), "s", "test-secret-A");
    const auto made = sign_request(how, signed_message{"POST", "", "", {}, b0}, key, at_unix(b0_time));
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(code_word(made.error().code), "invalid_configuration") << name;
    EXPECT_NE(made.error().detail.find("private key"), std::string::npos) << name;
  }
}

TEST(Sign, StandardWebhooksAsItsReferenceLibraryDoes) {
  // The published test of the reference library: standard-webhooks/standard-webhooks, libraries/javascript.
  const scheme& how = presets().at("standard-webhooks");
  const auto key = make_secret(how, "s", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  const headers sent{{"webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek"}};
  const auto added = sign(how, signed_message{"POST", "", "", sent, "{\"test\": 2432232314}"}, key, at_unix(1614265330)).value();
  ASSERT_EQ(added.size(), 2u);
  EXPECT_EQ(added[0], std::pair(std::string("webhook-timestamp"), std::string("1614265330")));
  EXPECT_EQ(added[1],
            std::pair(std::string("webhook-signature"), std::string("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")));
}

TEST(Sign, StripesListHoldsTheTimeFirst) {
  const scheme& how = presets().at("stripe");
  const auto added =
      sign(how, signed_message{"POST", "", "", {}, b0}, make_secret(how, "s", "test-secret-A"), at_unix(b0_time)).value();
  ASSERT_EQ(added.size(), 1u);
  EXPECT_EQ(added[0].second, "t=1790848800,v1=" + std::string(b0_signature));
}

TEST(Sign, AMissingPartIsNamed) {
  const scheme& how = presets().at("standard-webhooks");
  const auto key = make_secret(how, "s", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  EXPECT_EQ(code_word(sign(how, signed_message{"POST", "", "", {}, b0}, key, at_unix(0)).error().code), "content_missing");
  EXPECT_EQ(code_word(sign(presets().at("linear"), signed_message{"POST", "", "", {}, b0}, key, at_unix(0)).error().code),
            "content_missing");
}

}  // namespace
}  // namespace recibo::verify
