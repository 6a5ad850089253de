// GET /v1/providers/{name}/refusals: why callbacks of a provider were refused, as far as this replica remembers.
#include "handlers.hpp"

#include "recibo/receive/refusals.hpp"

#include <utility>

namespace recibo::api {
namespace {

boost::asio::awaitable<http::response> list_refusals(inside& in, call& of) {
  if (!of.settings->providers.contains(of.path.front())) co_return not_found(of, "provider");
  json_writer out;
  out.begin_object().key("data").begin_array();
  const auto all = in.with.refusals ? in.with.refusals->latest(of.path.front()) : std::vector<receive::refusal_entry>();
  for (const auto& one : all) {
    out.begin_object().text("reason", one.reason).text("cause", one.cause).text("explanation", one.explanation);
    out.text_or_null("secret", one.secret)
        .number("count", static_cast<std::int64_t>(one.count))
        .time("first_at", one.first_at)
        .time("last_at", one.last_at);
    out.text("last_peer", one.last_peer).text("last_trace_id", one.last_trace_id).end_object();
  }
  out.end_array().null("next_cursor").end_object();
  co_return answer_json(200, std::move(out));
}

}  // namespace

void add_refusals(endpoint_table& to) {
  to.schemas.emplace_back(
      "Refusal",
      object({
          required("reason", about(string(), "Why it was answered 401: the word of recibo_signature_failures_total.")),
          required("cause",
                   about(string(), "The most likely cause, as a word; not_examined where there were too many to look into.")),
          required("explanation", about(string(), "The same for people. Holds no value of a request.")),
          or_null("secret", about(string(), "Name of the secret that made the signature all the same.")),
          required("count", about(integer(), "How many were alike.")),
          required("first_at", instant()),
          required("last_at", instant()),
          required("last_peer", about(string(), "Address of the latest sender.")),
          required("last_trace_id", string()),
      }));
  endpoint e;
  e.method = "GET";
  e.path = "/v1/providers/{name}/refusals";
  e.id = "listRefusals";
  e.tag = "providers";
  e.summary = "Why callbacks of a provider were refused lately, from the memory of this replica: the latest 20 that differ.";
  e.answers = {{200, "The latest first.", page_of("Refusal"), "application/json", {}}};
  e.run = list_refusals;
  to.endpoints.push_back(std::move(e));
}

}  // namespace recibo::api
