// Every provider's verification request, and what somebody would send who is none: long, repeated, encoded and forged challenges.
// Expected hashes were made with openssl, not with code of this project.
#include "support.hpp"

#include "recibo/core/json.hpp"
#include "recibo/receive/handshakes.hpp"

#include <initializer_list>

namespace recibo::receive {
namespace {

using namespace testing;
using config::handshake_kind;
using headers = http::header_list;

constexpr sys_micros noon{std::chrono::seconds(1790848800)};

config::provider with(handshake_kind kind, std::string token = {}, std::string secret_text = "test-secret-A") {
  config::provider out = p1();
  out.handshake.emplace();
  out.handshake->kind = kind;
  if (!token.empty()) out.handshake->token.text = secret(std::move(token));
  out.keys.secrets.front().text = secret(std::move(secret_text));
  return out;
}

http::request get(std::string query, headers more = {}) {
  http::request out;
  out.method = "GET";
  out.path = out.target = "/callbacks/p1";
  out.query = std::move(query);
  out.headers = std::move(more);
  return out;
}

http::request posted(std::string body, std::string query = {}, headers more = {}) {
  http::request out = get(std::move(query), std::move(more));
  out.method = "POST";
  out.body = std::move(body);
  return out;
}

std::string header_of(const http::response& r, std::string_view name) {
  return std::string(http::find_header(r.headers, name).value_or(""));
}

struct row {
  const char* name;
  http::request asked;
  int status;
  std::string body;  // of a 200
};

void expect(const config::provider& of, const std::vector<row>& rows, std::string_view type) {
  for (const row& one : rows) {
    const http::response told = answer_question(of, one.asked, noon);
    EXPECT_EQ(told.status, one.status) << one.name;
    if (one.status == 200) {
      EXPECT_EQ(told.body, one.body) << one.name;
      EXPECT_EQ(told.content_type, type) << one.name;
      EXPECT_EQ(header_of(told, "Cache-Control"), "no-store") << one.name;
    } else {
      EXPECT_EQ(told.content_type, "application/problem+json") << one.name;
      EXPECT_EQ(told.body.find("canary"), std::string::npos) << one.name << ": nothing of the request comes back";
    }
    EXPECT_TRUE(told.headers.size() <= 2) << one.name;
  }
}

const std::string right = "hub.mode=subscribe&hub.verify_token=vt-1&hub.challenge=";

TEST(Handshakes, MetaEchoesForTheRightTokenAlone) {
  expect(with(handshake_kind::meta, "vt-1"),
         {{"number", get(right + "1158201444"), 200, "1158201444"},
          {"script as text", get(right + "%3Cscript%3Ealert(1)%3C%2Fscript%3E"), 200, "<script>alert(1)</script>"},
          {"any order", get("hub.challenge=7&hub.verify_token=vt-1&hub.mode=subscribe&more=1"), 200, "7"},
          {"encoded names and token", get("hub%2Emode=subscribe&hub.verify%5Ftoken=%76t-1&hub.challenge=7"), 200, "7"},
          {"plus is a blank", get(right + "a+b"), 200, "a b"},
          {"longest", get(right + std::string(challenge_max, 'x')), 200, std::string(challenge_max, 'x')},
          {"wrong token", get("hub.mode=subscribe&hub.verify_token=bad&hub.challenge=canary"), 403, {}},
          {"longer token", get("hub.mode=subscribe&hub.verify_token=vt-11&hub.challenge=canary"), 403, {}},
          {"shorter token", get("hub.mode=subscribe&hub.verify_token=vt-&hub.challenge=canary"), 403, {}},
          {"other case", get("hub.mode=subscribe&hub.verify_token=VT-1&hub.challenge=canary"), 403, {}},
          {"empty token", get("hub.mode=subscribe&hub.verify_token=&hub.challenge=canary"), 403, {}},
          {"no token", get("hub.mode=subscribe&hub.challenge=canary"), 403, {}},
          {"no query", get(""), 403, {}},
          {"token twice, right first", get(right + "canary&hub.verify_token=bad"), 403, {}},
          {"token twice, right last", get("hub.verify_token=bad&" + right + "canary"), 403, {}},
          {"token twice the same", get("hub.verify_token=vt-1&" + right + "canary"), 403, {}},
          {"other mode", get("hub.mode=unsubscribe&hub.verify_token=vt-1&hub.challenge=canary"), 403, {}},
          {"no mode", get("hub.verify_token=vt-1&hub.challenge=canary"), 403, {}},
          {"broken escape", get(right + "canary%zz"), 403, {}},
          {"no challenge", get("hub.mode=subscribe&hub.verify_token=vt-1"), 400, {}},
          {"empty challenge", get(right), 400, {}},
          {"challenge twice", get(right + "canary&hub.challenge=canary"), 400, {}},
          {"too long", get(right + std::string(challenge_max + 1, 'x')), 400, {}},
          {"10 kB", get(right + "canary" + std::string(10'000, 'x')), 400, {}},
          {"header injection", get(right + "canary%0d%0aSet-Cookie:%20a=b"), 400, {}},
          {"line feed", get(right + "canary%0a"), 400, {}},
          {"NUL", get(right + "canary%00"), 400, {}},
          {"DEL", get(right + "canary%7f"), 400, {}},
          {"not ASCII", get(right + "canary%c3%a4"), 400, {}},
          {"broken UTF-8", get(right + "canary%ff"), 400, {}}},
         "text/plain");
}

TEST(Handshakes, ATokenOutsideItsValidityIsNone) {
  config::provider of = with(handshake_kind::meta, "vt-1");
  of.handshake->token.until = noon;
  EXPECT_EQ(answer_question(of, get(right + "7"), noon).status, 403);
  EXPECT_EQ(answer_question(of, get(right + "7"), noon - std::chrono::seconds(1)).status, 200);
}

TEST(Handshakes, DropboxEchoes) {
  expect(with(handshake_kind::dropbox),
         {{"challenge", get("challenge=AbC-_123"), 200, "AbC-_123"},
          {"none", get(""), 400, {}},
          {"twice", get("challenge=canary&challenge=canary"), 400, {}},
          {"line end", get("challenge=canary%0D%0A"), 400, {}},
          {"other name", get("Challenge=canary"), 400, {}}},
         "text/plain");
}

TEST(Handshakes, OktaWantsJson) {
  const std::string name = "X-Okta-Verification-Challenge";
  expect(with(handshake_kind::okta),
         {{"challenge", get("", {{name, "my-challenge"}}), 200, R"({"verification":"my-challenge"})"},
          {"any case", get("", {{"x-okta-verification-CHALLENGE", "c"}}), 200, R"({"verification":"c"})"},
          {"stays inside its string", get("", {{name, R"(a","admin":"b\)"}}), 200, R"({"verification":"a\",\"admin\":\"b\\"})"},
          {"none", get(""), 400, {}},
          {"twice", get("", {{name, "canary"}, {name, "canary"}}), 400, {}},
          {"not ASCII", get("", {{name, "canary\xc3\xa4"}}), 400, {}},
          {"long", get("", {{name, "canary" + std::string(challenge_max, 'x')}}), 400, {}}},
         "application/json");
}

TEST(Handshakes, BraintreeProvesThePrivateKey) {
  // openssl: HMAC-SHA1 keyed with SHA1("private-1") over the challenge.
  expect(with(handshake_kind::braintree, {}, "public-1|private-1"),
         {{"20 digits", get("bt_challenge=20f9f8ed05f77439fe95"), 200, "public-1|4650250bb0bcec6c216839850c84d6f437571330"},
          {"none", get(""), 400, {}},
          {"19", get("bt_challenge=20f9f8ed05f77439fe9"), 400, {}},
          {"33", get("bt_challenge=20f9f8ed05f77439fe9520f9f8ed05f774"), 400, {}},
          {"no hex", get("bt_challenge=20f9f8ed05f77439fe9g"), 400, {}},
          {"a notification to be signed", get("bt_challenge=PG5vdGlmaWNhdGlvbj4K"), 400, {}},
          {"twice", get("bt_challenge=20f9f8ed05f77439fe95&bt_challenge=20f9f8ed05f77439fe95"), 400, {}}},
         "text/plain");
  EXPECT_EQ(answer_question(with(handshake_kind::braintree, {}, "no-bar"), get("bt_challenge=20f9f8ed05f77439fe95"), noon).status,
            503);
}

TEST(Handshakes, XProvesTheConsumerSecretAndSignsNoCallback) {
  expect(with(handshake_kind::x_twitter),
         {{"token", get("crc_token=abc-123"), 200, R"({"response_token":"sha256=7hs7PmSvFoay5Sp0EU7YyW8kQGuPOYCajm6O3uG0Qpo="})"},
          {"JSON to be signed", get("crc_token=%7B%22request_id%22%3A%22canary%22%7D"), 400, {}},
          {"a form to be signed", get("crc_token=request_id%3Dcanary%26status%3Dsucceeded"), 400, {}},
          {"one field of a form", get("crc_token=request_id%3Dcanary"), 400, {}},
          {"none", get("nonce=1"), 400, {}},
          {"long", get("crc_token=" + std::string(257, 'x')), 400, {}}},
         "application/json");
  config::provider of = with(handshake_kind::x_twitter);
  of.keys.secrets.front().until = noon;
  EXPECT_EQ(answer_question(of, get("crc_token=abc"), noon).status, 503);
}

TEST(Handshakes, MethodsAreThoseOfTheHandshake) {
  EXPECT_STREQ(methods_of(p1()), "POST");
  EXPECT_FALSE(takes_method(p1(), "GET"));
  for (const auto kind : {handshake_kind::meta, handshake_kind::dropbox, handshake_kind::okta, handshake_kind::braintree,
                          handshake_kind::x_twitter}) {
    EXPECT_STREQ(methods_of(with(kind)), "GET, POST");
    EXPECT_TRUE(takes_method(with(kind), "GET"));
    EXPECT_FALSE(takes_method(with(kind), "HEAD"));
  }
  for (const auto kind : {handshake_kind::circle, handshake_kind::intercom}) {
    EXPECT_STREQ(methods_of(with(kind)), "HEAD, POST");
    EXPECT_FALSE(takes_method(with(kind), "GET"));
    http::request head = get("");
    head.method = "HEAD";
    EXPECT_EQ(answer_question(with(kind), head, noon).status, 200);
  }
  for (const auto kind : {handshake_kind::slack, handshake_kind::zoom, handshake_kind::microsoft_graph, handshake_kind::asana}) {
    EXPECT_STREQ(methods_of(with(kind)), "POST");
    EXPECT_FALSE(takes_method(with(kind), "GET"));
    EXPECT_FALSE(takes_method(with(kind), "HEAD"));
    EXPECT_TRUE(takes_method(with(kind), "POST"));
    EXPECT_FALSE(takes_method(with(kind), "PUT"));
  }
}

TEST(Handshakes, GraphEchoesTheDecodedToken) {
  const config::provider of = with(handshake_kind::microsoft_graph);
  const auto fine = answer_unsigned(of, posted("", "validationToken=Validation%3a+Testing+%3Cb%3E"));
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->status, 200);
  EXPECT_EQ(fine->content_type, "text/plain");
  EXPECT_EQ(fine->body, "Validation: Testing <b>");
  for (const char* query : {"validationToken=", "validationToken=canary%0a", "validationToken=canary&validationToken=canary",
                            "validationToken=canary%zz"}) {
    const auto refused = answer_unsigned(of, posted("", query));
    ASSERT_TRUE(refused) << query;
    EXPECT_EQ(refused->status, 400) << query;
    EXPECT_EQ(refused->body.find("canary"), std::string::npos) << query;
  }
  EXPECT_FALSE(answer_unsigned(of, posted("", "other=1")));
  EXPECT_FALSE(answer_unsigned(of, posted(R"({"value":[{}]})", "validationToken=x"))) << "news are to be verified, not echoed";
  EXPECT_FALSE(answer_unsigned(of, posted("x", "validationToken=x")));
  EXPECT_TRUE(answer_unsigned(of, posted(" {} \r\n", "validationToken=x")));
}

TEST(Handshakes, WooCommercePingsWithAForm) {
  const config::provider of = with(handshake_kind::woocommerce);
  const auto fine = answer_unsigned(of, posted("webhook_id=17"));
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->status, 200);
  EXPECT_TRUE(fine->body.empty());
  for (const char* body : {"", "webhook_id=", "webhook_id=1x", "webhook_id=123456789012345678901", "webhook_id=1&order=2",
                           "{\"webhook_id\":1}", "Webhook_id=1"})
    EXPECT_FALSE(answer_unsigned(of, posted(body))) << body;
}

TEST(Handshakes, AsanaGetsItsHeaderBack) {
  const config::provider of = with(handshake_kind::asana);
  const auto fine = answer_unsigned(of, posted("{}", "", {{"X-Hook-Secret", "b537207f20cbfa02"}}));
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->status, 200);
  EXPECT_EQ(header_of(*fine, "X-Hook-Secret"), "b537207f20cbfa02");
  EXPECT_TRUE(fine->body.empty());
  for (const std::string& value : {std::string("canary\r\nSet-Cookie: a=b"), std::string("canary b"), std::string("canary<b>"),
                                   std::string(256, 'x'), std::string()}) {
    const auto refused = answer_unsigned(of, posted("", "", {{"X-Hook-Secret", value}}));
    ASSERT_TRUE(refused) << value;
    EXPECT_EQ(refused->status, 400) << value;
    EXPECT_EQ(header_of(*refused, "X-Hook-Secret"), "") << value;
  }
  EXPECT_EQ(answer_unsigned(of, posted("", "", {{"X-Hook-Secret", "canary"}, {"x-hook-secret", "canary"}}))->status, 400);
  EXPECT_FALSE(answer_unsigned(of, posted(R"({"events":[{"action":"changed"}]})", "", {{"X-Hook-Secret", "a"}})));
  EXPECT_FALSE(answer_unsigned(of, posted("{}")));
}

TEST(Handshakes, NothingIsAHandshakeWithoutOne) {
  EXPECT_FALSE(answer_unsigned(p1(), posted("webhook_id=17", "validationToken=x", {{"X-Hook-Secret", "a"}})));
  EXPECT_FALSE(answer_signed(p1(), posted(R"({"type":"url_verification","challenge":"x"})"), "s1"));
}

TEST(Handshakes, SlackEchoesAfterVerification) {
  const config::provider of = with(handshake_kind::slack);
  const auto fine =
      answer_signed(of, posted(R"({"token":"t","challenge":"3eZbrw1aB10\u003cscript>","type":"url_verification"})"), "s1");
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->answer.status, 200);
  EXPECT_EQ(fine->answer.content_type, "text/plain");
  EXPECT_EQ(fine->answer.body, "3eZbrw1aB10<script>");
  for (const std::string& challenge : {std::string("12"), std::string("null"), std::string(R"("a\r\nb")"), std::string("\"\""),
                                       '"' + std::string(10'000, 'x') + '"'}) {
    const auto refused = answer_signed(of, posted("{\"type\":\"url_verification\",\"challenge\":" + challenge + "}"), "s1");
    ASSERT_TRUE(refused) << challenge;
    EXPECT_EQ(refused->unusable->code, permanent::malformed_field) << challenge;
  }
  EXPECT_TRUE(answer_signed(of, posted(R"({"type":"url_verification"})"), "s1")->unusable);
  EXPECT_FALSE(answer_signed(of, posted(R"({"type":"event_callback","challenge":"x"})"), "s1"));
  EXPECT_FALSE(answer_signed(of, posted(R"({"type":"url_verification","type":"url_verification","challenge":"x"})"), "s1"));
  EXPECT_FALSE(answer_signed(of, posted(""), "s1"));
}

TEST(Handshakes, ZoomIsAnsweredWithTheSecretThatVerified) {
  config::provider of = with(handshake_kind::zoom);
  verify::named_secret other = of.keys.secrets.front();
  other.name = "s2";
  other.text = secret("test-secret-B");
  of.keys.secrets.push_back(other);
  const std::string body =
      R"({"event":"endpoint.url_validation","event_ts":1,"payload":{"plainToken":"qgg8vlvZRS6UYooatFL8Aw"}})";
  const auto by_second = answer_signed(of, posted(body), "s2");
  ASSERT_TRUE(by_second);
  EXPECT_EQ(by_second->answer.content_type, "application/json");
  EXPECT_EQ(
      by_second->answer.body,
      R"({"plainToken":"qgg8vlvZRS6UYooatFL8Aw","encryptedToken":"23d52b9851996be0e23ff65cc1b377b7507ce6fd6eef0c0b624ec6a5ef4c270e"})");
  EXPECT_NE(answer_signed(of, posted(body), "s1")->answer.body, by_second->answer.body);
  EXPECT_TRUE(answer_signed(of, posted(R"({"event":"endpoint.url_validation","payload":{}})"), "s1")->unusable);
  EXPECT_FALSE(answer_signed(of, posted(R"({"event":"meeting.started","payload":{"plainToken":"x"}})"), "s1"));
}

TEST(Handshakes, TwitchEchoesTheChallengeAlone) {
  const config::provider of = with(handshake_kind::twitch);
  const headers asks = {{"Twitch-Eventsub-Message-Type", "webhook_callback_verification"}};
  const auto fine = answer_signed(of, posted(R"({"challenge":"pogchamp-kappa-360noscope","subscription":{}})", "", asks), "s1");
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->answer.body, "pogchamp-kappa-360noscope");
  EXPECT_EQ(fine->answer.content_type, "text/plain");
  EXPECT_FALSE(answer_signed(of, posted(R"({"challenge":"x","subscription":{}})"), "s1")) << "without its header";
  EXPECT_FALSE(answer_signed(of, posted(R"({"event":{"id":"e"},"challenge":"x"})", "", asks), "s1"))
      << "the header is not signed; an event stays one";
  EXPECT_FALSE(answer_signed(
      of, posted(R"({"subscription":{"status":"authorization_revoked"}})", "", {{"Twitch-Eventsub-Message-Type", "revocation"}}),
      "s1"));
}

TEST(Handshakes, XeroIntentToReceiveHasNoEvents) {
  const config::provider of = with(handshake_kind::xero);
  const auto fine = answer_signed(
      of, posted(R"({"events":[],"lastEventSequence": 0,"firstEventSequence": 0,"entropy":"S0m3r4Nd0mt3xt"})"), "s1");
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->answer.status, 200);
  EXPECT_TRUE(fine->answer.body.empty());
  EXPECT_TRUE(refuses_without_body(of));
  EXPECT_FALSE(refuses_without_body(p1()));
  EXPECT_FALSE(answer_signed(of, posted(R"({"events":[{"resourceId":"r"}]})"), "s1"));
  EXPECT_FALSE(answer_signed(of, posted(R"({"events":{}})"), "s1"));
  EXPECT_FALSE(answer_signed(of, posted(R"({"entropy":"x"})"), "s1"));
}

TEST(Handshakes, DiscordPings) {
  const config::provider of = with(handshake_kind::discord);
  const auto events = answer_signed(of, posted(R"({"version":1,"application_id":"1","type":0})"), "s1");
  ASSERT_TRUE(events);
  EXPECT_EQ(events->answer.status, 204);
  EXPECT_TRUE(events->answer.body.empty());
  EXPECT_TRUE(events->answer.typed);
  const auto interactions = answer_signed(of, posted(R"({"id":"1","token":"t","type":1,"version":1})"), "s1");
  ASSERT_TRUE(interactions);
  EXPECT_EQ(interactions->answer.status, 200);
  EXPECT_EQ(interactions->answer.body, R"({"type":1})");
  EXPECT_FALSE(answer_signed(of, posted(R"({"type":1,"event":{"type":"APPLICATION_AUTHORIZED"}})"), "s1"));
  EXPECT_FALSE(answer_signed(of, posted(R"({"type":"0"})"), "s1"));
  EXPECT_FALSE(answer_signed(of, posted(R"({"type":2})"), "s1"));
}

TEST(Handshakes, IntercomPingsUnlessItIsMapped) {
  config::provider of = with(handshake_kind::intercom);
  ASSERT_TRUE(answer_signed(of, posted(R"({"topic":"ping"})"), "s1"));
  EXPECT_EQ(answer_signed(of, posted(R"({"topic":"ping"})"), "s1")->answer.status, 200);
  EXPECT_FALSE(answer_signed(of, posted(R"({"topic":"conversation.admin.closed"})"), "s1"));
  of.events.emplace("ping", "progress");
  EXPECT_FALSE(answer_signed(of, posted(R"({"topic":"ping"})"), "s1"));
}

TEST(Handshakes, SnsNamesTheUrlToConfirm) {
  const config::provider of = with(handshake_kind::aws_sns);
  const std::string url = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=a&Token=t";
  const auto fine = answer_signed(of, posted(R"({"Type":"SubscriptionConfirmation","SubscribeURL":")" + url + "\"}"), "");
  ASSERT_TRUE(fine);
  EXPECT_EQ(fine->confirm_url, url);
  EXPECT_EQ(fine->answer.status, 200);
  const auto foreign =
      answer_signed(of, posted(R"({"Type":"SubscriptionConfirmation","SubscribeURL":"https://example.com/"})"), "");
  ASSERT_TRUE(foreign);
  EXPECT_TRUE(foreign->unusable);
  EXPECT_EQ(foreign->confirm_url, "");
  const auto gone = answer_signed(of, posted(R"({"Type":"UnsubscribeConfirmation","SubscribeURL":")" + url + "\"}"), "");
  ASSERT_TRUE(gone);
  EXPECT_EQ(gone->confirm_url, "") << "to fetch it would subscribe again";
  EXPECT_FALSE(
      answer_signed(of, posted(R"({"Type":"Notification"})", "", {{"x-amz-sns-message-type", "SubscriptionConfirmation"}}), ""));
}

bool is_fetched(const std::string& url) {
  const auto told =
      answer_signed(with(handshake_kind::aws_sns),
                    posted("{\"Type\":\"SubscriptionConfirmation\",\"SubscribeURL\":" + json_string(url) + "}"), "");
  return told && !told->unusable && told->answer.status == 200 && told->confirm_url == url;
}

TEST(Handshakes, HostsOfSnsExactly) {
  for (const char* fine : {"https://sns.us-east-1.amazonaws.com/?a=b", "https://sns.cn-north-1.amazonaws.com.cn/x"})
    EXPECT_TRUE(is_fetched(fine)) << fine;
  for (const char* bad :
       {"http://sns.us-east-1.amazonaws.com/", "https://sns.us-east-1.amazonaws.com.evil.example/",
        "https://evil.example/sns.us-east-1.amazonaws.com", "https://sns.us-east-1.amazonaws.com@evil.example/",
        "https://user@sns.us-east-1.amazonaws.com/", "https://sns.us-east-1.amazonaws.com:8443/",
        "https://sns.a.b.amazonaws.com/", "https://sns..amazonaws.com/", "https://sns.s3-us-west-2.amazonaws.com/",
        "https://xsns.us-east-1.amazonaws.com/", "https://sns.us-east-1.amazonaws.com#@evil.example/",
        "https://sns.us-east-1.amazonaws.com\\@evil.example/", "https://sns.us-east-1.amazonaws.com./",
        "https://sns.us-east-1.amazonaws.com/ HTTP/1.1\r\nX: y", "https://sns.amazonaws.com/", ""})
    EXPECT_FALSE(is_fetched(bad)) << bad;
}

}  // namespace
}  // namespace recibo::receive
