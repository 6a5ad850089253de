// Malformed requests of every kind, and bounds: what no vector shows.
#include "vector_support.hpp"

#include "recibo/core/digest.hpp"

namespace recibo::verify {
namespace {

using namespace testing;

TEST(Malformed, PublicKeySignaturesOfEveryWrongLength) {
  for (const char* name : {"discord/valid-unicode", "wise/doc-valid", "standard-webhooks-v1a/valid"}) {
    const vector_request right = load_vector(name);
    ASSERT_EQ(vector_request(right).judge(), "valid") << name;
    const std::string header = right.how.name == "discord" ? "X-Signature-Ed25519"
                               : right.how.name == "wise"  ? "X-Signature-SHA256"
                                                           : "webhook-signature";
    vector_request first = right;
    const std::string text = first.header(header);
    const std::string prefix = text.starts_with("v1a,") ? "v1a," : "";
    const bool hex = right.how.signature.encoding == signature_encoding::hex;
    const std::string bytes = (hex ? from_hex(text) : from_base64(text.substr(prefix.size()))).value();
    for (const std::string& other : {bytes.substr(1), bytes + '\0', std::string(1, '\0') + bytes, bytes.substr(0, 1),
                                     std::string(bytes.size(), '\0'), std::string(bytes.size(), '\xff'), bytes + bytes}) {
      vector_request v = right;
      v.header(header) = prefix + (hex ? to_hex(other) : to_base64(other));
      EXPECT_EQ(v.judge(), "signature_mismatch") << name << ' ' << other.size();
    }
    vector_request empty = right;
    empty.header(header) = prefix;
    EXPECT_EQ(empty.judge(), "signature_missing") << name;
    vector_request twice = right;
    twice.sent.emplace_back(header, text);
    EXPECT_EQ(twice.judge(), "signature_repeated") << name;
  }
}

TEST(Malformed, EcdsaIsDerWithoutStrayBytes) {
  vector_request v = load_vector("sendgrid/doc-invalid-no-crlf");
  v.body += "\r\n";
  const std::string header = "X-Twilio-Email-Event-Webhook-Signature";
  ASSERT_EQ(v.judge(), "valid");
  const std::string der = from_base64(v.header(header)).value();
  for (const std::string& other :
       {der + '\0', der.substr(0, der.size() - 1), der.substr(2), std::string("\x30\x00", 2),
        std::string("\x30\x06\x02\x01\x00\x02\x01\x00", 8), der.substr(4, 32) + der.substr(der.size() - 32)}) {
    v.header(header) = to_base64(other);
    EXPECT_EQ(v.judge(), "signature_mismatch") << other.size();
  }
}

TEST(Malformed, FewPublicKeySignaturesAreLookedAt) {
  vector_request v = load_vector("standard-webhooks-v1a/valid");
  std::string& text = v.header("webhook-signature");
  const std::string good = text;
  std::string many;
  for (int i = 0; i < 7; ++i) many += "v1a," + to_base64(std::string(64, static_cast<char>(i))) + ' ';
  text = many + good;
  EXPECT_EQ(v.judge(), "valid");
  text = many + "v1a,AAAA " + good;
  EXPECT_EQ(v.judge(), "signature_mismatch");
}

TEST(Malformed, KeysThatAreNone) {
  const auto refused = [](const char* preset, std::string text) {
    return !prepare(presets().at(preset),
                    *std::make_unique<named_secret>(named_secret{
                        .name = "s", .text = secret(std::move(text)), .from = {}, .until = {}, .key = {}, .ready = {}}));
  };
  const std::string ed25519 = "MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=";
  EXPECT_FALSE(refused("standard-webhooks-v1a", ed25519));
  EXPECT_FALSE(refused("standard-webhooks-v1a", "whpk_rnN2DHZ9ASONqD70QyphwYJOI2I1PMxfLKlySiuc61A="));
  EXPECT_TRUE(refused("standard-webhooks-v1a", "whpk_rnN2DHZ9ASONqD70QyphwYJOI2I1PMxfLKlySiuc6w=="));  // 31 bytes
  EXPECT_TRUE(refused("discord", "c58469e635e31efc471458e5874574133b2f13b6f44236eda119b7d6abe708"));
  EXPECT_TRUE(refused("discord", "no hex"));
  EXPECT_TRUE(refused("wise", ed25519));
  EXPECT_TRUE(refused("wise", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n"));
  EXPECT_TRUE(refused("wise", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"));
  EXPECT_TRUE(refused("sendgrid", ed25519));
  EXPECT_TRUE(refused("sendgrid", ed25519 + "AAAA"));
  EXPECT_TRUE(refused("plaid", "{}"));
  EXPECT_TRUE(refused("plaid", "secret"));
  EXPECT_TRUE(refused("aws-sns", "secret"));
  EXPECT_TRUE(refused("braintree", "only-one-part"));
  EXPECT_TRUE(refused("braintree", "|private"));
  EXPECT_TRUE(refused("braintree", "public|"));
  // An RSA key of 1024 bits, made with openssl for this test and thrown away.
  EXPECT_TRUE(refused("wise",
                      "MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDLf7AWiXpUthjJCyLVUhK0OdA4mps6pLVpfJ5OkVP5jqRDh9n38E+"
                      "E4Ncvp28aXdBhCFHb5OmpRSnQtaICOo2iLKqGckO9jSC7kn5EiHjbqf0r63dK+"
                      "yYKjEJhb0BYGwOmnXdpBGkn8nJxyBAuJYv5R40fvWLnPLkHqgOcobfBKwIDAQAB"));
}

TEST(Malformed, ItemsAreCountedAndBounded) {
  const vector_request right = load_vector("adyen/doc-docs-example");
  const auto judged = [&](std::string body) {
    vector_request v = right;
    v.body = std::move(body);
    return v.judge();
  };
  const std::string item = right.body.substr(right.body.find('[') + 1, right.body.rfind(']') - right.body.find('[') - 1);
  const auto batch = [&](std::size_t count) {
    std::string out = R"({"notificationItems":[)";
    for (std::size_t i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + item;
    return out + "]}";
  };
  EXPECT_EQ(judged(batch(1)), "valid");
  EXPECT_EQ(judged(batch(items_max)), "valid");
  EXPECT_EQ(judged(batch(items_max + 1)), "content_missing");
  EXPECT_EQ(judged(batch(0)), "content_missing");
  EXPECT_EQ(judged("{}"), "content_missing");
  EXPECT_EQ(judged("[]"), "content_missing");
  EXPECT_EQ(judged(""), "content_missing");
  EXPECT_EQ(judged(R"({"notificationItems":{}})"), "content_missing");
  EXPECT_EQ(judged(R"({"notificationItems":null})"), "content_missing");
  EXPECT_EQ(judged(R"({"notificationItems":[{}]})"), "signature_missing");
  EXPECT_EQ(judged(R"({"notificationItems":[null]})"), "signature_missing");
  EXPECT_EQ(judged(R"({"notificationItems":[)" + item + R"(,{"other":1}]})"), "signature_missing");
  // A name twice is ambiguous: which of the two would a reader take?
  EXPECT_EQ(judged(R"({"notificationItems":[],"notificationItems":[)" + item + "]}"), "content_missing");
  EXPECT_EQ(judged(batch(1) + "x"), "content_missing");
  // The same array elsewhere is another one.
  EXPECT_EQ(judged(R"({"a":)" + batch(1) + "}"), "content_missing");
}

TEST(Malformed, ItemsMayBeSignedByDifferentSecrets) {
  vector_request v = load_vector("adyen/valid-two-items");
  const std::string old_key = std::string(64, '1');
  v.keys = make_keys(v.how, {old_key, std::string(v.keys.secrets.front().text.reveal())});
  const auto found = verify(v.how, v.message(), v.keys, v.now);
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, "s2");
}

TEST(Malformed, FormsAreBoundedAndTyped) {
  vector_request v = load_vector("twilio/doc-example");
  ASSERT_EQ(v.judge(), "valid");
  vector_request many = v;
  for (std::size_t i = 0; i < fields_max; ++i) many.body += "&a=";
  EXPECT_EQ(many.judge(), "content_missing");
  // The fields of a body that says it is something else are not signed, so it must be covered by its hash.
  vector_request typed = v;
  typed.header("Content-Type") = "application/json";
  EXPECT_EQ(typed.judge(), "content_missing");
  vector_request untyped = v;
  untyped.drop("Content-Type");
  EXPECT_EQ(untyped.judge(), "content_missing");
  vector_request two_types = v;
  two_types.sent.emplace_back("content-type", "application/json");
  EXPECT_EQ(two_types.judge(), "content_missing");
  vector_request capitals = v;
  capitals.header("Content-Type") = "Application/X-WWW-Form-Urlencoded ; charset=utf-8";
  EXPECT_EQ(capitals.judge(), "valid");
}

TEST(Malformed, TwiliosAlgorithmIsOneOfTwo) {
  const vector_request right = load_vector("twilio/valid-shared-key-sha256");
  ASSERT_EQ(vector_request(right).judge(), "valid");
  const auto with = [&](std::string settings) {
    vector_request v = right;
    v.header("X-Twilio-Webhooks-Signature-Settings") = std::move(settings);
    return v.judge();
  };
  EXPECT_EQ(with("algorithm=HMAC_SHA256"), "valid");
  EXPECT_EQ(with(" key = a , algorithm = HMAC_SHA256 "), "valid");
  for (const char* other : {"algorithm=HMAC_SHA1", "algorithm=HMAC_MD5", "algorithm=none", "algorithm=", "key=a", "",
                            "HMAC_SHA256", "algorithm=hmac_sha256", "algorithm=HMAC_SHA256,algorithm=HMAC_SHA256"}) {
    EXPECT_EQ(with(other), "signature_mismatch") << other;
  }
  vector_request absent = right;
  absent.drop("X-Twilio-Webhooks-Signature-Settings");
  EXPECT_EQ(absent.judge(), "signature_mismatch");  // SHA-1 then
  vector_request twice = right;
  twice.sent.emplace_back("x-twilio-webhooks-signature-settings", "algorithm=HMAC_SHA256");
  EXPECT_EQ(twice.judge(), "signature_repeated");
}

TEST(Malformed, TwiliosPortsBothWays) {
  vector_request v = load_vector("twilio/doc-port-443-signed");
  for (const char* url : {"https://mycompany.com/myapp.php?foo=1&bar=2", "https://mycompany.com:443/myapp.php?foo=1&bar=2",
                          "https://mycompany.com:1234/myapp.php?foo=1&bar=2"}) {
    v.url = url;
    EXPECT_EQ(v.judge(), "valid") << url;
  }
  for (const char* url :
       {"http://mycompany.com/myapp.php?foo=1&bar=2", "https://mycompany.com:1234/other?foo=1&bar=2", "mycompany.com"}) {
    v.url = url;
    EXPECT_EQ(v.judge(), "signature_mismatch") << url;
  }
}

TEST(Malformed, TheHashOfABodyStandsOnce) {
  const scheme& how = presets().at("twilio");
  const auto key = make_secret(how, "s", "12345");
  const std::string body = R"({"a":1})";
  const std::string hash = to_hex(binary(sha256(body)));
  const auto judged = [&](const std::string& query, std::string_view sent_body) {
    const std::string url = "https://hooks.example.com/in" + query;
    headers sent{{"Content-Type", "application/json"}};
    const auto added = sign(how, signed_message{"POST", url, "", sent, sent_body}, key, at_unix(0)).value();
    sent.insert(sent.end(), added.begin(), added.end());
    return verdict(verify(how, signed_message{"POST", url, "", sent, sent_body}, keyring{{key}}, at_unix(0)));
  };
  EXPECT_EQ(judged("?bodySHA256=" + hash, body), "valid");
  EXPECT_EQ(judged("?bodySHA256=" + hash, body + " "), "signature_mismatch");
  EXPECT_EQ(judged("", body), "content_missing");
  EXPECT_EQ(judged("?bodysha256=" + hash, body), "content_missing");
  EXPECT_EQ(judged("?bodySHA256=" + hash + "&bodySHA256=" + hash, body), "signature_repeated");
  EXPECT_EQ(judged("?bodySHA256=", body), "signature_mismatch");
  EXPECT_EQ(judged("?bodySHA256=" + hash.substr(2), body), "signature_mismatch");
  EXPECT_EQ(judged("", ""), "valid");  // there is nothing to cover
}

TEST(Malformed, PlivosParts) {
  vector_request v = load_vector("plivo-v3/valid-post");
  ASSERT_EQ(v.judge(), "valid");
  vector_request shuffled = v;
  shuffled.body = "CallUUID=c-1&To=%2B15551230000&From=%2B15559990000";
  EXPECT_EQ(shuffled.judge(), "valid");
  vector_request more = v;
  more.body += "&x=1";
  EXPECT_EQ(more.judge(), "signature_mismatch");
  vector_request json = v;
  json.header("Content-Type") = "application/json";
  EXPECT_EQ(json.judge(), "content_missing");
  vector_request nonce = v;
  nonce.drop("X-Plivo-Signature-V3-Nonce");
  EXPECT_EQ(nonce.judge(), "content_missing");
  vector_request list = v;
  list.header("X-Plivo-Signature-V3") = "AAAA, " + list.header("X-Plivo-Signature-V3") + " ,";
  EXPECT_EQ(list.judge(), "valid");
}

TEST(Malformed, BraintreesPairs) {
  const vector_request right = load_vector("braintree/valid");
  const auto with = [&](std::string_view from, std::string_view to) {
    vector_request v = right;
    v.body.replace(v.body.find(from), from.size(), to);
    return v.judge();
  };
  EXPECT_EQ(with("integration_public_key", "another_public_key"), "signature_mismatch");
  EXPECT_EQ(with("integration_public_key", "x%7C00%26integration_public_key"), "valid");  // a pair of another key beside it
  EXPECT_EQ(with("%7C", ""), "signature_missing");
  EXPECT_EQ(with("bt_signature", "bt_signatures"), "signature_missing");
  EXPECT_EQ(with("bt_payload", "bt_payloads"), "content_missing");
  EXPECT_EQ(with("bt_payload=", "bt_payload=x&bt_payload="), "signature_repeated");
  EXPECT_EQ(with("bt_signature=", "bt_signature=x&bt_signature="), "signature_repeated");
  // The line end at the end of the payload may have been lost.
  EXPECT_EQ(with("%3D%0A", "%3D"), "valid");
  EXPECT_EQ(with("%3D%0A", "%3D%0A%0A"), "signature_mismatch");
}

TEST(Malformed, SharedTokensOfEveryItem) {
  const scheme& how = presets().at("microsoft-graph");
  const auto keys = make_keys(how, {"client-state"});
  const auto judged = [&](std::string_view body) { return run(how, {}, body, keys, at_unix(0)); };
  EXPECT_EQ(judged(R"({"value":[{"clientState":"client-state"},{"clientState":"client-state"}]})"), "valid");
  EXPECT_EQ(judged(R"({"value":[{"clientState":"client-state"},{"clientState":"other"}]})"), "signature_mismatch");
  EXPECT_EQ(judged(R"({"value":[{"clientState":"client-state"},{}]})"), "signature_missing");
  EXPECT_EQ(judged(R"({"value":[{"clientState":""}]})"), "signature_missing");
  EXPECT_EQ(judged(R"({"value":[]})"), "content_missing");
}

}  // namespace
}  // namespace recibo::verify
