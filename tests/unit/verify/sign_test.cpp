// What sign() makes, verify() takes, for every preset whose signature stands in a header.
#include "support.hpp"

namespace recibo::verify {
namespace {

using namespace testing;

std::string secret_for(const scheme& how) {
  switch (how.key.encoding) {
    case text_encoding::utf8: return "test-secret-A";
    case text_encoding::base64: return how.key.strip_prefix + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    case text_encoding::hex: return "11223344D785FBAE710E7F943F307971BB61B21281C98C9129B3D4018A57B2EB";
  }
  return {};
}

// What the provider would have sent beside the signature.
headers sent_with(const scheme& how) {
  headers out{{"Content-Type", "application/json"}};
  for (const content_part& part : how.content) {
    if (part.what == content_part::source::header) out.emplace_back(part.names.front(), "id-1");
  }
  return out;
}

TEST(Sign, EveryPresetAcceptsWhatItsSignatureMakes) {
  const auto now = at_unix(b0_time) + std::chrono::microseconds(123456);
  const std::string body = "{\"webhookTimestamp\":" + std::to_string(b0_time) + "000}";
  const std::string longer = body + " ";
  int tried = 0;
  for (const auto& [name, how] : presets()) {
    const auto key = make_secret(how, "s", secret_for(how));
    headers sent = sent_with(how);
    const auto added =
        sign(how, signed_message{"POST", "https://hooks.example.com/x?a=%3A1", "data.id=AB", sent, body}, key, now);
    if (how.signature.from != place::header) {
      EXPECT_EQ(code_word(added.error().code), "invalid_configuration") << name;
      continue;
    }
    ASSERT_TRUE(added) << name << ": " << added.error().detail;
    sent.insert(sent.end(), added->begin(), added->end());
    const signed_message again{"POST", "https://hooks.example.com/x?a=%3A1", "data.id=AB", sent, body};
    EXPECT_EQ(verdict(verify(how, again, keyring{{key}}, now)), "valid") << name;
    const signed_message changed{"PUT", "https://hooks.example.com/y", "data.id=AC", sent, longer};
    if (how.kind != scheme_kind::token) {
      EXPECT_NE(verdict(verify(how, changed, keyring{{key}}, now)), "valid") << name;
    }
    ++tried;
  }
  EXPECT_EQ(tried, 40);
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
