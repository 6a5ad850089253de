// RFC 9421: what a signature must cover, whose key it is, and what of the request's own words is not believed. The RFC's
// own test cases are among the vectors.
#include "vector_support.hpp"

#include "recibo/core/digest.hpp"

namespace recibo::verify {
namespace {

using namespace testing;

constexpr std::string_view thing = R"({"id":"evt_77"})";

scheme http_scheme(std::optional<std::vector<std::string>> required = std::nullopt) {
  scheme out = presets().at("http-message-signatures");
  out.http.keys.push_back({"key-1", "s1", http_algorithm::hmac_sha256, text_encoding::utf8});
  out.http.required = std::move(required);
  return out;
}

headers signed_headers(const scheme& how, std::string_view url = "https://hooks.example.com/in?a=1") {
  headers out{{"Content-Type", "application/json"}};
  const auto key = make_secret(how, "s1", "test-secret-A");
  const auto added = sign(how, signed_message{"POST", url, "a=1", out, thing}, key, at_unix(b0_time));
  EXPECT_TRUE(added) << added.error().detail;
  if (added) out.insert(out.end(), added->begin(), added->end());
  return out;
}

std::string judge(const scheme& how, const headers& sent, std::string_view body = thing, std::int64_t now = b0_time,
                  std::string_view url = "https://hooks.example.com/in?a=1", std::string_view method = "POST") {
  return verdict(verify(how, signed_message{method, url, "a=1", sent, body}, make_keys(how, {"test-secret-A"}), at_unix(now)));
}

std::string& value_of(headers& sent, std::string_view name) {
  for (auto& [one, value] : sent) {
    if (one == name) return value;
  }
  return sent.emplace_back(name, "").second;
}

TEST(HttpSignatures, WhatIsRequiredVerifies) {
  const scheme how = http_scheme();
  const headers sent = signed_headers(how);
  EXPECT_EQ(judge(how, sent), "valid");
  EXPECT_EQ(judge(how, sent, "{}"), "signature_mismatch");
  EXPECT_EQ(judge(how, sent, thing, b0_time, "https://hooks.example.com/in?a=2"), "signature_mismatch");
  EXPECT_EQ(judge(how, sent, thing, b0_time, "https://hooks.example.com/in?a=1", "PUT"), "signature_mismatch");
  EXPECT_EQ(judge(how, sent, thing, b0_time + 300), "valid");
  EXPECT_EQ(judge(how, sent, thing, b0_time + 301), "timestamp_stale");
  EXPECT_EQ(judge(how, sent, thing, b0_time - 301), "timestamp_stale");
}

TEST(HttpSignatures, TheConfigurationSaysWhatMustBeCovered) {
  const scheme usual = http_scheme();
  // Signed rightly, over less than is asked for.
  for (const std::vector<std::string>& covered : {std::vector<std::string>{"@method"},
                                                  {"@method", "@target-uri"},
                                                  {"@method", "content-digest"},
                                                  {"@target-uri", "content-digest"},
                                                  {"@method", "@authority", "content-digest"},
                                                  {"@method", "@path", "content-digest"}}) {
    EXPECT_EQ(judge(usual, signed_headers(http_scheme(covered))), "content_missing") << covered.size();
  }
  EXPECT_EQ(judge(usual, signed_headers(http_scheme({{"@method", "@authority", "@path", "content-digest"}}))), "valid");
  const scheme typed = http_scheme({{"@method", "content-type"}});
  EXPECT_EQ(judge(typed, signed_headers(typed)), "valid");
  EXPECT_EQ(judge(typed, signed_headers(usual)), "content_missing");
  // Nothing is never enough, unless a test vector says so.
  const scheme nothing = http_scheme(std::vector<std::string>());
  EXPECT_EQ(judge(nothing, signed_headers(nothing)), "content_missing");
}

TEST(HttpSignatures, EveryComponentIsComputedAsTheRfcSays) {
  const std::string url = "https://Hooks.Example.com:443/in/a%2Fb?a=1&b=x%20y";
  const std::vector<std::string> all{"@method",
                                     "@target-uri",
                                     "@authority",
                                     "@scheme",
                                     "@path",
                                     "@query",
                                     "@request-target",
                                     "\"@query-param\";name=\"b\"",
                                     "content-type",
                                     "\"content-type\";bs",
                                     "\"content-digest\";key=\"sha-256\"",
                                     "\"content-digest\";sf"};
  const scheme how = http_scheme(all);
  const headers sent = signed_headers(how, url);
  EXPECT_EQ(judge(how, sent, thing, b0_time, url), "valid");
  for (const char* other :
       {"https://hooks.example.org/in/a%2Fb?a=1&b=x%20y", "http://Hooks.Example.com:443/in/a%2Fb?a=1&b=x%20y",
        "https://Hooks.Example.com:443/in/a/b?a=1&b=x%20y", "https://Hooks.Example.com:443/in/a%2Fb?a=1&b=xy"}) {
    EXPECT_EQ(judge(how, sent, thing, b0_time, other), "signature_mismatch") << other;
  }
  // A parameter that stands twice has no value.
  EXPECT_EQ(judge(how, sent, thing, b0_time, url + "&b=x"), "content_missing");
}

struct input_case {
  const char* name;
  const char* from;
  const char* to;
  const char* expected;
};

TEST(HttpSignatures, MalformedOrUnfitInputs) {
  const input_case cases[] = {
      {"no created", ";created=1790848800", "", "timestamp_missing"},
      {"created as a text", ";created=1790848800", ";created=\"1790848800\"", "timestamp_malformed"},
      {"created as a decimal", ";created=1790848800", ";created=1790848800.5", "timestamp_malformed"},
      {"created below zero", ";created=1790848800", ";created=-1", "timestamp_malformed"},
      {"created twice", ";created=1790848800", ";created=1790848800;created=1790848801", "signature_missing"},
      {"created endless", ";created=1790848800", ";created=99999999999999999999", "signature_missing"},
      {"expired", ";created=1790848800", ";created=1790848800;expires=1790848799", "timestamp_stale"},
      {"expires as a token", ";created=1790848800", ";created=1790848800;expires=never", "timestamp_malformed"},
      {"no keyid", ";keyid=\"key-1\"", "", "signature_mismatch"},
      {"another keyid", "key-1", "key-2", "signature_mismatch"},
      {"keyid as a token", "\"key-1\"", "key-1", "signature_mismatch"},
      {"another algorithm", ";keyid", ";alg=\"ed25519\";keyid", "signature_mismatch"},
      {"the right algorithm, unsigned", ";keyid", ";alg=\"hmac-sha256\";keyid", "signature_mismatch"},
      {"no list", "sig1=(\"@method\" \"@target-uri\" \"content-digest\")", "sig1=\"@method\"", "signature_missing"},
      {"never closed", "\"content-digest\")", "\"content-digest\"", "signature_missing"},
      {"another label", "sig1=", "sig2=", "signature_missing"},
      {"label in capitals", "sig1=", "Sig1=", "signature_missing"},
      {"covers nothing", "\"@method\" \"@target-uri\" \"content-digest\"", "", "content_missing"},
      {"component twice", "\"@method\"", "\"@method\" \"@method\"", "content_missing"},
      {"component in capitals", "\"@method\"", "\"@method\" \"Date\"", "content_missing"},
      {"component that is absent", "\"@method\"", "\"@method\" \"date\"", "content_missing"},
      {"component of an answer", "\"@method\"", "\"@method\" \"@status\"", "content_missing"},
      {"component of another request", "\"@method\"", "\"@method\" \"content-type\";req", "content_missing"},
      {"component of a trailer", "\"@method\"", "\"@method\" \"content-type\";tr", "content_missing"},
      {"component as a token", "\"@method\" ", "method ", "content_missing"},
      {"another order", "\"@method\" \"@target-uri\"", "\"@target-uri\" \"@method\"", "signature_mismatch"},
      {"a comma behind it", ";keyid=\"key-1\"", ";keyid=\"key-1\",", "signature_missing"},
      {"a byte that is none", "key-1", "key-\xc3\xa9", "signature_missing"},
  };
  const scheme how = http_scheme();
  const headers right = signed_headers(how);
  for (const input_case& c : cases) {
    headers sent = right;
    std::string& input = value_of(sent, "signature-input");
    const auto at = input.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.name << ": " << input;
    input.replace(at, std::string_view(c.from).size(), c.to);
    EXPECT_EQ(judge(how, sent), c.expected) << c.name;
  }
}

TEST(HttpSignatures, MalformedSignatures) {
  const scheme how = http_scheme();
  const headers right = signed_headers(how);
  headers sent = right;
  const std::string good = value_of(sent, "signature");
  const auto with = [&](std::string text) {
    headers one = right;
    value_of(one, "signature") = std::move(text);
    return judge(how, one);
  };
  EXPECT_EQ(with(good), "valid");
  EXPECT_EQ(with("other=:AAAA:, " + good), "valid");
  EXPECT_EQ(with(""), "signature_missing");
  EXPECT_EQ(with("sig1"), "signature_missing");
  EXPECT_EQ(with("sig1=::"), "signature_mismatch");
  EXPECT_EQ(with("sig1=:AAAA:"), "signature_mismatch");
  EXPECT_EQ(with("sig1=\"x\""), "signature_missing");
  EXPECT_EQ(with(good.substr(0, good.size() - 1)), "signature_missing");
  EXPECT_EQ(with(good.substr(0, good.size() - 2) + ":"), "signature_missing");  // without its padding
  EXPECT_EQ(with(good + ", " + good), "signature_missing");                     // one label twice
  std::string many = good;
  for (int i = 0; i < 20; ++i) many += ", l" + std::to_string(i) + "=:AAAA:";
  EXPECT_EQ(with(many), "signature_missing");
  EXPECT_EQ(with(good + std::string(9000, ' ')), "valid");  // blanks around a value are no part of it
  EXPECT_EQ(with("x=\"" + std::string(9000, 'a') + "\", " + good), "signature_missing");
  headers twice = right;
  twice.emplace_back("Signature", good);
  EXPECT_EQ(judge(how, twice), "signature_repeated");
  twice = right;
  twice.emplace_back("Signature-Input", value_of(sent, "signature-input"));
  EXPECT_EQ(judge(how, twice), "signature_repeated");
}

TEST(HttpSignatures, AnyLabelThatSatisfiesAccepts) {
  const scheme how = http_scheme();
  headers sent = signed_headers(how);
  value_of(sent, "signature-input") = "proxy=(\"@method\");created=1;keyid=\"x\", " + value_of(sent, "signature-input");
  value_of(sent, "signature") = "proxy=:AAAA:, " + value_of(sent, "signature");
  EXPECT_EQ(judge(how, sent), "valid");
}

struct digest_case {
  const char* name;
  const char* header;
  std::string value;
  const char* expected;
};

TEST(HttpSignatures, TheDigestIsTheBodys) {
  const std::string sha256 = to_base64(binary(recibo::sha256(thing)));
  const std::string other = to_base64(std::string(32, 'x'));
  const digest_case cases[] = {
      {"right", "content-digest", "sha-256=:" + sha256 + ":", "valid"},
      {"another body", "content-digest", "sha-256=:" + other + ":", "signature_mismatch"},
      {"one right, one wrong", "content-digest", "sha-256=:" + sha256 + ":, sha-512=:" + other + ":", "signature_mismatch"},
      {"beside one that does not count", "content-digest", "md5=:AAAA:, sha-256=:" + sha256 + ":", "valid"},
      {"only what does not count", "content-digest", "md5=:AAAA:", "content_missing"},
      {"twice", "content-digest", "sha-256=:" + other + ":, sha-256=:" + sha256 + ":", "content_missing"},
      {"no dictionary", "content-digest", "SHA-256=" + sha256, "content_missing"},
      {"a text", "content-digest", "sha-256=\"" + sha256 + "\"", "content_missing"},
      {"empty", "content-digest", "", "content_missing"},
      {"older", "digest", "SHA-256=" + sha256, "valid"},
      {"older, small letters", "digest", "md5=AAAA,sha-256=" + sha256, "valid"},
      {"older, another body", "digest", "SHA-256=" + other, "signature_mismatch"},
      {"older, not base64", "digest", "SHA-256=" + sha256.substr(0, 43), "signature_mismatch"},
      {"older, only what does not count", "digest", "MD5=AAAA", "content_missing"},
  };
  for (const digest_case& c : cases) {
    // The header is covered and the signature right over what it says, so that only the digest decides.
    const scheme how = http_scheme({{"@method", c.header}});
    headers sent{{"Content-Type", "application/json"}, {c.header, c.value}};
    const bool makes_its_own = std::string_view(c.header) == "digest";
    const auto added = sign(how, signed_message{"POST", "https://hooks.example.com/in?a=1", "a=1", sent, thing},
                            make_secret(how, "s1", "test-secret-A"), at_unix(b0_time));
    ASSERT_TRUE(added) << c.name;
    for (const auto& one : *added) {
      if (!makes_its_own || one.first != "content-digest") sent.push_back(one);
    }
    EXPECT_EQ(judge(how, sent), c.expected) << c.name;
  }
}

TEST(HttpSignatures, TheAlgorithmIsTheKeys) {
  // The RFC's Ed25519 case, judged under keys of other kinds.
  vector_request v;
  for (const auto algorithm : {http_algorithm::ed25519, http_algorithm::rsa_pss_sha512, http_algorithm::ecdsa_p256_sha256}) {
    scheme how = http_scheme(std::vector<std::string>{"@method"});
    how.http.keys = {{"test-key-ed25519", "s1", algorithm, text_encoding::pem}};
    named_secret one{
        .name = "s1",
        .text = secret("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\n-----END "
                       "PUBLIC KEY-----\n"),
        .from = {},
        .until = {},
        .key = {},
        .ready = {}};
    EXPECT_EQ(static_cast<bool>(prepare(how, one)), algorithm == http_algorithm::ed25519);
  }
  // A public key is no shared secret: it can be taken for one only by spelling it so in the configuration.
  scheme how = http_scheme();
  how.http.keys = {{"key-1", "s1", http_algorithm::ed25519, text_encoding::pem}};
  EXPECT_EQ(judge(how, signed_headers(http_scheme())), "signature_mismatch");
}

}  // namespace
}  // namespace recibo::verify
