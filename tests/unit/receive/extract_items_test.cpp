// What callbacks say of items, and requests that carry many events.
#include "support.hpp"

namespace recibo::receive {
namespace {

using namespace testing;

config::provider p6() {
  config::provider out = p1();
  config::item_rule items;
  items.each = "/results";
  items.item_id = {json_at("/id")};
  items.event = {json_at("/status")};
  items.occurred_at = {json_at("/at")};
  items.sequence = {json_at("/seq")};
  items.result = {{"score", json_at("/score")}};
  out.extract.items = items;
  return out;
}

std::string with_results(std::string_view results, std::string_view more = R"("status":"processing",)") {
  return R"({"request_id":"req-1","event_id":"evt-1",)" + std::string(more) + R"("results":)" + std::string(results) + "}";
}

std::string shown(const record::callback& c) {
  std::string out;
  for (const auto& i : c.items) {
    out += i.item_id + ":" + i.event_raw + ":" + i.event;
    if (i.unprocessable) out += ":" + std::string(code_word(i.unprocessable->code));
    out += ' ';
  }
  return out;
}

TEST(ExtractItems, EachElementByItself) {
  const auto c =
      extracted(p6(), with_results(R"([{"id":"a","status":"succeeded","score":0.50,"seq":7,"at":"2026-10-01T10:00:00Z"},
    {"id":"b","status":"odd"},{"status":"failed"},7,{"id":"c","status":"created"},{"id":"d","status":"failed","seq":"x"}])"));
  EXPECT_EQ(fault(c), "fine");
  EXPECT_EQ(c.event, "progress");
  EXPECT_EQ(
      shown(c),
      "a:succeeded:complete b:odd: :failed:fail:missing_field :::missing_field c:created:ignore d:failed:fail:malformed_field ");
  EXPECT_EQ(c.items[0].sequence, 7);
  EXPECT_EQ(c.items[0].result, R"({"score":0.50})");
  EXPECT_TRUE(c.understood());
}

TEST(ExtractItems, AWordOfSeveralParts) {
  config::provider how = p6();
  how.extract.items->event = {json_at("/kind"), json_at("/ok")};
  how.events["paid/true"] = "complete";
  const auto c = extracted(
      how, with_results(R"([{"id":"a","kind":"paid","ok":true},{"id":"b","kind":"paid","ok":"no"},{"id":"c","kind":"paid"}])"));
  EXPECT_EQ(shown(c), "a:paid/true:complete b:paid/no: c:::missing_field ");
}

TEST(ExtractItems, AWordOfSeveralPartsInEachEventOfARequest) {
  config::provider how = p1();
  how.extract.each = "/list";
  how.extract.event = {json_at("/item/code"), at_place(config::source::place::header, "x-kind")};
  how.events = {{"CAPTURE/live", "complete"}};
  http::request from = post(
      R"({"list":[{"request_id":"r1","event_id":"1","item":{"code":"CAPTURE"}},{"request_id":"r2","event_id":"2","item":{}}]})");
  from.headers = {{"X-Kind", "live"}};
  record::callback whole;
  const auto all = extract_each(how, from, whole);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].event_raw, "CAPTURE/live");
  EXPECT_EQ(all[0].event, "complete");
  EXPECT_EQ(fault(all[1]), "missing_field");
}

TEST(ExtractItems, EventsInListsWithinLists) {
  config::provider how = p1();
  how.extract.each = "/entry/*/changes/*/statuses";
  const auto of = [&](std::string body) {
    std::string out;
    for (const auto& c : extract_each(how, post(std::move(body)), record::callback()))
      out += c.request_id + ":" + c.event + ":" + fault(c) + ":" + std::to_string(c.part.value_or(99)) + ' ';
    return out;
  };
  const auto one = [](const std::string& id) { return R"({"request_id":")" + id + R"(","event_id":"e","status":"succeeded"})"; };
  EXPECT_EQ(of(R"({"entry":[{"changes":[{"statuses":[)" + one("a") + "," + one("b") +
               R"(]},{"messages":[]}]},{"changes":[{"statuses":[)" + one("c") + R"(]}]},{"changes":[]}]})"),
            "a:complete:fine:0 b:complete:fine:1 c:complete:fine:2 ");
  for (const auto* nothing : {R"({"entry":[{"changes":[{"statuses":[]}]}]})", R"({"entry":[{"changes":[]}]})", R"({"entry":[]})"})
    EXPECT_EQ(of(nothing), "") << "an empty list has no events: " << nothing;
  EXPECT_EQ(of(R"({"entry":{"changes":{"statuses":)" + one("a") + "}}}"), "a:complete:fine:0 ");
  for (const auto* none : {R"({"entry":[{"changes":[{"messages":[]}]}]})", R"({"entry":7})", "[]"})
    EXPECT_EQ(of(none), "::missing_field:0 ") << none;
  std::string many = R"({"entry":[)";
  for (int i = 0; i < 11; ++i) {
    many += std::string(i > 0 ? "," : "") + R"({"changes":[{"statuses":[)";
    for (int j = 0; j < 100; ++j) many += (j > 0 ? "," : "") + one("r");
    many += "]}]}";
  }
  EXPECT_EQ(of(many + "]}"), "::malformed_field:0 ") << "the bound is that of all lists together";
}

TEST(ExtractItems, AListThatIsNotThereSpeaksOfTheOperation) {
  for (const auto* results : {"[]", "null"}) {
    const auto c = extracted(p6(), with_results(results));
    EXPECT_EQ(fault(c), "fine");
    EXPECT_TRUE(c.items.empty());
    EXPECT_EQ(c.event, "progress");
  }
  EXPECT_EQ(shown(extracted(p6(), with_results(R"({"id":"a","status":"failed"})"))), "a:failed:fail ");
  EXPECT_TRUE(extracted(p6(), with_results("7")).unprocessable);
}

TEST(ExtractItems, WithoutAWordOnTheOperationTheItemsAreEnough) {
  const auto c = extracted(p6(), with_results(R"([{"id":"a","status":"succeeded"},{"id":"b","status":"odd"}])", ""));
  EXPECT_EQ(fault(c), "fine");
  EXPECT_TRUE(c.event.empty());
  EXPECT_TRUE(c.understood());
}

TEST(ExtractItems, WhereNoElementCanBeUnderstoodTheCallbackCannot) {
  const auto unmapped = extracted(p6(), with_results(R"([{"id":"a","status":"odd"},{"id":"b","status":"odder"}])", ""));
  EXPECT_EQ(fault(unmapped), "fine");
  EXPECT_FALSE(unmapped.understood());
  EXPECT_EQ(unmapped.event_raw, "odd");
  const auto broken = extracted(p6(), with_results(R"([{"id":"a","status":"odd"},{"status":"failed"}])", ""));
  EXPECT_TRUE(broken.unprocessable);
  const auto ignored = extracted(p6(), with_results(R"([{"id":"a","status":"created"}])", ""));
  EXPECT_EQ(ignored.event, "ignore");
  const auto all_bad_beside = extracted(p6(), with_results(R"([{"id":"a","status":"odd"}])"));
  EXPECT_TRUE(all_bad_beside.understood()) << "the operation itself moves";
}

TEST(ExtractItems, ABodyAboutOneItem) {
  auto how = p1();
  config::item_rule items;
  items.item_id = {json_at("/item_id")};
  items.event = {json_at("/status")};
  how.extract.items = items;
  const auto item = extracted(how, R"({"request_id":"r","event_id":"e","status":"succeeded","item_id":"a"})");
  EXPECT_EQ(shown(item), "a:succeeded:complete ");
  EXPECT_TRUE(item.event_raw.empty()) << "what happened happened to the item";
  const auto whole = extracted(how, R"({"request_id":"r","event_id":"e","status":"succeeded"})");
  EXPECT_TRUE(whole.items.empty());
  EXPECT_EQ(whole.event, "complete");
}

TEST(ExtractItems, ItemsArePartOfTheContent) {
  const auto digest = [](std::string_view results) { return extracted(p6(), with_results(results)).content_digest; };
  EXPECT_NE(digest(R"([{"id":"a","status":"succeeded"}])"), digest(R"([{"id":"a","status":"failed"}])"));
  EXPECT_NE(digest(R"([{"id":"a","status":"succeeded"}])"), digest(R"([{"id":"b","status":"succeeded"}])"));
  EXPECT_EQ(digest(R"([{"id":"a","status":"succeeded"}])"), digest(R"([ {"status":"succeeded", "id":"a"} ])"));
  EXPECT_EQ(extracted(p6(), b0).content_digest, extracted(p1(), b0).content_digest)
      << "callbacks without items keep their digest";
}

TEST(ExtractItems, TooManyElements) {
  std::string results = "[0";
  for (std::size_t i = 1; i <= record::items_in_callback_max; ++i) results += ",0";
  EXPECT_TRUE(extracted(p6(), with_results(results + "]")).unprocessable);
}

std::vector<record::callback> events_of(const config::provider& how, std::string body, http::header_list headers = {}) {
  http::request from;
  from.method = "POST";
  from.body = std::move(body);
  from.headers = std::move(headers);
  record::callback whole;
  whole.provider = &how;
  whole.received_at = *parse_rfc3339("2026-10-01T10:00:00Z");
  return extract_each(how, from, whole);
}

config::provider many(std::string each) {
  config::provider out = p1();
  out.extract.each = std::move(each);
  return out;
}

TEST(ExtractEach, EachElementIsACallback) {
  const auto how = many("/events");
  const auto parts = events_of(how, R"({"events":[{"request_id":"r1","event_id":"1","status":"succeeded"},
    {"request_id":"r2","event_id":"2","status":"odd"},{"event_id":"3","status":"failed"},7]})");
  ASSERT_EQ(parts.size(), 4u);
  EXPECT_EQ(parts[0].request_id, "r1");
  EXPECT_EQ(parts[0].event, "complete");
  EXPECT_FALSE(parts[1].understood());
  EXPECT_FALSE(parts[1].unprocessable);
  EXPECT_TRUE(parts[2].unprocessable);
  EXPECT_TRUE(parts[3].unprocessable);
  EXPECT_NE(parts[0].id, parts[1].id);
  EXPECT_EQ(parts[0].body_digest, parts[3].body_digest);
  EXPECT_NE(parts[0].content_digest, parts[0].body_digest);
}

TEST(ExtractEach, TheBodyOrAnObjectAsTheList) {
  EXPECT_EQ(events_of(many(""), R"([{"request_id":"r","event_id":"1","status":"failed"}])").size(), 1u);
  EXPECT_EQ(events_of(many("/e"), R"({"e":{"request_id":"r","event_id":"1","status":"failed"}})").front().event, "fail");
  EXPECT_TRUE(events_of(many("/e"), R"({"e":[]})").empty());
  for (const auto* body : {"{}", R"({"e":1})", "[", ""}) {
    const auto parts = events_of(many("/e"), body);
    ASSERT_EQ(parts.size(), 1u) << body;
    EXPECT_TRUE(parts.front().unprocessable) << body;
  }
}

TEST(ExtractEach, AKeyOutsideTheElementNamesItByItsPlace) {
  auto how = many("/e");
  how.extract.idempotency_key = {at_place(config::source::place::header, "x-delivery")};
  const auto body = R"({"e":[{"request_id":"r","status":"failed"},{"request_id":"r","status":"failed"}]})";
  const auto parts = events_of(how, body, {{"X-Delivery", "d1"}});
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_NE(parts[0].key, parts[1].key);
  EXPECT_EQ(parts[1].key_text, "d1 / 1");
  EXPECT_EQ(events_of(how, body, {{"X-Delivery", "d1"}})[1].key, parts[1].key);
  const auto within = events_of(many("/e"), R"({"e":[{"request_id":"r","event_id":"1","status":"failed"}]})");
  EXPECT_EQ(within.front().key_text, "1") << "a key of its own needs no place";
}

TEST(ExtractEach, TheTextOfAnElementIsItsContentWhereBytesAre) {
  auto how = many("/e");
  how.content = config::content_rule::bytes;
  const auto digest = [&](const char* element, const char* around) {
    return events_of(how, std::string(R"({"e":[)") + element + "]" + around + "}").front().content_digest;
  };
  const auto* element = R"({"request_id":"r","event_id":"1","status":"failed","note":"x"})";
  EXPECT_EQ(digest(element, ""), digest(element, R"(,"sent":2)")) << "what stands around it is not its content";
  EXPECT_NE(digest(element, ""), digest(R"({"request_id":"r","event_id":"1","status":"failed","note":"y"})", ""));
}

}  // namespace
}  // namespace recibo::receive
