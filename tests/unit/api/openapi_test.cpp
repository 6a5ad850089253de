#include "recibo/api/endpoint.hpp"

#include "recibo/core/json_value.hpp"

#include <gtest/gtest.h>

#include <set>

namespace recibo::api {
namespace {

const json_value& document() {
  static const auto made = parse_json(openapi_json());
  if (!made) throw std::runtime_error(made.error().detail);
  return *made;
}

const json_value* at(const json_value& from, std::initializer_list<std::string_view> names) {
  const auto* here = &from;
  for (const auto name : names) {
    here = here->find(name);
    if (here == nullptr) return nullptr;
  }
  return here;
}

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

TEST(Openapi, IsStrictJsonOfVersion31) {
  EXPECT_EQ(document().find("openapi")->text, "3.1.0");
  EXPECT_EQ(at(document(), {"info", "version"})->text, RECIBO_VERSION);
}

TEST(Openapi, HasEveryEndpointOfTheTable) {
  std::set<std::string> ids;
  for (const auto& e : endpoints().endpoints) {
    const auto* operation = at(document(), {"paths", e.path, lower(e.method)});
    ASSERT_NE(operation, nullptr) << e.method << " " << e.path;
    EXPECT_TRUE(ids.insert(operation->find("operationId")->text).second) << e.id;
    for (const auto& a : e.answers) EXPECT_NE(at(*operation, {"responses", std::to_string(a.status)}), nullptr);
    EXPECT_NE(at(*operation, {"responses", "default"}), nullptr);
    // What is under /v1 needs a token, and only that.
    EXPECT_EQ(e.who.open, e.path.rfind("/v1/", 0) != 0) << e.path;
    EXPECT_EQ(operation->find("security")->elements.empty(), e.who.open);
  }
}

TEST(Openapi, EveryReferenceLeadsSomewhere) {
  std::vector<const json_value*> open{&document()};
  int references = 0;
  while (!open.empty()) {
    const auto* value = open.back();
    open.pop_back();
    if (const auto* target = value->find("$ref"); target != nullptr) {
      ++references;
      const auto name = target->text.substr(target->text.rfind('/') + 1);
      const auto* section = target->text.find("/responses/") != std::string::npos ? "responses" : "schemas";
      EXPECT_NE(at(document(), {"components", section, name}), nullptr) << target->text;
    }
    for (const auto& m : value->members) open.push_back(&m.value);
    for (const auto& e : value->elements) open.push_back(&e);
  }
  EXPECT_GT(references, 50);
}

TEST(Openapi, DescribesWhatTheContractNames) {
  const auto* operation = at(document(), {"components", "schemas", "Operation", "required"});
  ASSERT_NE(operation, nullptr);
  std::set<std::string> required;
  for (const auto& name : operation->elements) required.insert(name.text);
  for (const auto* name :
       {"request_id",  "provider",       "workflow",   "state",      "label",         "terminal",  "done",
        "version",     "accepted_at",    "updated_at", "deadline",   "overdue",       "reference", "references",
        "amount",      "currency",       "result",     "last_stage", "items_summary", "items",     "reconciled",
        "review_open", "allowed_events", "retry_safe", "metadata",   "action",        "_links"}) {
    EXPECT_TRUE(required.contains(name)) << name;
  }
  EXPECT_NE(at(document(), {"paths", "/callbacks/{provider}", "post"}), nullptr);
  EXPECT_NE(at(document(), {"components", "responses", "Problem", "content", "application/problem+json"}), nullptr);
}

}  // namespace
}  // namespace recibo::api
