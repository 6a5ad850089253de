// GET /v1/workflows: the transition tables in force (R8).
#include "handlers.hpp"

#include "recibo/core/digest.hpp"

#include <utility>

namespace recibo::api {
namespace {

void write_workflow(json_writer& out, const transition::workflow& table) {
  out.begin_object().text("name", table.name()).text("digest", to_hex(binary(table.digest()))).text("initial", table.initial());
  out.key("states").begin_array();
  for (const auto& s : table.states()) {
    out.begin_object()
        .text("name", s.name)
        .text("label", s.label)
        .flag("terminal", s.terminal)
        .flag("done", s.done)
        .text_or_null("owner", s.owner);
    out.key("limit");
    if (s.limit) {
      out.begin_object().number("after_s", s.limit->after.count()).text("event", s.limit->event).end_object();
    } else {
      out.null();
    }
    out.end_object();
  }
  out.end_array().key("transitions").begin_array();
  for (const auto& m : table.moves()) {
    out.begin_object().text("from", m.from).text("event", m.event).text("to", m.to).key("by").begin_array();
    for (const auto who : m.by) out.text(transition::to_string(who));
    out.end_array().text_or_null("evidence", m.evidence).end_object();
  }
  out.end_array().key("items").begin_array();
  for (const auto& rule : table.items()) {
    out.begin_object().text("which", transition::to_string(rule.which)).key("states").begin_array();
    for (const auto& s : rule.states) out.text(s);
    out.end_array().text("event", rule.event).end_object();
  }
  out.end_array();
  out.key("_links").begin_object().text("self", "/v1/workflows/" + table.name()).end_object();
  out.end_object();
}

boost::asio::awaitable<http::response> list_workflows(inside&, call& of) {
  json_writer out;
  out.begin_object().key("data").begin_array();
  for (const auto& [name, table] : of.settings->workflows) write_workflow(out, *table);
  out.end_array().null("next_cursor").end_object();
  co_return answer_json(200, std::move(out));
}

boost::asio::awaitable<http::response> read_workflow(inside&, call& of) {
  const auto found = of.settings->workflows.find(of.path[0]);
  if (found == of.settings->workflows.end()) co_return not_found(of, "workflow");
  json_writer out;
  write_workflow(out, *found->second);
  co_return answer_json(200, std::move(out));
}

schema workflow_schema() {
  const auto limit = object({required("after_s", integer()), required("event", string())});
  return object({
      required("name", string()),
      required("digest", about(string(), "SHA-256 of the table: operations keep the one they were accepted under.")),
      required("initial", string()),
      required("states", list(object({required("name", string()), required("label", string()), required("terminal", boolean()),
                                      required("done", boolean()), or_null("owner", string()), or_null("limit", limit)}))),
      required("transitions", list(object({required("from", string()), required("event", string()), required("to", string()),
                                           required("by", list(one_of({"provider", "client", "operator", "clock"}))),
                                           or_null("evidence", string())}))),
      required("items", about(list(object({required("which", one_of({"all", "any"})), required("states", list(string())),
                                           required("event", string())})),
                              "What the states of the items mean for their operation, in this order.")),
      required("_links", object({required("self", string())})),
  });
}

}  // namespace

void add_workflows(endpoint_table& to) {
  to.schemas.emplace_back("Workflow", workflow_schema());
  endpoint all;
  all.method = "GET";
  all.path = "/v1/workflows";
  all.id = "listWorkflows";
  all.tag = "workflows";
  all.summary = "The transition tables of the configuration in force.";
  all.answers = {{200, "All of them.", page_of("Workflow"), "application/json", {}}};
  all.run = list_workflows;
  to.endpoints.push_back(std::move(all));

  endpoint one;
  one.method = "GET";
  one.path = "/v1/workflows/{name}";
  one.id = "readWorkflow";
  one.tag = "workflows";
  one.summary = "One transition table.";
  one.answers = {{200, "The table.", component("Workflow"), "application/json", {}}};
  one.run = read_workflow;
  to.endpoints.push_back(std::move(one));
}

}  // namespace recibo::api
