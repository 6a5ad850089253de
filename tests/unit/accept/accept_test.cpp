#include "recibo/accept/accept.hpp"

#include "recibo/config/load.hpp"

#include <gtest/gtest.h>

namespace recibo::accept {
namespace {

std::shared_ptr<const config::settings> settings() {
  static const auto read = config::load_text("accept_test", R"(
providers:
  p1: {verify: {scheme: stripe, secrets: [whsec_test_secret_of_a_provider]}, extract: {request_id: /r, idempotency_key: /k, event: /e}, events: {done: complete}, workflow: short}
workflows:
  short: &short
    initial: accepted
    states: {accepted: {label: Accepted, limit: none, owner: ops}, completed: {label: Completed, terminal: true, done: true}}
    transitions: [{from: accepted, event: complete, to: completed, by: provider}]
  other:
    initial: open
    states: {open: {label: Open, limit: none, owner: ops}, completed: {label: Completed, terminal: true, done: true}}
    transitions: [{from: open, event: complete, to: completed, by: provider}]
)",
                                             ".");
  if (!read.settings) throw std::runtime_error(config::to_string(read.problems.front()));
  return read.settings;
}

const sys_micros at = *parse_rfc3339("2026-10-01T10:00:00.123456Z");

request good() {
  request r;
  r.client = "checkout";
  r.request_id = "req-1";
  r.provider = "p1";
  r.action = "pay";
  r.references = {"ref-2", "ref-1"};
  r.amount = "19.99";
  r.currency = "EUR";
  r.deadline = *parse_rfc3339("2030-01-01T00:00:00Z");
  r.items = {"i2", "i1"};
  r.metadata = R"({"order":"A-1"})";
  r.idempotency_key = "key";
  r.trace_id = "trace";
  return r;
}

record::registration made(request r) {
  auto made = make_registration(settings(), std::move(r), at);
  EXPECT_TRUE(made) << made.error().detail;
  return *made;
}

TEST(Accept, KeepsWhatWasGiven) {
  const auto r = made(good());
  EXPECT_EQ(r.request_id, "req-1");
  EXPECT_TRUE(r.request_id_given);
  EXPECT_EQ(r.client, "checkout");
  EXPECT_EQ(r.workflow->name(), "short");
  EXPECT_EQ(r.references, (std::vector<std::string>{"ref-2", "ref-1"}));
  EXPECT_EQ(r.amount->text, "19.99");
  EXPECT_EQ(r.accepted_at, at);
  EXPECT_EQ(r.items.size(), 2U);
  EXPECT_EQ(r.items[0].item_id, "i2");
  EXPECT_EQ(uuid_v7_time(r.id.bytes), std::chrono::floor<std::chrono::milliseconds>(at));
}

TEST(Accept, MakesARequestIdThatIsNotTheInnerOne) {
  auto r = good();
  r.request_id.reset();
  const auto one = made(r), two = made(r);
  EXPECT_FALSE(one.request_id_given);
  EXPECT_TRUE(parse_uuid_bytes(one.request_id));
  EXPECT_NE(one.request_id, two.request_id);
  EXPECT_NE(one.request_id, to_string(one.id));
  EXPECT_EQ(one.intent, two.intent);
}

TEST(Accept, TakesAnotherWorkflowWhenAsked) {
  auto r = good();
  r.workflow = "other";
  EXPECT_EQ(made(r).workflow->initial(), "open");
}

TEST(Accept, EqualMeaningIsEqualIntent) {
  const auto intent = made(good()).intent;
  for (const auto& change : std::vector<std::function<void(request&)>>{
           [](request& r) { r.amount = "019.990"; },
           [](request& r) {
             r.references = {"ref-1", "ref-2", "ref-1"};
           },
           [](request& r) {
             r.items = {"i1", "i2"};
           },
           [](request& r) { r.workflow = "short"; },
           [](request& r) { r.request_id = "req-2"; },
           [](request& r) { r.client = "storefront"; },
           [](request& r) { r.idempotency_key = "other"; },
           [](request& r) { r.trace_id = "other"; },
       }) {
    auto r = good();
    change(r);
    EXPECT_EQ(made(r).intent, intent);
  }
}

TEST(Accept, OtherMeaningIsAnotherIntent) {
  const auto intent = made(good()).intent;
  const std::map<std::string, std::function<void(request&)>> changes{
      {"amount", [](request& r) { r.amount = "19.98"; }},
      {"sign", [](request& r) { r.amount = "-19.99"; }},
      {"currency", [](request& r) { r.currency = "USD"; }},
      {"no money", [](request& r) { r.amount.reset(), r.currency.reset(); }},
      {"action", [](request& r) { r.action = "refund"; }},
      {"workflow", [](request& r) { r.workflow = "other"; }},
      {"references", [](request& r) { r.references = {"ref-1"}; }},
      {"joined references", [](request& r) { r.references = {"ref-1ref-2"}; }},
      {"items", [](request& r) { r.items = {"i1"}; }},
      {"deadline", [](request& r) { r.deadline = *r.deadline + std::chrono::microseconds(1); }},
      {"no deadline", [](request& r) { r.deadline.reset(); }},
      {"metadata", [](request& r) { r.metadata = "{}"; }},
  };
  for (const auto& [name, change] : changes) {
    auto r = good();
    change(r);
    EXPECT_NE(made(r).intent, intent) << name;
  }
}

struct wrong {
  const char* name;
  std::function<void(request&)> change;
  permanent code;
  const char* pointer;
};

TEST(Accept, RefusesWithTheFieldNamed) {
  const wrong cases[] = {
      {"provider", [](request& r) { r.provider = "nope"; }, permanent::unknown_provider, "/provider"},
      {"workflow", [](request& r) { r.workflow = "nope"; }, permanent::unknown_workflow, "/workflow"},
      {"currency missing", [](request& r) { r.currency.reset(); }, permanent::missing_field, "/currency"},
      {"amount missing", [](request& r) { r.amount.reset(); }, permanent::missing_field, "/amount"},
      {"amount", [](request& r) { r.amount = "1e3"; }, permanent::malformed_field, "/amount"},
      {"item twice",
       [](request& r) {
         r.items = {"a", "b", "a"};
       },
       permanent::malformed_field, "/items/2/item_id"},
  };
  for (const auto& c : cases) {
    auto r = good();
    c.change(r);
    const auto made = make_registration(settings(), r, at);
    ASSERT_FALSE(made) << c.name;
    EXPECT_EQ(made.error().code, make_error_code(c.code)) << c.name;
    EXPECT_EQ(made.error().detail.rfind(c.pointer, 0), 0U) << made.error().detail;
  }
}

}  // namespace
}  // namespace recibo::accept
