// Keys that requests ask for: what may be fetched at all, what an answer is worth, and what is never taken for a key.
#include "vector_support.hpp"

#include "recibo/core/json.hpp"

namespace recibo::verify {
namespace {

using namespace testing;

std::string word_of(const result<std::optional<needed_key>>& r) {
  if (!r) return std::string(code_word(r.error().code));
  return *r ? (*r)->cache_key() : "nothing";
}

struct url_case {
  const char* name;
  const char* url;
  bool good;
};

constexpr url_case sns_urls[] = {
    {"plain", "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem", true},
    {"china", "https://sns.cn-north-1.amazonaws.com.cn/x.pem", true},
    {"capitals", "HTTPS://SNS.US-EAST-1.AMAZONAWS.COM/x.pem", true},
    {"no TLS", "http://sns.us-east-1.amazonaws.com/x.pem", false},
    {"host goes on", "https://sns.us-east-1.amazonaws.com.evil.example/x.pem", false},
    {"host goes on in the suffix", "https://sns.us-east-1.amazonaws.community/x.pem", false},
    {"another service", "https://s3.us-east-1.amazonaws.com/x.pem", false},
    {"a bucket", "https://sns.us-east-1.s3.amazonaws.com/x.pem", false},
    {"the government's", "https://sns.us-gov-west-1.amazonaws.com/x.pem", true},
    {"a bucket of the name sns", "https://sns.s3-us-west-2.amazonaws.com/x.pem", false},
    {"a bucket, its region short", "https://sns.s3-1.amazonaws.com/x.pem", false},
    {"a service for a region", "https://sns.execute-api.amazonaws.com/x.pem", false},
    {"no region", "https://sns.amazonaws.com/x.pem", false},
    {"prefix glued", "https://evilsns.us-east-1.amazonaws.com/x.pem", false},
    {"user", "https://sns.us-east-1.amazonaws.com@evil.example/x.pem", false},
    {"user with password", "https://a:b@sns.us-east-1.amazonaws.com/x.pem", false},
    {"port", "https://sns.us-east-1.amazonaws.com:8443/x.pem", false},
    {"backslash", "https://evil.example\\@sns.us-east-1.amazonaws.com/x.pem", false},
    {"fragment", "https://evil.example#sns.us-east-1.amazonaws.com/x.pem", false},
    {"blank", "https://sns.us-east-1.amazonaws.com /x.pem", false},
    {"no path", "https://sns.us-east-1.amazonaws.com", false},
    {"address", "https://169.254.169.254/x.pem", false},
    {"dot at the end", "https://sns.us-east-1.amazonaws.com./x.pem", false},
    {"no authority", "https:sns.us-east-1.amazonaws.com/x.pem", false},
    {"climbs", "https://sns.us-east-1.amazonaws.com/../x.pem", false},
    {"line end", "https://sns.us-east-1.amazonaws.com/x\r\n.pem", false},
    {"not ASCII", "https://sns.us-east-1.amazonaws.com/\xc3\xa9.pem", false},
    {"empty", "", false},
};

TEST(ForeignKey, OnlySnssOwnUrls) {
  for (const url_case& c : sns_urls) EXPECT_EQ(is_sns_url(c.url), c.good) << c.name;
  EXPECT_FALSE(is_sns_url("https://sns.us-east-1.amazonaws.com/" + std::string(600, 'a')));
}

TEST(ForeignKey, SnsNamesItsCertificateInTheBody) {
  vector_request v = load_vector("aws-sns/valid-no-subject");
  const std::string right = "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-0123456789abcdef.pem";
  EXPECT_EQ(word_of(which_key(v.how, v.message(), v.keys, v.now)), right);
  const std::string whole = v.body;
  const auto with_url = [&](std::string_view url) {
    v.body = whole;
    v.body.replace(v.body.find(right), right.size(), url);
    return word_of(which_key(v.how, v.message(), v.keys, v.now));
  };
  for (const url_case& c : sns_urls) {
    if (!c.good && std::string_view(c.url).find_first_of("\r\\") == std::string_view::npos) {
      EXPECT_EQ(with_url(c.url), "signature_mismatch") << c.name;
    }
  }
  EXPECT_EQ(with_url("https://sns.us-east-1.amazonaws.com/x.pem?y"), "signature_mismatch");
  EXPECT_EQ(with_url("https://sns.us-east-1.amazonaws.com/x.txt"), "signature_mismatch");
}

TEST(ForeignKey, NothingIsFetchedForWhatHoldsNoSignature) {
  vector_request paypal = load_vector("paypal/valid");
  paypal.header("PAYPAL-TRANSMISSION-SIG") = "%%%";
  EXPECT_EQ(word_of(which_key(paypal.how, paypal.message(), paypal.keys, paypal.now)), "signature_missing");
  vector_request sns = load_vector("aws-sns/valid-no-subject");
  const std::string_view mark = R"("Signature":")";
  sns.body.insert(sns.body.find(mark) + mark.size(), "%");
  EXPECT_EQ(word_of(which_key(sns.how, sns.message(), sns.keys, sns.now)), "signature_missing");
}

TEST(ForeignKey, SnsTakesItsOwnTopicsOnly) {
  vector_request v = load_vector("aws-sns/valid-no-subject");
  EXPECT_EQ(v.judge(), "valid");
  v.keys = make_keys(v.how, {"arn:aws:sns:us-east-1:123456789012:Other", "arn:aws:sns:us-east-1:123456789012:MyTopic"});
  const auto found = verify(v.how, v.message(), v.keys, v.now, &*v.fetched);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, "s2");
  v.keys.secrets.pop_back();
  EXPECT_EQ(v.judge(), "signature_mismatch");
  // Refused before anything is fetched for it.
  EXPECT_EQ(word_of(which_key(v.how, v.message(), v.keys, v.now)), "signature_mismatch");
  EXPECT_FALSE(key_bytes(v.how, secret("MyTopic")));
}

struct body_change {
  const char* name;
  const char* from;
  const char* to;
  const char* expected;
};

TEST(ForeignKey, SnsReadsStrictly) {
  const body_change cases[] = {
      {"version 3", R"("SignatureVersion":"2")", R"("SignatureVersion":"3")", "signature_mismatch"},
      {"version as a number", R"("SignatureVersion":"2")", R"("SignatureVersion":2)", "signature_mismatch"},
      {"downgraded", R"("SignatureVersion":"2")", R"("SignatureVersion":"1")", "signature_mismatch"},
      {"unknown type", R"("Type":"Notification")", R"("Type":"Other")", "content_missing"},
      {"a subject slipped in", R"("Type":)", R"("Subject":"x","Type":)", "signature_mismatch"},
      {"a subject of null", R"("Type":)", R"("Subject":null,"Type":)", "content_missing"},
      {"type twice", R"("Type":)", R"("Type":"Other","Type":)", "signature_missing"},
      {"message as an object", R"("MessageId":)", R"("x":)", "content_missing"},
      {"no time", R"("Timestamp":)", R"("Timestamps":)", "content_missing"},
      {"no JSON", R"({"Type")", R"({Type)", "signature_missing"},
  };
  for (const body_change& c : cases) {
    vector_request v = load_vector("aws-sns/valid-no-subject");
    const auto at = v.body.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.name;
    v.body.replace(at, std::string_view(c.from).size(), c.to);
    EXPECT_EQ(v.judge(), c.expected) << c.name;
  }
}

TEST(ForeignKey, PayPalsCertificateIsOnPayPalsHosts) {
  constexpr url_case urls[] = {
      {"plain", "https://api.paypal.com/v1/notifications/certs/CERT-1", true},
      {"sandbox", "https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1", true},
      {"no TLS", "http://api.paypal.com/v1/notifications/certs/CERT-1", false},
      {"host goes on", "https://api.paypal.com.evil.example/c.pem", false},
      {"glued", "https://evilpaypal.com/c.pem", false},
      {"user", "https://api.paypal.com@evil.example/c.pem", false},
      {"port", "https://api.paypal.com:444/c.pem", false},
      {"query to elsewhere", "https://evil.example/?api.paypal.com", false},
      {"address", "https://127.0.0.1/c.pem", false},
      {"file", "file:///etc/ssl/c.pem", false},
  };
  for (const url_case& c : urls) {
    vector_request v = load_vector("paypal/valid");
    v.header("PAYPAL-CERT-URL") = c.url;
    EXPECT_EQ(word_of(which_key(v.how, v.message(), v.keys, v.now)), c.good ? c.url : "signature_mismatch") << c.name;
  }
  vector_request v = load_vector("paypal/valid");
  v.drop("PAYPAL-CERT-URL");
  EXPECT_EQ(word_of(which_key(v.how, v.message(), v.keys, v.now)), "signature_missing");
  v = load_vector("paypal/valid");
  v.sent.emplace_back("paypal-cert-url", v.header("PAYPAL-CERT-URL"));
  EXPECT_EQ(v.judge(), "signature_repeated");
}

TEST(ForeignKey, WithoutItTheRequestIsNotRefused) {
  vector_request v = load_vector("paypal/valid");
  EXPECT_EQ(v.judge(), "valid");
  const fetched_key right = *v.fetched;
  v.fetched.reset();
  EXPECT_EQ(v.judge(), "not_ready");
  v.fetched = right;
  v.fetched->cache_key += "x";
  EXPECT_EQ(v.judge(), "signature_mismatch");
  v.fetched = right;
  v.fetched->until = v.now;
  EXPECT_EQ(v.judge(), "signature_mismatch");
  v.fetched->until = v.now + std::chrono::microseconds(1);
  EXPECT_EQ(v.judge(), "valid");
}

TEST(ForeignKey, SchemesThatNeedNoneAskForNothing) {
  for (const auto& [name, how] : presets()) {
    if (how.needs_foreign_key()) continue;
    EXPECT_EQ(word_of(which_key(how, signed_message{"POST", "", "", {}, ""}, {}, at_unix(0))), "nothing") << name;
  }
}

TEST(ForeignKey, CircleByItsId) {
  const scheme& how = presets().at("circle");
  const auto asked = [&](const headers& sent, const keyring& keys = {}) {
    return word_of(which_key(how, signed_message{"POST", "", "", sent, "{}"}, keys, at_unix(0)));
  };
  const std::string id = "b3d9d2d5-4c12-4946-a09d-953e82fae2b0";
  EXPECT_EQ(asked({{"X-Circle-Key-Id", id}, {"X-Circle-Signature", "MAA="}}), id);
  EXPECT_EQ(asked({{"X-Circle-Key-Id", id}}), "signature_missing") << "nothing is fetched for what holds no signature";
  EXPECT_EQ(asked({{"X-Circle-Key-Id", id}, {"X-Circle-Signature", "%"}}), "signature_missing");
  EXPECT_EQ(asked({}), "signature_missing");
  EXPECT_EQ(asked({{"X-Circle-Key-Id", "a"}, {"x-circle-key-id", "b"}}), "signature_repeated");
  for (const char* bad : {"..", "a/b", "a?b", "a b", "a%2f", "\xc3\xa9"})
    EXPECT_EQ(asked({{"X-Circle-Key-Id", bad}}), "signature_mismatch") << bad;
  EXPECT_EQ(asked({{"X-Circle-Key-Id", std::string(129, 'a')}}), "signature_mismatch");
  // A key that is written down is the one that is meant.
  const auto pinned =
      make_keys(how, {"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+"
                      "2fNNRaINXvVpiglSI8eNEc6wEA3F+g=="});
  EXPECT_EQ(asked({{"X-Circle-Key-Id", "a"}}, pinned), "nothing");
}

// SendGrid's published example is ECDSA over time and body, so that it stands for Circle's with both joined to the body.
TEST(ForeignKey, CirclesAnswerIsAKeyOfThatId) {
  const vector_request v = load_vector("sendgrid/doc-invalid-no-crlf");
  const std::string body = "1600112502" + v.body + "\r\n";
  const std::string spki =
      "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE83T4O/n84iotIvIW4mdBgQ/7dAfSmpqIM8kF9mN1flpVKS3GRqe62gw+2fNNRaINXvVpiglSI8eN"
      "Ec6wEA3F+g==";
  const scheme& how = presets().at("circle");
  const headers sent{
      {"X-Circle-Key-Id", "key-1"},
      {"X-Circle-Signature", "MEUCIGHQVtGj+Y3LkG9fLcxf3qfI10QysgDWmMOVmxG0u6ZUAiEAyBiXDWzM+uOe5W0JuG+luQAbPIqHh89M15TluLtEZtM="}};
  const signed_message message{"POST", "", "", sent, body};
  const auto needed = which_key(how, message, {}, v.now).value().value();
  EXPECT_EQ(needed.what, needed_key::form::circle);
  const auto answer = [&](std::string_view id, std::string_view algorithm, std::string_view key) {
    return read_fetched_key(how, needed,
                            "{\"data\":{\"id\":" + json_string(id) + ",\"algorithm\":" + json_string(algorithm) +
                                ",\"publicKey\":" + json_string(key) + "}}",
                            {}, v.now);
  };
  const auto fetched = answer("key-1", "ECDSA_SHA_256", spki);
  ASSERT_TRUE(fetched) << fetched.error().detail;
  const auto found = verify(how, message, {}, v.now, &*fetched);
  ASSERT_TRUE(found) << found.error().detail;
  EXPECT_EQ(*found, "key-1");
  EXPECT_EQ(verdict(verify(how, message, {}, v.now)), "not_ready");
  // What is no key is the answerer's fault, a maintenance page's say, and never a verdict on the callback.
  EXPECT_TRUE(answer("key-2", "ECDSA_SHA_256", spki).error().is_transient());
  EXPECT_TRUE(read_fetched_key(how, needed, "<html>Back soon</html>", {}, v.now).error().is_transient());
  EXPECT_FALSE(answer("key-1", "RSA", spki));
  EXPECT_FALSE(answer("key-1", "ECDSA_SHA_256", spki.substr(4)));
  EXPECT_FALSE(read_fetched_key(how, needed, "{}", {}, v.now));
  EXPECT_FALSE(read_fetched_key(how, needed, std::string(fetched_bytes_max + 1, ' '), {}, v.now));
}

TEST(ForeignKey, PlaidsAnswerIsAKeyOfThatId) {
  vector_request v = load_vector("plaid/valid");
  const std::string jwk(v.keys.secrets.front().text.reveal());
  v.keys.secrets.clear();
  const auto needed = which_key(v.how, v.message(), v.keys, v.now).value().value();
  EXPECT_EQ(needed.what, needed_key::form::plaid);
  EXPECT_EQ(needed.id, "bfbd5111-8e33-4643-8ced-b2e642a72f3c");
  EXPECT_EQ(v.judge(), "not_ready");
  const auto read = [&](std::string key) {
    return read_fetched_key(v.how, needed, "{\"key\":" + key + ",\"request_id\":\"r\"}", {}, v.now);
  };
  auto fetched = read(jwk);
  ASSERT_TRUE(fetched) << fetched.error().detail;
  v.fetched = *fetched;
  EXPECT_EQ(v.judge(), "valid");
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string other = jwk;
    other.replace(other.find(from), from.size(), to);
    return read(other);
  };
  EXPECT_FALSE(with("bfbd5111", "bfbd5112"));
  EXPECT_FALSE(with("\"EC\"", "\"OKP\""));
  EXPECT_FALSE(with("P-256", "P-384"));
  EXPECT_FALSE(with("ES256", "HS256"));
  EXPECT_FALSE(with("\"sig\"", "\"enc\""));
  EXPECT_FALSE(with("\"x\":\"g", "\"x\":\"h"));  // not on the curve
  EXPECT_FALSE(with("{", "{\"expired_at\":1760000003,"));
  EXPECT_TRUE(with("{", "{\"expired_at\":1760000004,"));
  EXPECT_TRUE(with("{", "{\"expired_at\":null,"));
  EXPECT_FALSE(read("[]"));
}

TEST(ForeignKey, NoKeyIsFetchedForAPlaidTokenThatCannotBeRight) {
  const auto asked = [](auto change) {
    vector_request v = load_vector("plaid/valid");
    v.keys.secrets.clear();
    change(v);
    return word_of(which_key(v.how, v.message(), v.keys, v.now));
  };
  EXPECT_EQ(asked([](vector_request&) {}), "bfbd5111-8e33-4643-8ced-b2e642a72f3c");
  EXPECT_EQ(asked([](vector_request& v) { v.body += ' '; }), "signature_mismatch");
  EXPECT_EQ(asked([](vector_request& v) { v.now += std::chrono::hours(1); }), "timestamp_stale");
  EXPECT_EQ(asked([](vector_request& v) { v.header("Plaid-Verification") += "=="; }), "signature_missing");
  EXPECT_EQ(asked([](vector_request& v) {
              const std::string token = v.header("Plaid-Verification");
              v.header("Plaid-Verification") =
                  token.substr(0, token.find('.') + 1) + base64url("{}") + token.substr(token.rfind('.'));
            }),
            "timestamp_missing");
}

struct token_case {
  const char* name;
  const char* head;
  const char* expected;
};

TEST(ForeignKey, PlaidsTokenIsEs256AndNothingElse) {
  const token_case cases[] = {
      {"none", R"({"alg":"none","kid":"bfbd5111-8e33-4643-8ced-b2e642a72f3c","typ":"JWT"})", "signature_mismatch"},
      {"HS256", R"({"alg":"HS256","kid":"bfbd5111-8e33-4643-8ced-b2e642a72f3c","typ":"JWT"})", "signature_mismatch"},
      {"small letters", R"({"alg":"es256","kid":"bfbd5111-8e33-4643-8ced-b2e642a72f3c"})", "signature_mismatch"},
      {"no alg", R"({"kid":"bfbd5111-8e33-4643-8ced-b2e642a72f3c"})", "signature_mismatch"},
      {"alg twice", R"({"alg":"ES256","alg":"none","kid":"bfbd5111-8e33-4643-8ced-b2e642a72f3c"})", "signature_missing"},
      {"no kid", R"({"alg":"ES256"})", "signature_mismatch"},
      {"kid as a number", R"({"alg":"ES256","kid":1})", "signature_mismatch"},
      {"another kid", R"({"alg":"ES256","kid":"other"})", "signature_mismatch"},
      {"kid that climbs", R"({"alg":"ES256","kid":"../x"})", "signature_mismatch"},
      {"critical extensions", R"({"alg":"ES256","kid":"bfbd5111-8e33-4643-8ced-b2e642a72f3c","crit":["exp"]})",
       "signature_mismatch"},
      {"same words, other bytes", R"({"typ":"JWT","alg":"ES256","kid":"bfbd5111-8e33-4643-8ced-b2e642a72f3c"})",
       "signature_mismatch"},
      {"no JSON", "ES256", "signature_missing"},
  };
  const vector_request right = load_vector("plaid/valid");
  for (const token_case& c : cases) {
    vector_request v = right;
    std::string& token = v.header("Plaid-Verification");
    token = base64url(c.head) + token.substr(token.find('.'));
    EXPECT_EQ(v.judge(), c.expected) << c.name;
  }
}

TEST(ForeignKey, PlaidsTokenSaysWhoseBodyItIs) {
  vector_request v = load_vector("plaid/valid");
  const auto other = [&] { return speaks_of_other_body(v.how, v.message()); };
  EXPECT_FALSE(other());
  v.body += " ";
  EXPECT_TRUE(other());
  v.header("Plaid-Verification") = "no token";
  EXPECT_FALSE(other());
}

TEST(ForeignKey, PlaidsTokenHasThreeDecodableParts) {
  const vector_request right = load_vector("plaid/valid");
  const std::string token = vector_request(right).header("Plaid-Verification");
  const std::size_t last = token.rfind('.');
  const auto judged = [&](std::string text) {
    vector_request v = right;
    v.header("Plaid-Verification") = std::move(text);
    return v.judge();
  };
  EXPECT_EQ(judged(token), "valid");
  for (const std::string& broken :
       {std::string(), token.substr(0, last), token + ".", token + "=", token + "==", token.substr(0, last + 1), "." + token,
        token.substr(0, last + 1) + std::string(43, 'A'), token.substr(0, token.size() - 1), token + "AA", std::string("..")}) {
    EXPECT_EQ(judged(broken), "signature_missing") << broken.size();
  }
  EXPECT_EQ(judged(std::string(9000, 'a')), "signature_missing");
  EXPECT_EQ(judged(token.substr(0, last + 1) + base64url(std::string(64, '\0'))), "signature_mismatch");
  vector_request twice = right;
  twice.sent.emplace_back("plaid-verification", token);
  EXPECT_EQ(twice.judge(), "signature_repeated");
  vector_request gone = right;
  gone.drop("Plaid-Verification");
  EXPECT_EQ(gone.judge(), "signature_missing");
}

TEST(Certificates, ValidityNamesAndChain) {
  const vector_request v = load_vector("paypal/valid");
  const std::string pem = v.certificates.begin()->second;
  const std::string other = load_vector("aws-sns/valid-no-subject").certificates.begin()->second;
  const auto in_time = at_unix(1800000000);  // the certificate of the vectors begins in November 2026
  certificate_rules rules;
  rules.names_below = {"paypal.com"};
  const auto fine = check_certificate(pem, rules, in_time);
  ASSERT_TRUE(fine) << fine.error().detail;
  EXPECT_LT(fine->from, in_time);
  EXPECT_GT(fine->until, in_time);
  EXPECT_FALSE(check_certificate(pem, rules, at_unix(1700000000)));
  EXPECT_FALSE(check_certificate(pem, rules, fine->until + std::chrono::seconds(1)));
  EXPECT_FALSE(check_certificate(other, rules, in_time));
  EXPECT_FALSE(check_certificate("", rules, in_time));
  EXPECT_FALSE(check_certificate("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", rules, in_time));
  EXPECT_FALSE(check_certificate(std::string(70000, ' ') + pem, rules, in_time));
  std::string many;
  for (int i = 0; i < 11; ++i) many += pem;
  EXPECT_FALSE(check_certificate(many, rules, in_time));

  rules.trusted = trust_store::from_pem(pem).value();
  EXPECT_TRUE(check_certificate(pem, rules, in_time));
  rules.trusted = trust_store::from_pem(other).value();
  const auto untrusted = check_certificate(pem, rules, in_time);
  ASSERT_FALSE(untrusted);
  EXPECT_EQ(code_word(untrusted.error().code), "signature_mismatch");
  EXPECT_FALSE(trust_store::from_pem("nothing"));
}

TEST(Certificates, TheSchemesHostsAreTheNames) {
  vector_request v = load_vector("paypal/valid");
  const auto needed = which_key(v.how, v.message(), v.keys, v.now).value().value();
  const auto in_time = at_unix(1800000000);
  const auto fetched = read_fetched_key(v.how, needed, v.certificates.begin()->second, {}, in_time);
  ASSERT_TRUE(fetched) << fetched.error().detail;
  EXPECT_TRUE(fetched->until.has_value());
  EXPECT_EQ(fetched->cache_key, needed.url);
  EXPECT_FALSE(
      read_fetched_key(v.how, needed, load_vector("aws-sns/valid-no-subject").certificates.begin()->second, {}, in_time));
  EXPECT_FALSE(read_fetched_key(v.how, needed, v.certificates.begin()->second, {}, at_unix(1700000000)));
}

}  // namespace
}  // namespace recibo::verify
