// Every vector of tests/data/vectors whose preset this version knows.
#include "support.hpp"

#include "recibo/core/digest.hpp"

#include <nlohmann/json.hpp>

#include <fstream>
#include <map>

namespace recibo::verify {
namespace {

using nlohmann::json;
using namespace testing;

json load_vectors() {
  std::ifstream in(RECIBO_TEST_DATA "/vectors/signatures.json");
  return json::parse(in);
}

std::string query_of(const std::string& url) {
  const auto at = url.find('?');
  return at == std::string::npos ? std::string() : url.substr(at + 1);
}

std::string run_vector(const json& v, const scheme& preset) {
  scheme how = preset;
  if (how.timestamp) {
    how.timestamp->tolerance =
        v["tolerance_s"].is_null() ? std::nullopt : std::optional(std::chrono::seconds(v["tolerance_s"].get<std::int64_t>()));
  }
  headers sent;
  for (const json& h : v["headers"]) sent.emplace_back(h[0].get<std::string>(), h[1].get<std::string>());
  const auto body = from_base64(v["body_base64"].get<std::string>());
  if (!body) return "body_base64 is not base64";
  const auto method = v["method"].get<std::string>();
  const auto url = v["url"].get<std::string>();
  const std::string query = query_of(url);
  const auto keys = make_keys(how, v["secrets"].get<std::vector<std::string>>());
  return verdict(verify(how, signed_message{method, url, query, sent, *body}, keys, at_unix(v["now_unix"].get<std::int64_t>())));
}

TEST(Vectors, EveryVectorOfAKnownPresetHasItsVerdict) {
  std::map<std::string, int> ran;
  int total = 0;
  for (const json& v : load_vectors()) {
    const auto preset = presets().find(v["preset"].get<std::string>());
    if (preset == presets().end()) continue;
    const std::string found = run_vector(v, preset->second);
    const bool expected_valid = v["expect"] == "valid";
    EXPECT_EQ(found == "valid", expected_valid) << v["name"] << ": " << found << "; " << v["why"];
    ++ran[preset->first];
    ++total;
  }
  for (const char* must : {"standard-webhooks", "svix", "stripe", "github", "github-sha1", "slack", "shopify"})
    EXPECT_GT(ran[must], 0) << must;
  // As many as the file holds for these presets: a preset that stops loading, or a file that was cut, is seen here.
  EXPECT_EQ(ran.size(), 39u);
  EXPECT_EQ(total, 193);
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
  };
  std::size_t seen = 0;
  for (const json& v : load_vectors()) {
    const auto wanted = reasons.find(v["name"].get<std::string>());
    if (wanted == reasons.end()) continue;
    EXPECT_EQ(run_vector(v, presets().at(v["preset"].get<std::string>())), wanted->second) << wanted->first;
    ++seen;
  }
  EXPECT_EQ(seen, reasons.size());
}

TEST(Vectors, TheSecretThatMatchedIsNamed) {
  for (const json& v : load_vectors()) {
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
