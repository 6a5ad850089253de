// Why a request does not verify: one row for each thing that goes wrong on the way between a sender and us.
#include "support.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/verify/diagnose.hpp"
#include "recibo/verify/signed_digest.hpp"

#include <functional>

namespace recibo::verify {
namespace {

using namespace testing;

// A request, and what is configured for it; rightly signed by the first secret unless a case changes something.
struct situation {
  scheme how = p1_scheme();
  scheme signed_by = p1_scheme();  // what the sender does
  std::string secret_text = "test-secret-A";
  std::vector<std::string> secrets{"test-secret-A"};
  std::string signed_body{b0}, body{b0};
  std::string signed_url, url;
  std::string time = std::to_string(b0_time);
  headers more;
  std::function<void(headers&)> on_the_way = [](headers&) {};
  std::function<void(keyring&)> configured = [](keyring&) {};
  sys_micros now = at_unix(b0_time);
  effort bound{};
};

diagnosis look(const situation& s) {
  headers sent{{"Content-Type", "application/json"}};
  if (s.signed_by.timestamp && s.signed_by.timestamp->from == place::header) sent.emplace_back("X-Timestamp", s.time);
  sent.insert(sent.end(), s.more.begin(), s.more.end());
  const named_secret key = make_secret(s.signed_by, "sender", s.secret_text);
  const auto made = sign(s.signed_by, signed_message{"POST", s.signed_url, "", sent, s.signed_body}, key, s.now);
  EXPECT_TRUE(made);
  sent.insert(sent.end(), made->begin(), made->end());
  s.on_the_way(sent);
  keyring keys = make_keys(s.how, s.secrets);
  s.configured(keys);
  static const scheme github = presets().at("github");
  static const keyring githubs = make_keys(github, {"the-secret-of-github"});
  const other_sender others[] = {{"code-host", &github, &githubs}};
  return diagnose({s.how, {"POST", s.url, "", sent, s.body}, keys, s.now, others, s.bound});
}

scheme body_only() {
  return parse_scheme("plain", R"({"signature":{"names":["x-signature"]},"content":[{"body":true}]})").value();
}
scheme with_url() {
  return parse_scheme("url", R"({"signature":{"names":["x-signature"]},"content":[{"url":"full"},{"body":true}]})").value();
}
void both(situation& s, const scheme& how) { s.how = s.signed_by = how; }

TEST(Diagnose, WhatVerifiesHasNoCause) {
  const auto d = look({});
  EXPECT_TRUE(d.verdict);
  EXPECT_EQ(d.why, cause::none);
  EXPECT_EQ(d.secret, "s1");
}

struct row {
  const char* name;
  cause why;
  const char* says;  // a part of the explanation
  std::function<void(situation&)> change;
};

class Diagnose : public ::testing::TestWithParam<row> {};

TEST_P(Diagnose, NamesTheCause) {
  situation s;
  GetParam().change(s);
  const auto d = look(s);
  EXPECT_FALSE(d.verdict);
  EXPECT_EQ(to_string(d.why), to_string(GetParam().why)) << d.explanation;
  EXPECT_NE(d.explanation.find(GetParam().says), std::string::npos) << d.explanation;
  for (const auto& secret : s.secrets) EXPECT_EQ(d.explanation.find(secret), std::string::npos);
  EXPECT_EQ(d.explanation.find("req-1001"), std::string::npos) << "nothing of the body";
}

constexpr const char* text_body = R"({"id":"é/x","n":1.50,"list":[1,2],"o":{}})";

const row rows[] = {
    {"LineFeedAdded", cause::body_changed, "line feed at the end of the body removed", [](situation& s) { s.body += '\n'; }},
    {"LineFeedLost", cause::body_changed, "line feed added", [](situation& s) { s.signed_body += '\n'; }},
    {"CrLfLost", cause::body_changed, "CR LF) added", [](situation& s) { s.signed_body += "\r\n"; }},
    {"LineEndsChanged", cause::body_changed, "written as CR LF",
     [](situation& s) {
       s.signed_body = "{\r\n\"a\":1\r\n}";
       s.body = "{\n\"a\":1\n}";
     }},
    {"ByteOrderMark", cause::body_changed, "byte order mark before the body removed",
     [](situation& s) { s.body.insert(0, "\xef\xbb\xbf"); }},
    {"PythonJson", cause::body_changed, "without blanks",
     [](situation& s) {
       s.signed_body = text_body;
       s.body = R"({"id": "\u00e9/x", "n": 1.50, "list": [1, 2], "o": {}})";
     }},
    {"Indented", cause::body_changed, "indented by two blanks",
     [](situation& s) {
       s.body = text_body;
       s.signed_body = "{\n  \"id\": \"é/x\",\n  \"n\": 1.50,\n  \"list\": [\n    1,\n    2\n  ],\n  \"o\": {}\n}";
     }},
    {"PhpJson", cause::body_changed, "PHP",
     [](situation& s) {
       s.body = text_body;
       s.signed_body = R"({"id":"\u00e9\/x","n":1.50,"list":[1,2],"o":{}})";
     }},
    {"TwiceUtf8", cause::body_changed, "once instead of twice",
     [](situation& s) {
       s.signed_body = "\"\xc3\xa9\"";
       s.body = "\"\xc3\x83\xc2\xa9\"";
     }},
    {"Base64Body", cause::body_changed, "decoded from base64", [](situation& s) { s.body = to_base64(b0); }},
    {"WrongPort", cause::url_differs, "port 443",
     [](situation& s) {
       both(s, with_url());
       s.signed_url = "https://hooks.example.com:443/in";
       s.url = "https://hooks.example.com/in";
     }},
    {"WrongScheme", cause::url_differs, "https://",
     [](situation& s) {
       both(s, with_url());
       s.signed_url = "https://hooks.example.com/in?a=1";
       s.url = "http://hooks.example.com/in?a=1";
     }},
    {"SlashLost", cause::url_differs, "slash",
     [](situation& s) {
       both(s, with_url());
       s.signed_url = "https://hooks.example.com/in/";
       s.url = "https://hooks.example.com/in";
     }},
    {"InternalHost", cause::url_differs, "header host",
     [](situation& s) {
       both(s, with_url());
       s.signed_url = "https://hooks.example.com/in";
       s.url = "https://internal:8443/in";
       s.more = {{"Host", "hooks.example.com"}};
     }},
    {"Milliseconds", cause::timestamp_form, "milliseconds", [](situation& s) { s.time = std::to_string(b0_time * 1000); }},
    {"MillisecondsWanted", cause::timestamp_form, "seconds",
     [](situation& s) { s.how.timestamp->format = timestamp_format::unix_ms; }},
    {"NoNumber", cause::timestamp_form, "format", [](situation& s) { s.time = "soon"; }},
    {"Late", cause::too_old, "10 minutes old", [](situation& s) { s.time = std::to_string(b0_time - 600); }},
    {"Ahead", cause::clock_ahead, "6 minutes ahead", [](situation& s) { s.time = std::to_string(b0_time + 400); }},
    {"LateAndChanged", cause::body_changed, "Besides",
     [](situation& s) {
       s.time = std::to_string(b0_time - 600);
       s.body += '\n';
     }},
    {"NoTimestamp", cause::timestamp_missing, "time stamp",
     [](situation& s) {
       s.on_the_way = [](headers& h) { std::erase_if(h, [](const auto& one) { return one.first == "X-Timestamp"; }); };
     }},
    {"Repeated", cause::header_repeated, "twice", [](situation& s) { s.on_the_way = [](headers& h) { h.push_back(h.back()); }; }},
    {"NoSignature", cause::header_missing, "no signature", [](situation& s) { s.on_the_way = [](headers& h) { h.pop_back(); }; }},
    {"RenamedByProxy", cause::header_renamed, "header x-proxied-signature",
     [](situation& s) { s.on_the_way = [](headers& h) { h.back().first = "X-Proxied-Signature"; }; }},
    {"Base64ForHex", cause::signature_form, "base64",
     [](situation& s) { s.signed_by.signature.encoding = signature_encoding::base64; }},
    {"NoPrefix", cause::signature_form, "no prefix", [](situation& s) { s.signed_by.signature.prefix.clear(); }},
    {"RenamedAndBase64", cause::header_renamed, "and with the signature read as base64",
     [](situation& s) {
       s.signed_by.signature.encoding = signature_encoding::base64;
       s.on_the_way = [](headers& h) { h.back().first = "X-Elsewhere"; };
     }},
    {"NewlineInTheSendersSecret", cause::secret_form, "line feed behind",
     [](situation& s) { s.secret_text = "test-secret-A\n"; }},
    {"DecodedByTheSender", cause::secret_form, "decoded from base64",
     [](situation& s) {
       s.secrets = {to_base64("raw key bytes of the sender")};
       s.secret_text = "raw key bytes of the sender";
     }},
    {"NotDecodedByTheSender", cause::secret_form, "neither decoded",
     [](situation& s) {
       s.how.key.strip_prefix = "whsec_";
       s.how.key.encoding = text_encoding::base64;
       s.secrets = {"whsec_" + to_base64("a secret that is not decoded")};
       s.secret_text = s.secrets.front();
     }},
    {"OutsideItsValidity", cause::secret_not_valid, "secret s1",
     [](situation& s) { s.configured = [](keyring& k) { k.secrets[0].until = at_unix(b0_time - 10); }; }},
    {"OtherProvidersSecret", cause::other_provider, "code-host", [](situation& s) { s.secret_text = "the-secret-of-github"; }},
    {"OtherHash", cause::other_scheme, "SHA-512", [](situation& s) { s.signed_by.hash = hash_name::sha512; }},
    {"OtherPreset", cause::other_scheme, "preset stripe", [](situation& s) { s.signed_by = presets().at("stripe"); }},
    {"BodyAlone", cause::other_scheme, "body alone", [](situation& s) { s.signed_by.content = body_only().content; }},
    {"TwoThingsAtOnce", cause::secret_form, "and with",
     [](situation& s) {
       s.secret_text = "test-secret-A\n";
       s.body += '\n';
     }},
    {"Nobody", cause::secret_of_nobody, "another secret", [](situation& s) { s.secret_text = "somebody else's"; }},
};

INSTANTIATE_TEST_SUITE_P(All, Diagnose, ::testing::ValuesIn(rows), [](const auto& one) { return one.param.name; });

TEST(Diagnose, ItsCostIsBounded) {
  situation s;
  s.secret_text = "somebody else's";
  s.body = std::string(200'000, 'x');
  s.bound = small_effort;
  const auto d = look(s);
  EXPECT_EQ(d.why, cause::not_examined);
  EXPECT_LE(d.trials, 8u) << "large bodies use the bytes up";
  s.body = std::string(b0);
  const auto small = look(s);
  EXPECT_LE(small.trials, small_effort.trials_max);
}

// The commonest case of all is told within the effort that strangers are given, however many providers there are.
TEST(Diagnose, AWrongSecretIsToldWithinASmallEffort) {
  for (const int providers : {1, 5, 50, 60}) {
    for (const std::size_t length : {std::size_t{130}, std::size_t{4'000}}) {
      const scheme how = presets().at("stripe"), wanted = p1_scheme();
      std::vector<scheme> schemes;
      std::vector<keyring> keys;
      std::vector<std::string> names;
      for (int i = 1; i < providers; ++i) {
        schemes.push_back(i % 2 == 0 ? presets().at("github") : presets().at("standard-webhooks"));
        const std::string text = i % 2 == 0 ? "secret of code host " + std::to_string(i)
                                            : "whsec_" + to_base64("secret of 32 bytes, number " + std::to_string(10'000 + i));
        keys.push_back(make_keys(schemes.back(), {text}));
        names.push_back("provider-" + std::to_string(i));
      }
      std::vector<other_sender> others;
      for (std::size_t i = 0; i < keys.size(); ++i) others.push_back({names[i], &schemes[i], &keys[i]});
      const std::string body = R"({"request_id":"req-1","text":")" + std::string(length, 'x') + R"("})";
      headers sent{{"Content-Type", "application/json"},
                   {"User-Agent", "a sender with a name of some length/1.0 (+https://example.com)"}};
      const auto made =
          sign(how, {"POST", "", "", sent, body}, make_secret(how, "sender", "whsec_of_somebody_else"), at_unix(b0_time));
      ASSERT_TRUE(made);
      sent.insert(sent.end(), made->begin(), made->end());
      const keyring own = make_keys(how, {"whsec_that_is_configured"});
      const auto d = diagnose({how, {"POST", "", "", sent, body}, own, at_unix(b0_time), others, small_effort});
      EXPECT_EQ(d.why, cause::secret_of_nobody) << providers << ' ' << length << ": " << d.explanation;
      EXPECT_NE(d.explanation.find("another secret"), std::string::npos) << d.explanation;
      EXPECT_LE(d.trials, small_effort.trials_max);
      // The secret of another is found all the same, also the last one's.
      if (providers == 1) continue;
      const named_secret& theirs = keys.back().secrets.front();
      const auto theirs_made =
          sign(how, {"POST", "", "", {}, body}, make_secret(how, "sender", std::string(theirs.text.reveal())), at_unix(b0_time));
      ASSERT_TRUE(theirs_made);
      const auto mixed = diagnose({how, {"POST", "", "", *theirs_made, body}, own, at_unix(b0_time), others, small_effort});
      EXPECT_EQ(mixed.why, cause::other_provider) << providers << ' ' << mixed.explanation;
    }
  }
}

TEST(Findings, ShowWhatIsSignedWithoutObeyingIt) {
  const headers sent{{"X-Timestamp", "1790848790"}, {"X-Signature", "sha256=ab"}};
  const auto f = look_into(p1_scheme(), {"POST", "", "", sent, "{\"a\":\"\x1b[1m\"}\r\n"}, at_unix(b0_time));
  EXPECT_EQ(f.content, "1790848790.{\"a\":\"\\x1b[1m\"}\\r\\n");
  EXPECT_EQ(f.content_size, 25u);
  EXPECT_EQ(f.timestamp, "1790848790");
  EXPECT_EQ(f.age, std::chrono::seconds(10));
  ASSERT_EQ(f.signatures.size(), 1u);
  EXPECT_EQ(f.signatures[0].name, "x-signature");
  EXPECT_EQ(f.signatures[0].times, 1);
  EXPECT_EQ(f.signatures[0].length, 9u);
  const std::string large(10'000, 'x');
  EXPECT_LE(look_into(p1_scheme(), {"POST", "", "", sent, large}, at_unix(b0_time)).content->size(), shown_max + 64);
}

TEST(SignedDigest, IsOfWhatIsSignedAndOfNothingElse) {
  const scheme form = parse_scheme("f", R"({"signature":{"from":"form","name":"sig"},"content":[{"form":"payload"}]})").value();
  const auto of = [&](std::string_view body) { return signed_digest(form, {"POST", "", "", {}, body}); };
  EXPECT_EQ(of("payload=a%20b&sig=00"), of("x=1&sig=00&payload=a+b"));
  EXPECT_NE(of("payload=a%20b&sig=00"), of("payload=a%20c&sig=00"));
  const headers early{{"Stripe-Signature", "t=1,v1=00"}}, late{{"Stripe-Signature", "v1=00, t=2"}};
  const auto stripe = [&](const headers& h) { return signed_digest(presets().at("stripe"), {"POST", "", "", h, "{}"}); };
  EXPECT_NE(stripe(early), stripe(late)) << "the time stamp is signed";
  const scheme token = parse_scheme("t", R"({"kind":"token","signature":{"names":["x"],"encoding":"text"}})").value();
  EXPECT_EQ(signed_digest(token, {"POST", "", "", {}, "a"}), sha256("a")) << "without signed content it is the body";
}

}  // namespace
}  // namespace recibo::verify
