// Every vector of tests/data/vectors, and what the reasons are.
#include "support.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/verify/vectors.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <iterator>
#include <map>
#include <set>

namespace recibo::verify {
namespace {

using nlohmann::json;
using namespace testing;

std::string vectors_text() {
  std::ifstream in(RECIBO_TEST_DATA "/vectors/signatures.json", std::ios::binary);
  return std::string{std::istreambuf_iterator<char>(in), {}};
}

TEST(Vectors, EveryVectorHasItsVerdict) {
  const auto outcomes = run_vectors(vectors_text());
  ASSERT_TRUE(outcomes) << outcomes.error().detail;
  std::set<std::string> ran;
  for (const vector_outcome& one : *outcomes) {
    EXPECT_TRUE(one.agrees()) << one.name << ": expected " << one.expected << ", found " << one.found;
    ran.insert(one.name.substr(0, one.name.find('/')));
  }
  // As many as the file holds: a file that was cut is seen here.
  EXPECT_EQ(outcomes->size(), 248u);
  EXPECT_EQ(ran.size(), 51u);
}

TEST(Vectors, ReasonsNameWhatIsWrong) {
  const std::map<std::string, std::string> reasons{
      {"github/invalid-no-header", "signature_missing"},
      {"github/invalid-duplicate-header", "signature_repeated"},
      {"github/invalid-not-hex", "signature_missing"},
      {"github/invalid-secret", "signature_mismatch"},
      {"slack/invalid-expired", "timestamp_stale"},
      {"slack/invalid-truncated", "signature_missing"},
      {"standard-webhooks/invalid-no-id", "content_missing"},
      {"standard-webhooks/invalid-no-timestamp", "timestamp_missing"},
      {"standard-webhooks/invalid-timestamp-text", "timestamp_malformed"},
      {"stripe/invalid-no-t", "timestamp_missing"},
      {"stripe/invalid-t-text", "timestamp_malformed"},
      {"shopify/invalid-unpadded", "signature_missing"},
      {"shopify/invalid-base64-33-bytes", "signature_mismatch"},
      {"linear/invalid-future", "timestamp_stale"},
      {"plaid/invalid-expired", "timestamp_stale"},
      {"plaid/invalid-body", "signature_mismatch"},
      {"aws-sns/invalid-cert-host", "signature_mismatch"},
      {"http-message-signatures/made-hmac-past-expires", "timestamp_stale"},
      {"http-message-signatures/rfc-b22-body-changed", "signature_mismatch"},
  };
  std::size_t seen = 0;
  const auto outcomes = run_vectors(vectors_text()).value();
  for (const vector_outcome& one : outcomes) {
    const auto wanted = reasons.find(one.name);
    if (wanted == reasons.end()) continue;
    EXPECT_EQ(one.found, "invalid: " + wanted->second) << one.name;
    ++seen;
  }
  EXPECT_EQ(seen, reasons.size());
}

TEST(Vectors, AFileThatHoldsNoneIsRefused) {
  EXPECT_FALSE(run_vectors("{}"));
  EXPECT_FALSE(run_vectors("[{}]"));
  EXPECT_FALSE(run_vectors("not JSON"));
  EXPECT_TRUE(run_vectors("[]"));
}

TEST(Vectors, TheSecretThatMatchedIsNamed) {
  for (const json& v : json::parse(vectors_text())) {
    if (v["name"] != "stripe/valid-second-secret") continue;
    const scheme& how = presets().at("stripe");
    headers sent;
    for (const json& h : v["headers"]) sent.emplace_back(h[0].get<std::string>(), h[1].get<std::string>());
    const auto body = from_base64(v["body_base64"].get<std::string>());
    const auto keys = make_keys(how, v["secrets"].get<std::vector<std::string>>());
    const auto found = verify(how, signed_message{"POST", "", "", sent, *body}, keys, at_unix(v["now_unix"].get<std::int64_t>()));
    ASSERT_TRUE(found);
    EXPECT_EQ(*found, "s2");
    return;
  }
  FAIL() << "the vector is gone";
}

}  // namespace
}  // namespace recibo::verify
