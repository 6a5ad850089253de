// The field cases of JSON, identifiers and times, as tables, and each rule of extract.hpp.
#include "support.hpp"

#include "recibo/core/json.hpp"

#include <fstream>
#include <sstream>

namespace recibo::receive {
namespace {

using namespace testing;
using place = config::source::place;

std::string body_file(const std::string& name) {
  std::ifstream in(RECIBO_TEST_DATA "/bodies/" + name, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string with(std::string_view member) {
  return R"({"request_id":"req-1001","event_id":"evt-1","status":"succeeded",)" + std::string(member) + "}";
}

TEST(Extract, ReadsEveryFieldOfAPlainCallback) {
  const auto c = extracted(p1(), b0);
  EXPECT_EQ(fault(c), "fine");
  EXPECT_EQ(c.request_id, "req-1001");
  EXPECT_EQ(c.event_raw, "succeeded");
  EXPECT_EQ(c.event, "complete");
  EXPECT_EQ(c.key_text, "evt-1");
  EXPECT_EQ(c.key, canonical().add("evt-1").bytes());
  EXPECT_EQ(to_rfc3339(c.occurred_at.value()), "2026-10-01T10:00:00.000000Z");
  EXPECT_EQ(c.amount.value().text, "19.99");
  EXPECT_EQ(c.currency, "EUR");
  EXPECT_TRUE(c.references.empty());
  EXPECT_EQ(c.sequence, std::nullopt);
  EXPECT_EQ(c.result, "");
  EXPECT_EQ(c.body_digest, sha256(b0));
  EXPECT_NE(c.content_digest, c.body_digest);
}

TEST(Extract, AStripeEventByItsPointers) {
  config::provider how = p1();
  how.extract = {};
  how.extract.request_id = {json_at("/data/object/metadata/request_id")};
  how.extract.idempotency_key = {json_at("/id")};
  how.extract.event = {json_at("/type")};
  how.extract.reference = {json_at("/data/object/id")};
  how.extract.occurred_at = {timed("/created", verify::timestamp_format::unix_s)};
  how.extract.currency = {json_at("/data/object/currency")};
  how.extract.result = {{"received", json_at("/data/object/amount_received")},
                        {"methods", json_at("/data/object/payment_method_types")},
                        {"live", json_at("/livemode")},
                        {"absent", json_at("/data/object/absent")}};
  how.events = {{"payment_intent.succeeded", "complete"}};
  const auto c = extracted(how, body_file("stripe-payment-intent.json"));
  EXPECT_EQ(fault(c), "fine");
  EXPECT_EQ(c.request_id, "req-1001");
  EXPECT_EQ(c.references, std::vector<std::string>{"pi_3PqX2eLkdIwHu7ix0Qrs7Tuv"});
  EXPECT_EQ(c.event, "complete");
  EXPECT_EQ(to_rfc3339(c.occurred_at.value()), "2026-10-01T10:00:00.000000Z");
  EXPECT_EQ(c.currency, "EUR");
  EXPECT_EQ(c.result, R"({"live":false,"methods":["card"],"received":1999})");
}

TEST(Extract, AWordOfSeveralPartsNeedsAllOfThem) {
  config::provider how = p1();
  how.extract.event = {at_place(place::header, "x-kind"), json_at("/status"), json_at("/success")};
  how.events = {{"payment/captured/true", "complete"}, {"payment/captured/false", "ignore"}, {"a~1b/c~0d/e", "progress"}};
  const auto look = [&](std::string_view members, std::optional<std::string> kind) {
    http::request from = post(R"({"request_id":"req-1","event_id":"e",)" + std::string(members) + "}");
    if (kind) from.headers = {{"X-Kind", *kind}};
    return extracted(how, from);
  };
  const auto c = look(R"("status":"captured","success":true)", "payment");
  EXPECT_EQ(fault(c), "fine");
  EXPECT_EQ(c.event_raw, "payment/captured/true");
  EXPECT_EQ(c.event, "complete");
  EXPECT_EQ(look(R"("status":"captured","success":"false")", "payment").event, "ignore");
  const auto other = look(R"("status":"captured","success":"maybe")", "payment");
  EXPECT_EQ(fault(other), "fine");
  EXPECT_EQ(other.event_raw, "payment/captured/maybe");
  EXPECT_EQ(other.event, "") << "unmapped";
  for (const auto& [members, kind] :
       {std::pair<std::string, std::optional<std::string>>{R"("status":"captured","success":true)", {}},
        {R"("status":"captured")", "payment"},
        {R"("status":" ","success":true)", "payment"},
        {R"("status":null,"success":true)", "payment"}}) {
    const auto part = look(members, kind);
    EXPECT_EQ(fault(part), "missing_field") << members;
    EXPECT_EQ(part.event_raw, "") << "no half of a word";
    EXPECT_EQ(part.unprocessable->detail, "event: one of its parts is absent or blank");
  }
  EXPECT_EQ(fault(look(R"("status":["captured"],"success":true)", "payment")), "malformed_field");
  // A slash within a part ends no part, so that no two events have one word.
  EXPECT_EQ(look(R"("status":"c~d","success":"e")", "a/b").event, "progress");
  EXPECT_EQ(look(R"("status":"captured/true","success":"x")", "payment").event_raw, "payment/captured~1true/x");
  EXPECT_EQ(fault(look(R"("status":")" + std::string(200, 'x') + R"(","success":"x")", std::string(200, 'y'))),
            "malformed_field");
}

TEST(Extract, AHintNeedsNoPartOfItsWord) {
  config::provider how = p1();
  how.hints = true;
  how.extract.event = {json_at("/kind"), json_at("/status")};
  how.events = {{"balance/changed", "ignore"}};
  EXPECT_EQ(extracted(how, R"({"request_id":"r","event_id":"e","kind":"balance","status":"changed"})").event, "ignore");
  const auto part = extracted(how, R"({"request_id":"r","event_id":"e","kind":"balance"})");
  EXPECT_EQ(fault(part), "fine");
  EXPECT_EQ(part.event, record::hint_event);
}

TEST(Extract, JsonWithinATextIsReadByThen) {
  config::provider how = p1();
  const auto inner = [](std::string pointer) {
    config::source s = json_at("/Message");
    s.then = std::move(pointer);
    return s;
  };
  how.extract = {};
  how.extract.request_id = {inner("/job")};
  how.extract.event = {inner("/status")};
  how.extract.idempotency_key = {json_at("/MessageId"), inner("/status")};
  how.extract.occurred_at = {inner("/when")};
  how.extract.occurred_at.front().format = verify::timestamp_format::unix_ms;
  how.extract.result = {{"pages", inner("/pages")}};
  how.events = {{"SUCCEEDED", "complete"}};
  const auto c = extracted(how, body_file("sns-notification.json"));
  EXPECT_EQ(fault(c), "fine");
  EXPECT_EQ(c.request_id, "req-1001");
  EXPECT_EQ(c.event, "complete");
  EXPECT_EQ(c.key_text, "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324 / SUCCEEDED");
  EXPECT_EQ(to_rfc3339(c.occurred_at.value()), "2026-10-01T10:00:00.000000Z");
  EXPECT_EQ(c.result, R"({"pages":12})");

  EXPECT_EQ(fault(extracted(how, R"({"MessageId":"m","Message":"no json"})")), "malformed_json");
  EXPECT_EQ(fault(extracted(how, R"({"MessageId":"m","Message":{"status":"x"}})")), "malformed_field");
}

TEST(Extract, FormsQueriesAndHeadersAreSourcesToo) {
  config::provider how = p1();
  how.extract = {};
  how.extract.request_id = {at_place(place::form, "request_id")};
  how.extract.idempotency_key = {at_place(place::form, "event_id"), at_place(place::header, "x-part"),
                                 at_place(place::query, "q")};
  how.extract.event = {at_place(place::form, "status")};
  how.extract.amount = {at_place(place::form, "amount")};
  how.extract.currency = {at_place(place::form, "currency")};
  how.extract.result = {{"note", at_place(place::form, "note")},
                        {"empty", at_place(place::form, "empty")},
                        {"agent", at_place(place::header, "user-agent")}};
  http::request from = post(body_file("form.txt"));
  from.query = "q=%22x%22&other=1";
  from.headers = {{"X-Part", "p"}, {"User-Agent", "sender/1"}};
  const auto c = extracted(how, from);
  EXPECT_EQ(fault(c), "fine");
  EXPECT_EQ(c.request_id, "req-1001");
  EXPECT_EQ(c.key_text, "evt 1/2 / p / \"x\"");
  EXPECT_EQ(c.key, canonical().add("evt 1/2").add("p").add("\"x\"").bytes());
  EXPECT_EQ(c.amount.value().text, "19.99");
  EXPECT_EQ(c.currency, "EUR");
  EXPECT_EQ(c.result, "{\"agent\":\"sender/1\",\"empty\":\"\",\"note\":\"h\xc3\xa9llo\"}");

  from.body = "request_id=%zz";
  EXPECT_EQ(fault(extracted(how, from)), "malformed_field");
  from.body = "status=succeeded&request_id=%ff%fe";
  EXPECT_EQ(fault(extracted(how, from)), "malformed_field");
  from.body = body_file("form.txt");
  from.headers[1].second = "\xff";
  EXPECT_EQ(fault(extracted(how, from)), "malformed_field");
}

// S14 c, and the same for queries and forms: what stands twice never decides by order.
TEST(FieldCases, S14ASourceThatStandsTwiceIsRefused) {
  config::provider p5 = p1();
  p5.extract.idempotency_key = {at_place(place::header, "idempotency-key")};
  http::request from = post(std::string(b0));
  from.headers.emplace_back("Idempotency-Key", "k1");
  EXPECT_EQ(extracted(p5, from).key_text, "k1");
  from.headers.emplace_back("idempotency-key", "k2");
  const auto twice = extracted(p5, from);
  EXPECT_EQ(fault(twice), "malformed_field");
  EXPECT_EQ(twice.key, "");
  EXPECT_EQ(twice.request_id, "req-1001");

  p5.extract.idempotency_key = {at_place(place::query, "k")};
  from.query = "k=1&k=1";
  EXPECT_EQ(fault(extracted(p5, from)), "malformed_field");
  p5.extract.idempotency_key = {at_place(place::form, "k")};
  from.body = "k=1&k=2";
  EXPECT_EQ(extracted(p5, from).key, "");
}

// S22.
TEST(FieldCases, S22TwoStatusesInOneObject) {
  const auto c = extracted(p1(), R"({"request_id":"req-1001","event_id":"evt-22","status":"failed","status":"succeeded"})");
  EXPECT_EQ(fault(c), "malformed_json");
  EXPECT_EQ(c.event, "");
  EXPECT_EQ(c.event_raw, "");
  EXPECT_EQ(c.request_id, "req-1001");
  EXPECT_EQ(c.content_digest, c.body_digest);
  EXPECT_EQ(c.unprocessable->detail, "body: an object has two members of the same name");
}

// S23.
TEST(FieldCases, S23NeighbouringBigIntegersStayApart) {
  config::provider how = p1();
  how.extract.reference = {json_at("/provider_ref")};
  const auto a = extracted(
      how, R"({"request_id":"req-1001","event_id":9007199254740993,"status":"processing","provider_ref":9223372036854775807})");
  const auto b = extracted(how, R"({"request_id":"req-1001","event_id":9007199254740992,"status":"succeeded"})");
  EXPECT_EQ(fault(a), "fine");
  EXPECT_EQ(a.key_text, "9007199254740993");
  EXPECT_EQ(b.key_text, "9007199254740992");
  EXPECT_NE(a.key, b.key);
  EXPECT_EQ(a.references, std::vector<std::string>{"9223372036854775807"});
  EXPECT_EQ(extracted(how, with(R"("provider_ref":-0)")).references, std::vector<std::string>{"-0"});
  EXPECT_EQ(extracted(how, with(R"("provider_ref":123456789012345678901234567890)")).references,
            std::vector<std::string>{"123456789012345678901234567890"});
}

// S24.
TEST(FieldCases, S24NulLoneSurrogateBrokenUtf8) {
  for (const std::string& note :
       {std::string(R"("note":"x\u0000y")"), std::string(R"("note":"\ud800")"), std::string("\"note\":\"\xff\"")}) {
    const auto c = extracted(p1(), with(note));
    EXPECT_EQ(fault(c), "malformed_json") << note;
    EXPECT_EQ(c.unprocessable->detail.find("note"), std::string::npos);
    EXPECT_EQ(c.body_digest, sha256(with(note)));
  }
}

// S25: what registration refuses as an identity is refused here by the same rule.
TEST(FieldCases, S25AwkwardButAllowedAndNotAllowed) {
  const auto id_of = [](const std::string& id) {
    std::string body = R"({"event_id":"e","status":"succeeded","request_id":)";
    append_json_string(body, id);
    return extracted(p1(), body + "}");
  };
  EXPECT_EQ(id_of(R"(a:b@c&d=e+f;g"<h>\i')").request_id, R"(a:b@c&d=e+f;g"<h>\i')");
  EXPECT_EQ(id_of(std::string(255, 'x')).request_id.size(), 255u);
  for (const std::string& id : {std::string("a/b"), std::string("a%2Fb"), std::string(256, 'x'), std::string("a b"),
                                std::string("a\nb"), std::string("\xc3\xa9")}) {
    const auto c = id_of(id);
    EXPECT_EQ(fault(c), "malformed_field") << id;
    EXPECT_EQ(c.request_id, "") << id;
  }
}

struct key_case {
  const char* name;
  std::string value;  // as JSON; empty: absent
  const char* expected;
};

// S26: the key is configured, so a blank one is missing; the endless ones meet the same limit.
TEST(FieldCases, S26EmptyAndEndlessIdentifiers) {
  std::string digits;
  for (int i = 0; i < 12800; ++i) digits += "0123456789abcdef"[(i * 7 + i / 13) % 16];
  const key_case cases[] = {
      {"empty", R"("")", "missing_field"},
      {"a blank", R"(" ")", "missing_field"},
      {"absent", "", "missing_field"},
      {"null", "null", "missing_field"},
      {"12800 times a", "\"" + std::string(12800, 'a') + "\"", "malformed_field"},
      {"12800 hex digits", "\"" + digits + "\"", "malformed_field"},
      {"a control character", R"("a\u0001")", "malformed_field"},
      {"an object", "{}", "malformed_field"},
      {"an array", "[1]", "malformed_field"},
      {"zero", "0", "fine"},
      {"false", "false", "fine"},
      {"255 bytes", "\"" + std::string(255, 'a') + "\"", "fine"},
  };
  for (const key_case& k : cases) {
    std::string body = R"({"request_id":"req-1001","status":"succeeded")";
    if (!k.value.empty()) body += ",\"event_id\":" + k.value;
    const auto c = extracted(p1(), body + "}");
    EXPECT_EQ(fault(c), k.expected) << k.name;
    EXPECT_EQ(c.key.empty(), fault(c) != "fine") << k.name;
  }
}

TEST(Extract, WithoutAConfiguredKeyTheBodyIsTheKey) {
  config::provider how = p1();
  how.extract.idempotency_key.clear();
  const auto a = extracted(how, b0);
  const auto b = extracted(how, std::string(b0) + " ");
  EXPECT_EQ(fault(a), "fine");
  EXPECT_EQ(a.key_text, "sha256:" + to_hex(binary(sha256(b0))));
  EXPECT_NE(a.key, b.key);
  EXPECT_EQ(a.content_digest, b.content_digest);
}

TEST(Extract, CompositeKeysAreFieldsAndNotJoinedText) {
  config::provider how = p1();
  how.extract.idempotency_key = {json_at("/a"), json_at("/b")};
  const auto one = extracted(how, with(R"("a":"x / y","b":"z")"));
  const auto two = extracted(how, with(R"("a":"x","b":"y / z")"));
  EXPECT_EQ(one.key_text, two.key_text);
  EXPECT_NE(one.key, two.key);
  EXPECT_EQ(fault(extracted(how, with(R"("a":"x","b":"")"))), "missing_field");
}

struct time_case {
  const char* name;
  const char* value;
  verify::timestamp_format format;
  const char* expected;
};

// S35, in whatever zone this runs.
TEST(FieldCases, S35TimesWithoutAZoneTimesInMilliseconds) {
  using enum verify::timestamp_format;
  const time_case cases[] = {
      {"no zone", R"("2026-10-25T02:30:00")", rfc3339, "malformed_field"},
      {"another form", R"("2026-06-28 16:08:11 +0200")", rfc3339, "malformed_field"},
      {"a number", "1767225600000", rfc3339, "malformed_field"},
      {"digits", R"("1767225600000")", rfc3339, "malformed_field"},
      {"milliseconds as a number", "1767225600000", unix_ms, "2026-01-01T00:00:00.000000Z"},
      {"milliseconds as digits", R"("1767225600000")", unix_ms, "2026-01-01T00:00:00.000000Z"},
      {"milliseconds taken for seconds", "1767225600000", unix_s, "malformed_field"},
      {"seconds", "1767225600", unix_s, "2026-01-01T00:00:00.000000Z"},
      {"seconds with a fraction", "1767225600.5", unix_s, "malformed_field"},
      {"an exponent", "1.7672256e9", unix_s, "malformed_field"},
      {"before 1970", "-1", unix_s, "malformed_field"},
      {"minus zero", "-0", unix_s, "malformed_field"},
      {"an offset", R"("2026-06-28T16:08:11.123456789+02:00")", rfc3339, "2026-06-28T14:08:11.123456Z"},
      {"empty", R"("")", rfc3339, "malformed_field"},
      {"a boolean", "true", rfc3339, "malformed_field"},
      {"an object", "{}", rfc3339, "malformed_field"},
      {"null is absent", "null", rfc3339, "absent"},
  };
  for (const time_case& t : cases) {
    config::provider how = p1();
    how.extract.occurred_at = {timed("/when", t.format)};
    const auto c = extracted(how, with("\"when\":" + std::string(t.value)));
    const std::string found = c.unprocessable ? fault(c) : c.occurred_at ? to_rfc3339(*c.occurred_at) : "absent";
    EXPECT_EQ(found, t.expected) << t.name;
  }
}

struct field_case {
  const char* name;
  const char* member;
  const char* expected;
};

TEST(Extract, SequencesAreDigits) {
  config::provider how = p1();
  how.extract.sequence = {json_at("/n")};
  const field_case cases[] = {
      {"zero", R"("n":0)", "0"},
      {"digits in a text", R"("n":"42")", "42"},
      {"the largest", R"("n":9223372036854775807)", "9223372036854775807"},
      {"one more", R"("n":9223372036854775808)", "malformed_field"},
      {"endless", R"("n":99999999999999999999999999)", "malformed_field"},
      {"negative", R"("n":-1)", "malformed_field"},
      {"minus zero", R"("n":-0)", "malformed_field"},
      {"a fraction", R"("n":1.0)", "malformed_field"},
      {"an exponent", R"("n":1e3)", "malformed_field"},
      {"a word", R"("n":"x")", "malformed_field"},
      {"empty", R"("n":"")", "malformed_field"},
      {"null", R"("n":null)", "absent"},
  };
  for (const field_case& f : cases) {
    const auto c = extracted(how, with(f.member));
    EXPECT_EQ(c.unprocessable ? fault(c) : c.sequence ? std::to_string(*c.sequence) : "absent", f.expected) << f.name;
  }
}

TEST(Extract, AmountsAreDecimalsAsWritten) {
  const field_case cases[] = {
      {"a text", R"("amount":"19.99")", "19.99"},
      {"a number", R"("amount":19.90)", "19.90"},
      {"an integer", R"("amount":1999)", "1999"},
      {"beyond a double", R"("amount":0.100000000001)", "0.100000000001"},
      {"an exponent", R"("amount":1E99)", "malformed_field"},
      {"a comma", R"("amount":"19,99")", "malformed_field"},
      {"a currency in it", R"("amount":"19.99 EUR")", "malformed_field"},
      {"empty", R"("amount":"")", "malformed_field"},
      {"a boolean", R"("amount":true)", "malformed_field"},
      {"too large for a double", R"("amount":1E400)", "malformed_json"},
      {"null", R"("amount":null)", "absent"},
  };
  for (const field_case& f : cases) {
    const auto c = extracted(p1(), with(f.member));
    EXPECT_EQ(c.unprocessable ? fault(c) : c.amount ? c.amount->text : "absent", f.expected) << f.name;
  }
  EXPECT_EQ(fault(extracted(p1(), with(R"("currency":"EURO")"))), "malformed_field");
  EXPECT_EQ(extracted(p1(), with(R"("currency":"eur")")).currency, "EUR");
}

TEST(Extract, MissingFieldsAreNamed) {
  EXPECT_EQ(extracted(p1(), R"({"event_id":"e","status":"succeeded"})").unprocessable->detail,
            "request_id, reference: both absent or blank");
  EXPECT_EQ(fault(extracted(p1(), R"({"event_id":"e","status":"succeeded","request_id":" "})")), "missing_field");
  EXPECT_EQ(extracted(p1(), R"({"event_id":"e","request_id":"r"})").unprocessable->detail, "event: absent or blank");
  config::provider by_reference = p1();
  by_reference.extract.request_id.clear();
  by_reference.extract.reference = {json_at("/id"), json_at("/other"), json_at("/same")};
  const auto c = extracted(by_reference, R"({"event_id":"e","status":"succeeded","id":"x","other":"","same":"x"})");
  EXPECT_EQ(fault(c), "fine");
  EXPECT_EQ(c.references, std::vector<std::string>{"x"});
  EXPECT_EQ(extracted(by_reference, R"({"event_id":"e","status":"succeeded","id":"x","other":"y"})").references,
            (std::vector<std::string>{"x", "y"}));
}

TEST(Extract, EventsAreMappedIgnoredOrUnmapped) {
  EXPECT_EQ(extracted(p1(), R"({"request_id":"r","event_id":"e","status":"no-such"})").event, "");
  EXPECT_EQ(extracted(p1(), R"({"request_id":"r","event_id":"e","status":"no-such"})").event_raw, "no-such");
  EXPECT_EQ(fault(extracted(p1(), R"({"request_id":"r","event_id":"e","status":"no-such"})")), "fine");
  // Foreign traffic need not carry our fields (R43); JSON it must be.
  const auto foreign = extracted(p1(), R"({"status":"created","amount":"x"})");
  EXPECT_EQ(fault(foreign), "fine");
  EXPECT_EQ(foreign.event, "ignore");
  EXPECT_EQ(fault(extracted(p1(), R"({"status":"created","x":1,"x":2})")), "malformed_json");
}

TEST(Extract, WhateverIsWrongTheRestIsKept) {
  config::provider how = p1();
  how.extract.reference = {json_at("/ref")};
  how.extract.result = {{"code", json_at("/code")}};
  const auto c = extracted(
      how,
      R"({"request_id":"req-1001","event_id":"e","status":"succeeded","ref":"x","amount":"nonsense","occurred_at":"never","code":7})");
  EXPECT_EQ(fault(c), "malformed_field");
  EXPECT_EQ(c.unprocessable->detail.substr(0, 12), "occurred_at:");
  EXPECT_EQ(c.request_id, "req-1001");
  EXPECT_EQ(c.references, std::vector<std::string>{"x"});
  EXPECT_EQ(c.event, "complete");
  EXPECT_EQ(c.key_text, "e");
  EXPECT_EQ(c.result, R"({"code":7})");
  EXPECT_EQ(c.content_digest, c.body_digest);
}

TEST(Extract, ABodyThatIsNotNeededAsJsonMayBeAnything) {
  config::provider how = p1();
  how.extract = {};
  how.extract.request_id = {at_place(place::query, "id")};
  how.extract.event = {at_place(place::header, "x-event")};
  http::request from = post(std::string("\xff\0\xfe", 3));
  from.query = "id=req-1001";
  from.headers.emplace_back("X-Event", "succeeded");
  EXPECT_EQ(fault(extracted(how, from)), "fine");
  for (const char* body : {"", "  ", "nonsense", "\xef\xbb\xbf{}"})
    EXPECT_EQ(fault(extracted(p1(), body)), "malformed_json") << body;
}

TEST(Extract, ResultsKeepTheirDigitsAndTheirBound) {
  config::provider how = p1();
  how.extract.result = {{"b", json_at("/r/n")}, {"a", json_at("/r/t")}, {"list", json_at("/r/l")}};
  const auto c = extracted(
      how, with(R"("r":{"n":1.500000000000000000000000001,"t":"\u00e9\"\u001b","l":[ {"z":1, "y":9007199254740993} ]})"));
  EXPECT_EQ(fault(c), "fine");
  EXPECT_EQ(c.result,
            "{\"a\":\"\xc3\xa9\\\"\\u001b\",\"b\":1.500000000000000000000000001,\"list\":[{\"y\":9007199254740993,\"z\":1}]}");
  EXPECT_EQ(extracted(how, with(R"("r":{})")).result, "{}");
  EXPECT_EQ(fault(extracted(how, with("\"r\":{\"t\":\"" + std::string(result_max, 'x') + "\"}"))), "malformed_field");
  EXPECT_EQ(fault(extracted(how, with("\"r\":{\"l\":[\"" + std::string(result_max, 'x') + "\"]}"))), "malformed_field");
  EXPECT_EQ(
      fault(extracted(how, with("\"r\":{\"t\":\"" + std::string(3000, 'x') + "\",\"l\":[\"" + std::string(3000, 'x') + "\"]}"))),
      "malformed_field");
}

TEST(Extract, SameContentIsTheSameFields) {
  const auto digest = [](std::string_view body, config::content_rule rule = config::content_rule::fields) {
    config::provider how = p1();
    how.content = rule;
    how.extract.result = {{"code", json_at("/code")}};
    const auto c = extracted(how, body);
    EXPECT_EQ(fault(c), "fine");
    return c.content_digest;
  };
  const std::string base = with(R"("amount":"19.90","currency":"EUR","occurred_at":"2026-10-01T10:00:00Z","code":"A")");
  for (const char* same :
       {R"("amount":19.9,"currency":"eur","occurred_at":"2026-10-01T12:00:00+02:00","code":"A")",
        R"("code":"\u0041","occurred_at":"2026-10-01T10:00:00.000Z","currency":"EUR","amount":"19.900","unknown":[1])"}) {
    EXPECT_EQ(digest(base), digest(with(same))) << same;
    EXPECT_NE(digest(base, config::content_rule::bytes), digest(with(same), config::content_rule::bytes)) << same;
  }
  for (const char* other : {R"("amount":"1990","currency":"EUR","occurred_at":"2026-10-01T10:00:00Z","code":"A")",
                            R"("amount":"19.90","currency":"USD","occurred_at":"2026-10-01T10:00:00Z","code":"A")",
                            R"("amount":"19.90","currency":"EUR","occurred_at":"2026-10-01T10:00:01Z","code":"A")",
                            R"("amount":"19.90","currency":"EUR","occurred_at":"2026-10-01T10:00:00Z","code":"B")",
                            R"("amount":"19.90","currency":"EUR","code":"A")"}) {
    EXPECT_NE(digest(base), digest(with(other))) << other;
  }
  EXPECT_EQ(digest(with(R"("amount":"-0.00")")), digest(with(R"("amount":"0")")));
  EXPECT_NE(digest(with(R"("amount":"-1")")), digest(with(R"("amount":"1")")));
}

}  // namespace
}  // namespace recibo::receive
