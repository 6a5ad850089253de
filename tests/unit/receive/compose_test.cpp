// What compose writes, verify accepts and extract reads back.
#include "support.hpp"

#include "recibo/receive/compose.hpp"

namespace recibo::receive {
namespace {

using namespace testing;
using place = config::source::place;

constexpr auto at = sys_micros(std::chrono::seconds(1790848800));

record::callback round_trip(const config::provider& how, const composition& what) {
  auto made = compose(how, what, at);
  EXPECT_TRUE(made) << made.error().detail;
  if (!made) return {};
  const std::string url = how.public_url + (made->query.empty() ? "" : "?" + made->query);
  const verify::signed_message message{made->method, url, made->query, made->headers, made->body};
  const auto verified = verify::verify(how.verify, message, how.keys, at);
  EXPECT_TRUE(verified) << code_word(verified.error().code);
  return extracted(how, *made);
}

TEST(Compose, EveryFieldReadsBack) {
  config::provider how = p1();
  how.extract.sequence = {json_at("/data/n")};
  how.extract.reference = {json_at("/data/ref")};
  const auto c = round_trip(how, {.request_id = "req-1001",
                                  .reference = "pi_1",
                                  .event = "succeeded",
                                  .key = {"evt-1"},
                                  .amount = "19.99",
                                  .currency = "EUR",
                                  .occurred_at = "2026-10-01T10:00:00+02:00",
                                  .sequence = "9007199254740993",
                                  .body = {}});
  EXPECT_EQ(fault(c), "fine");
  EXPECT_EQ(c.request_id, "req-1001");
  EXPECT_EQ(c.references, std::vector<std::string>{"pi_1"});
  EXPECT_EQ(c.event, "complete");
  EXPECT_EQ(c.key_text, "evt-1");
  EXPECT_EQ(c.amount.value().text, "19.99");
  EXPECT_EQ(c.currency, "EUR");
  EXPECT_EQ(to_rfc3339(c.occurred_at.value()), "2026-10-01T08:00:00.000000Z");
  EXPECT_EQ(c.sequence, 9007199254740993);
}

TEST(Compose, TheWorkflowsEventIsMappedBack) {
  EXPECT_EQ(round_trip(p1(), {.request_id = "r", .event = "complete"}).event_raw, "succeeded");
  EXPECT_EQ(round_trip(p1(), {.request_id = "r", .event = "nonsense"}).event_raw, "nonsense");
}

TEST(Compose, AKeyIsMadeUpWhereNoneIsGiven) {
  const auto a = round_trip(p1(), {.request_id = "r", .event = "complete"});
  const auto b = round_trip(p1(), {.request_id = "r", .event = "complete"});
  EXPECT_EQ(fault(a), "fine");
  EXPECT_NE(a.key, b.key);
  config::provider composite = p1();
  composite.extract.idempotency_key = {json_at("/request_id"), json_at("/status"), json_at("/n")};
  EXPECT_EQ(round_trip(composite, {.request_id = "r", .event = "complete", .key = {"7"}}).key_text, "r / succeeded / 7");
  EXPECT_FALSE(compose(composite, {.request_id = "r", .event = "complete", .key = {"7", "8"}}, at));
}

TEST(Compose, EveryPlaceIsWritten) {
  config::provider how = p1();
  how.verify = verify::presets().at("standard-webhooks");
  how.keys.secrets.front().text = secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  how.keys.secrets.front().key = verify::key_bytes(how.verify, how.keys.secrets.front().text).value();
  how.extract.idempotency_key = {at_place(place::header, "webhook-id")};
  how.extract.request_id = {at_place(place::query, "id")};
  config::source status = json_at("/message");
  status.then = "/status";
  config::source amount = json_at("/message");
  amount.then = "/amount";
  how.extract.event = {status};
  how.extract.amount = {amount};
  how.extract.occurred_at = {timed("/at", verify::timestamp_format::unix_ms)};
  const auto c = round_trip(how, {.request_id = "a b&c", .event = "complete", .key = {"msg_1"}, .amount = "1.00"});
  EXPECT_EQ(c.event_raw, "succeeded");
  EXPECT_EQ(c.amount.value().text, "1.00");
  EXPECT_EQ(c.key_text, "msg_1");
  EXPECT_EQ(c.occurred_at, at);
  // An identity that breaks its rule is sent as asked, and refused where it is received.
  EXPECT_EQ(fault(c), "malformed_field");
  // The signed identifier is there also when it is nobody's key.
  how.extract.idempotency_key.clear();
  EXPECT_EQ(fault(round_trip(how, {.request_id = "r", .event = "complete"})), "fine");
}

TEST(Compose, AWordOfSeveralPartsStandsWhereItsPartsDo) {
  config::provider how = p1();
  how.extract.event = {at_place(place::header, "x-kind"), json_at("/status")};
  how.events = {{"payment/done", "complete"}, {"a~1b/c", "fail"}};
  EXPECT_EQ(round_trip(how, {.request_id = "r", .event = "payment/done"}).event, "complete");
  EXPECT_EQ(round_trip(how, {.request_id = "r", .event = "complete"}).event_raw, "payment/done");
  EXPECT_EQ(round_trip(how, {.request_id = "r", .event = "fail"}).event_raw, "a~1b/c");
  const auto made = compose(how, {.request_id = "r", .event = "fail"}, at);
  ASSERT_TRUE(made);
  EXPECT_EQ(http::find_header(made->headers, "x-kind"), "a/b");
  for (const auto* word : {"payment", "payment/done/x"})
    EXPECT_EQ(compose(how, {.request_id = "r", .event = word}, at).error().detail,
              "event: a word of this provider has 2 parts with \"/\" between them");
}

TEST(Compose, AnAmountIsWrittenInTheProvidersUnit) {
  config::provider how = p1();
  how.extract.amount.front().minor_unit = true;
  struct row {
    const char *amount, *currency, *written;
  };
  for (const row& one :
       {row{"19.99", "EUR", "1999"}, row{"20", "eur", "2000"}, row{"0.05", "USD", "5"}, row{"1999", "JPY", "1999"},
        row{"1999.00", "JPY", "1999"}, row{"1.5", "KWD", "1500"}, row{"-3.50", "EUR", "-350"}, row{"0.00", "EUR", "0"},
        row{"123456789012345678901.25", "EUR", "\"12345678901234567890125\""}}) {
    const composition what{.request_id = "r", .event = "complete", .amount = one.amount, .currency = one.currency};
    const auto made = compose(how, what, at);
    ASSERT_TRUE(made) << one.amount << made.error().detail;
    EXPECT_NE(made->body.find(R"("amount":)" + std::string(one.written)), std::string::npos) << made->body;
    const auto c = round_trip(how, what);
    EXPECT_EQ(fault(c), "fine");
    EXPECT_TRUE(same_value(c.amount.value(), parse_decimal(one.amount).value())) << one.amount;
  }
  const auto refused = [&](const char* amount, const char* currency) {
    return compose(how, {.request_id = "r", .event = "complete", .amount = amount, .currency = currency}, at).error().detail;
  };
  EXPECT_EQ(refused("19.999", "EUR"), "amount: 19.999 is no whole number of the smallest unit of EUR");
  EXPECT_EQ(refused("1.5", "JPY"), "amount: 1.5 is no whole number of the smallest unit of JPY");
  EXPECT_EQ(refused("19.99", ""),
            "amount: this provider counts the smallest unit of the currency, so the currency is needed (--currency)");
  EXPECT_EQ(refused("many", "EUR"), "amount: an amount is digits with an optional minus sign and point");
}

TEST(Compose, AnAdyenNotificationOfItsPage) {
  config::provider how = p1();
  how.verify = verify::presets().at("adyen");
  how.keys.secrets.front().text = secret("44782DEF547AAA06C910C43932B1EB0C71FC68D9D0C057550C48EC2ACF6BA056");
  how.keys.secrets.front().key = verify::key_bytes(how.verify, how.keys.secrets.front().text).value();
  const auto within = [](const char* name) { return json_at("/NotificationRequestItem/" + std::string(name)); };
  how.extract = {};
  how.extract.each = "/notificationItems";
  how.extract.request_id = {within("merchantReference")};
  how.extract.reference = {within("pspReference"), within("originalReference")};
  how.extract.idempotency_key = {within("pspReference"), within("eventCode"), within("success")};
  how.extract.event = {within("eventCode"), within("success")};
  how.events = {{"CAPTURE/true", "complete"}, {"CAPTURE/false", "ignore"}};
  const auto made = compose(how, {.request_id = "order-1", .reference = "psp-1", .event = "CAPTURE/false"}, at);
  ASSERT_TRUE(made) << made.error().detail;
  const verify::signed_message message{"POST", "", "", made->headers, made->body};
  EXPECT_TRUE(verify::verify(how.verify, message, how.keys, at));
  record::callback whole;
  const auto all = extract_each(how, *made, whole);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].event_raw, "CAPTURE/false");
  EXPECT_EQ(all[0].event, "ignore");
  EXPECT_EQ(all[0].request_id, "order-1");
  EXPECT_EQ(all[0].key_text, "psp-1 / CAPTURE / false");
}

TEST(Compose, TheFirstEventOfListsWithinLists) {
  config::provider how = p1();
  how.extract.each = "/entry/*/list";
  const auto made = compose(how, {.request_id = "r", .event = "complete"}, at);
  ASSERT_TRUE(made) << made.error().detail;
  EXPECT_EQ(made->body.find(R"({"entry":[{"list":[{"request_id":"r")"), 0u) << made->body;
  const auto all = extract_each(how, *made, record::callback());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(all[0].request_id, "r");
}

TEST(Compose, FormsAreWritten) {
  config::provider how = p1();
  how.extract = {};
  how.extract.request_id = {at_place(place::form, "id")};
  how.extract.event = {at_place(place::form, "status")};
  const auto c = round_trip(how, {.request_id = "r&1", .event = "failed"});
  EXPECT_EQ(c.request_id, "r&1");
  EXPECT_EQ(c.event, "fail");
  how.extract.idempotency_key = {json_at("/k")};
  EXPECT_EQ(compose(how, {.request_id = "r", .event = "failed"}, at).error().code, permanent::wrong_usage);
}

TEST(Compose, ATimeInTheBodyIsThere) {
  config::provider how = p1();
  how.verify = verify::presets().at("linear");
  EXPECT_EQ(fault(round_trip(how, {.request_id = "r", .event = "failed"})), "fine");
}

TEST(Compose, AGivenBodyIsSentByteForByte) {
  const auto made = compose(p1(), {.body = std::string(b0) + "\n"}, at);
  ASSERT_TRUE(made);
  EXPECT_EQ(made->body, std::string(b0) + "\n");
  EXPECT_EQ(round_trip(p1(), {.body = std::string(b0)}).request_id, "req-1001");
}

TEST(Compose, WhatCannotBeIsSaid) {
  EXPECT_EQ(compose(p1(), {.request_id = "r", .reference = "x", .event = "complete"}, at).error().detail,
            "reference: this provider's callbacks have no place for it");
  config::provider nested = p1();
  nested.extract.request_id = {json_at("/status/id")};
  EXPECT_EQ(compose(nested, {.request_id = "r", .event = "complete"}, at).error().code, permanent::wrong_usage);
  config::provider by_header = p1();
  by_header.extract.idempotency_key = {at_place(place::header, "x-key")};
  EXPECT_EQ(compose(by_header, {.request_id = "r", .event = "complete", .key = {"a\r\nX-Other: b"}}, at).error().detail,
            "x-key: a header is one line");
  config::provider expired = p1();
  expired.keys.secrets.front().until = at;
  EXPECT_EQ(compose(expired, {.request_id = "r", .event = "complete"}, at).error().detail,
            "no secret of this provider is valid now");
}

}  // namespace
}  // namespace recibo::receive
