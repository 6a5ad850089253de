#include "support.hpp"

namespace recibo::verify {
namespace {

TEST(Scheme, EveryProviderOfTheReferenceIsServed) {
  for (const char* name :
       {"standard-webhooks-v1a", "twilio", "plivo-v3", "adyen", "braintree", "discord", "sendgrid", "wise", "paypal", "circle",
        "plaid", "aws-sns", "http-message-signatures", "okta", "auth0", "microsoft-graph"}) {
    EXPECT_EQ(presets().count(name), 1u) << name;
  }
  // As many as presets.json has: one that cannot be read is not left out in silence.
  EXPECT_EQ(presets().size(), 57u);
}

TEST(Scheme, PresetsCarryWhatTheirProviderDocuments) {
  const scheme& stripe = presets().at("stripe");
  EXPECT_EQ(stripe.name, "stripe");
  EXPECT_EQ(stripe.signature.element, "v1");
  EXPECT_EQ(stripe.timestamp->tolerance, std::chrono::seconds(300));
  EXPECT_EQ(stripe.replay_json, "/id");
  EXPECT_TRUE(stripe.covers_body());
  EXPECT_EQ(presets().at("paddle").timestamp->tolerance, std::chrono::seconds(5));
  EXPECT_EQ(presets().at("mercadopago").timestamp->tolerance, std::nullopt);
  EXPECT_EQ(presets().at("docusign").signature.max, 100);
  EXPECT_EQ(presets().at("gitlab-token").kind, scheme_kind::token);
}

TEST(Scheme, CoversIsTrueOnlyWhereTheBytesAreSigned) {
  const scheme& standard = presets().at("standard-webhooks");
  EXPECT_TRUE(standard.covers_header("webhook-id"));
  EXPECT_TRUE(standard.covers_header("webhook-timestamp"));
  EXPECT_FALSE(standard.covers_header("webhook-signature"));
  EXPECT_FALSE(standard.covers_header("idempotency-key"));
  // Signed only while svix-id is absent: a sender may add one and change the other.
  EXPECT_TRUE(presets().at("svix").covers_header("svix-id"));
  EXPECT_FALSE(presets().at("svix").covers_header("webhook-id"));
  EXPECT_FALSE(presets().at("github").covers_header("x-github-delivery"));
  const scheme& mercadopago = presets().at("mercadopago");
  EXPECT_FALSE(mercadopago.covers_body());
  EXPECT_TRUE(mercadopago.covers_header("x-request-id"));
  // Signed in lower case: another spelling would be another key under the same signature.
  EXPECT_FALSE(mercadopago.covers_query("data.id"));
  EXPECT_FALSE(presets().at("gitlab-token").covers_body());
}

struct refused_case {
  const char* name;
  const char* json;
  const char* detail;
};

class SchemeRefuses : public ::testing::TestWithParam<refused_case> {};

TEST_P(SchemeRefuses, WithTheRuleInTheDetail) {
  const auto read = parse_scheme("x", GetParam().json);
  ASSERT_FALSE(read);
  EXPECT_EQ(code_word(read.error().code), "invalid_configuration");
  EXPECT_NE(read.error().detail.find(GetParam().detail), std::string::npos) << read.error().detail;
}

INSTANTIATE_TEST_SUITE_P(
    Rules, SchemeRefuses,
    ::testing::Values(
        refused_case{"NotJson", "{", "not JSON"}, refused_case{"NotAnObject", "[]", "not an object"},
        refused_case{"UnknownKey", R"({"kind":"hmac","colour":1})", "unknown key colour"},
        refused_case{"UnknownKind", R"({"kind":"ed448"})", "kind"}, refused_case{"UnknownHash", R"({"hash":"md5"})", "hash"},
        refused_case{"UnknownSignatureKey", R"({"signature":{"from":"header","names":["x"],"colour":0}})", "colour"},
        refused_case{"NothingSigned", R"({"signature":{"names":["x"]}})", "nothing is signed"},
        refused_case{"NoSignature", R"({"content":[{"body":true}]})", "signature: has no name"},
        refused_case{"UpperCaseHeader", R"({"signature":{"names":["X-Sig"]},"content":[{"body":true}]})", "lower-case"},
        refused_case{"PairWithoutElement", R"({"signature":{"names":["x"],"pair":"="},"content":[{"body":true}]})",
                     "pair and element"},
        refused_case{"TimestampNotDefined", R"({"signature":{"names":["x"]},"content":[{"timestamp":true}]})", "not defined"},
        refused_case{"TimestampElementWithoutPairs",
                     R"({"signature":{"names":["x"]},"timestamp":{"from":"element","name":"t"},"content":[{"body":true}]})",
                     "signature.pair"},
        refused_case{"ToleranceZero",
                     R"({"signature":{"names":["x"]},"timestamp":{"name":"t","tolerance_s":0},"content":[{"body":true}]})",
                     "longer than nothing"},
        refused_case{"TwoSourcesInAPart", R"({"signature":{"names":["x"]},"content":[{"body":true,"lit":"."}]})",
                     "exactly one source"},
        refused_case{"NoSourceInAPart", R"({"signature":{"names":["x"]},"content":[{"before":"."}]})", "exactly one source"},
        refused_case{"PointerWithoutSlash", R"({"signature":{"names":["x"]},"content":[{"json":"id"}]})", "JSON Pointer"},
        refused_case{"HashWithoutSecret", R"({"kind":"hash","signature":{"names":["x"]},"content":[{"body":true}]})",
                     "made by anybody"},
        refused_case{"TokenThatSigns", R"({"kind":"token","signature":{"names":["x"]},"content":[{"body":true}]})",
                     "signs nothing"}),
    [](const auto& one) { return std::string(one.param.name); });

}  // namespace
}  // namespace recibo::verify
