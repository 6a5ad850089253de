// The table as OpenAPI 3.1. Pure: what is written here is what service.cpp enforces from the same rows.
#include "recibo/api/endpoint.hpp"

#include "recibo/core/json_writer.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>

namespace recibo::api {
namespace {

void write_header_parameter(json_writer& out, const member& m, std::string_view in) {
  out.begin_object().text("name", m.name).text("in", in).flag("required", m.required);
  if (!m.value.about.empty()) out.text("description", m.value.about);
  auto plain = m.value;
  plain.about.clear();
  write_schema(out.key("schema"), plain);
  out.end_object();
}

void write_path_parameters(json_writer& out, std::string_view path) {
  for (auto at = path.find('{'); at != std::string_view::npos; at = path.find('{', at + 1)) {
    const auto name = path.substr(at + 1, path.find('}', at) - at - 1);
    out.begin_object().text("name", name).text("in", "path").flag("required", true);
    out.key("schema").begin_object().text("type", "string").end_object().end_object();
  }
}

// Any metadata.<key>=value: an object whose members are parameters.
void write_metadata_parameter(json_writer& out) {
  out.begin_object().text("name", "metadata").text("in", "query").flag("required", false);
  out.text("description", "metadata.<key>=<value>, as often as wanted: operations whose metadata has all of these.");
  out.text("style", "form").flag("explode", true);
  out.key("schema").begin_object().text("type", "object").key("patternProperties").begin_object();
  out.key(R"(^metadata\..+$)").begin_object().text("type", "string").end_object().end_object();
  out.flag("additionalProperties", false).end_object().end_object();
}

void write_answer(json_writer& out, const answer& a) {
  out.key(std::to_string(a.status)).begin_object().text("description", a.about);
  if (!a.headers.empty()) {
    out.key("headers").begin_object();
    for (const auto& h : a.headers) {
      out.key(h.name).begin_object().flag("required", h.required);
      write_schema(out.key("schema"), h.value);
      out.end_object();
    }
    out.end_object();
  }
  out.key("content").begin_object().key(a.content_type).begin_object();
  if (a.body) write_schema(out.key("schema"), *a.body);
  out.end_object().end_object();
  out.end_object();
}

void write_problem_reference(json_writer& out, std::string_view status) {
  out.key(status).begin_object().text("$ref", "#/components/responses/Problem").end_object();
}

void write_operation(json_writer& out, const endpoint& e) {
  auto method = e.method;
  std::transform(method.begin(), method.end(), method.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  out.key(method).begin_object();
  out.text("operationId", e.id).text("summary", e.summary);
  out.key("tags").begin_array().text(e.tag).end_array();
  if (!e.who.open) {
    std::string who = "Role " + std::string(config::to_string(e.who.least)) + " or above";
    if (e.who.client) who += "; role client, for what is its own";
    if (e.who.payload) who += "; with the permission payload";
    out.text("description", who + ".");
  }
  out.key("security").begin_array();
  if (!e.who.open) out.begin_object().key("token").begin_array().end_array().end_object();
  out.end_array();
  const bool placed = e.path.find('{') != std::string::npos;
  if (placed || !e.query.empty() || !e.headers.empty() || e.metadata_filter) {
    out.key("parameters").begin_array();
    write_path_parameters(out, e.path);
    for (const auto& m : e.query) write_header_parameter(out, m, "query");
    if (e.metadata_filter) write_metadata_parameter(out);
    for (const auto& m : e.headers) write_header_parameter(out, m, "header");
    out.end_array();
  }
  if (e.body) {
    out.key("requestBody").begin_object().flag("required", true);
    out.key("content").begin_object().key("application/json").begin_object();
    write_schema(out.key("schema"), *e.body);
    out.end_object().end_object().end_object();
  }
  out.key("responses").begin_object();
  for (const auto& a : e.answers) write_answer(out, a);
  if (!e.who.open) {
    for (const auto* status : {"401", "403"}) write_problem_reference(out, status);
  }
  if (placed) write_problem_reference(out, "404");
  if (e.body) {
    for (const auto* status : {"400", "409", "413", "415"}) write_problem_reference(out, status);
  }
  if (e.body || !e.query.empty()) write_problem_reference(out, "422");
  write_problem_reference(out, "503");
  write_problem_reference(out, "default");
  out.end_object();
  out.end_object();
}

schema problem_schema() {
  return object({
      required("type", about(string(), "A URN: it identifies, and promises no page.")),
      required("title", string()),
      required("status", integer(400, 599)),
      required("detail", string()),
      required("code", about(string(), "The stable word.")),
      required("retryable", about(boolean(), "The same request may pass later.")),
      optional("request_id", string()),
      optional("delivery_id", string()),
      optional("trace_id", string()),
      optional("state",
               about(string(), "Of intent_conflict, illegal_transition, overtaken and status_unclear: the present state.")),
      optional("operation", about(string(), "Of intent_conflict: where the operation is.")),
      optional("allowed_events",
               about(list(string()), "Of illegal_transition, overtaken and status_unclear: what may be raised now.")),
      optional("errors", about(list(component("Diagnostic")), "Of invalid_configuration.")),
  });
}

std::string make_document() {
  const auto& table = endpoints();
  json_writer out;
  out.begin_object().text("openapi", "3.1.0").text("jsonSchemaDialect", "https://json-schema.org/draft/2020-12/schema");
  out.key("info").begin_object().text("title", "Recibo").text("version", RECIBO_VERSION);
  out.text("summary", "Receives asynchronous callbacks, records them once, applies legal transitions.");
  out.text("description",
           "Two listeners: /callbacks/… is the callbacks listener's, /v1/… the API's; health is on both. Errors are RFC 9457 "
           "problems. Times are "
           "RFC 3339 in UTC with microseconds; money is a decimal in a string with an ISO 4217 currency. HEAD is answered "
           "wherever GET is.");
  out.end_object();
  // One path may have several methods, wherever they stand in the table.
  std::map<std::string, std::vector<const endpoint*>> paths;
  for (const auto& e : table.endpoints) paths[e.path].push_back(&e);
  out.key("paths").begin_object();
  for (const auto& [path, methods] : paths) {
    out.key(path).begin_object();
    for (const auto* e : methods) write_operation(out, *e);
    out.end_object();
  }
  out.end_object();
  out.key("components").begin_object();
  out.key("securitySchemes")
      .begin_object()
      .key("token")
      .begin_object()
      .text("type", "http")
      .text("scheme", "bearer")
      .end_object()
      .end_object();
  out.key("responses").begin_object().key("Problem").begin_object();
  out.text("description", "Refused; `code` says why, `retryable` whether to send it again. 429 and 503 carry Retry-After.");
  out.key("content").begin_object().key("application/problem+json").begin_object();
  write_schema(out.key("schema"), component("Problem"));
  out.end_object().end_object().end_object().end_object();
  out.key("schemas").begin_object();
  for (const auto& [name, what] : table.schemas) write_schema(out.key(name), what);
  write_schema(out.key("Problem"), problem_schema());
  out.end_object().end_object().end_object();
  return out.take();
}

}  // namespace

const std::string& openapi_json() {
  static const auto made = make_document();
  return made;
}

}  // namespace recibo::api
