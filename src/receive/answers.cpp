#include "recibo/receive/answers.hpp"

#include "recibo/config/answers.hpp"
#include "recibo/core/json.hpp"
#include "recibo/http/problem.hpp"

namespace recibo::receive {
namespace {

using transition::disposition;

void append_member(std::string& json, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  if (json.size() > 1) json += ',';
  append_json_string(json, name);
  json += ':';
  append_json_string(json, value);
}

struct told {
  std::string_view delivery_id, request_id, state, detail, trace_id, items;
  disposition word = disposition::applied;
  const std::vector<record::outcome>* events = nullptr;  // of one request; nullptr: it is one callback
};

// Of one event among several.
void append_event(std::string& json, const record::outcome& of) {
  json += '{';
  const auto start = json.size();
  const auto member = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    if (json.size() > start) json += ',';
    append_json_string(json, name);
    json += ':';
    append_json_string(json, value);
  };
  if (!of.delivery.is_nil()) member("delivery_id", to_string(of.delivery));
  member("request_id", of.request_id);
  member("disposition", transition::to_string(of.disposition));
  member("state", of.state);
  member("detail", of.detail);
  if (!of.items.empty()) json.append(",\"items\":").append(of.items);
  json += '}';
}

void append_events(std::string& json, const std::vector<record::outcome>& all) {
  json += ",\"events\":[";
  for (const auto& e : all) {
    if (&e != all.data()) json += ',';
    append_event(json, e);
  }
  json += ']';
}

std::string contract_body(const told& of) {
  std::string json = "{";
  append_member(json, "delivery_id", of.delivery_id);
  append_member(json, "request_id", of.request_id);
  append_member(json, "disposition", transition::to_string(of.word));
  append_member(json, "state", of.state);
  if (!of.items.empty()) json.append(",\"items\":").append(of.items);
  if (of.events) append_events(json, *of.events);
  return json + '}';
}

// For those that are refusals by default; others become one only by a provider's own `answers`.
std::string_view default_detail(disposition word) noexcept {
  switch (word) {
    case disposition::conflict: return "The same key was recorded with other content; the first content stands.";
    case disposition::unprocessable: return "The callback is authentic and cannot be understood; it is kept.";
    case disposition::unknown_operation: return "No such operation is registered.";
    case disposition::applied:
    case disposition::redundant:
    case disposition::partial:
    case disposition::duplicate:
    case disposition::stale:
    case disposition::parked:
    case disposition::review:
    case disposition::unmapped:
    case disposition::ignored:
    case disposition::hint: break;
  }
  return {};
}

http::response write(const told& of, const config::answer_shape& shape, const config::answers& how) {
  if (shape.status < 200 || shape.status > 299) {
    std::string_view detail = of.detail.empty() ? default_detail(of.word) : of.detail;
    // Some of its events are kept nowhere, whatever became of the others.
    const bool in_part = of.events && of.word == disposition::partial;
    if (in_part && of.detail.empty())
      detail = "Some of its events found no operation, and are not kept; the others are on record.";
    const auto code = in_part ? disposition::unknown_operation : of.word;
    const http::problem_context known{of.request_id, of.delivery_id, of.trace_id};
    auto out = http::problem(shape.status, transition::to_string(code), std::string(detail), known);
    if (of.events && out.body.ends_with('}')) {
      out.body.pop_back();
      append_events(out.body, *of.events);
      out.body += '}';
    }
    return out;
  }
  http::response out;
  out.status = shape.status;
  if (shape.body) {
    out.content_type = how.content_type;
    out.body = *shape.body;
  } else {
    out.body = contract_body(of);
  }
  // 204 has no content (RFC 9110, section 15.3.5).
  if (out.status == 204) out.body.clear();
  return out;
}

}  // namespace

http::response answer(const record::outcome& what, const config::answers& how, std::string_view trace_id) {
  const std::string delivery = what.delivery.is_nil() ? std::string() : to_string(what.delivery);
  const told of{delivery, what.request_id, what.state,       what.detail,
                trace_id, what.items,      what.disposition, what.parts.empty() ? nullptr : &what.parts};
  http::response out = write(of, {what.status, what.body}, how);
  if (what.replayed) out.headers.emplace_back("Idempotent-Replayed", "true");
  return out;
}

http::response answer_ignored(std::string_view request_id, const config::answers& how, std::string_view trace_id) {
  const told of{{}, request_id, {}, {}, trace_id, {}, disposition::ignored, nullptr};
  return write(of, config::shape_of(how, disposition::ignored), how);
}

std::string_view counted_as(const record::outcome& what) noexcept {
  return transition::to_string(what.replayed ? disposition::duplicate : what.disposition);
}

}  // namespace recibo::receive
