// What needs no token: the document, metrics and health; and the callbacks listener's paths, which are only described here.
#include "handlers.hpp"

#include <utility>

namespace recibo::api {
namespace {

using boost::asio::awaitable;

awaitable<http::response> read_document(inside&, call&) {
  http::response out;
  out.body = openapi_json();
  co_return out;
}

awaitable<http::response> read_metrics(inside& in, call&) {
  http::response out;
  out.content_type = "text/plain; version=0.0.4; charset=utf-8";
  out.body = in.with.metrics();
  co_return out;
}

awaitable<http::response> read_livez(inside& in, call&) { co_return in.with.health.livez(); }
awaitable<http::response> read_readyz(inside& in, call&) { co_return in.with.health.readyz(); }

endpoint open(std::string method, std::string path, std::string id, std::string summary, handler run) {
  endpoint e;
  e.method = std::move(method);
  e.path = std::move(path);
  e.id = std::move(id);
  e.tag = "system";
  e.summary = std::move(summary);
  e.who.open = true;
  e.run = run;
  return e;
}

// The standard body; a provider may be configured to get another one, or none.
schema callback_answer() {
  const auto word = one_of({"applied", "redundant", "partial", "duplicate", "stale", "parked", "review", "conflict", "unmapped",
                            "unprocessable", "unknown_operation", "ignored", "hint"});
  const auto item = object({optional("item_id", string()),
                            optional("index", about(integer(), "Of an element whose item cannot be read, from 0.")),
                            required("disposition", word), optional("state", string()), optional("detail", string())});
  const auto items = optional("items", about(list(item), "What was decided about each item that the callback speaks of."));
  const auto event = object({optional("delivery_id", text(text_rule::uuid)), optional("request_id", string()),
                             required("disposition", word), optional("state", string()), optional("detail", string()), items});
  return object({
      optional("delivery_id", text(text_rule::uuid)),
      optional("request_id", string()),
      required("disposition", word),
      optional("state", string()),
      items,
      optional("events", about(list(event), "What became of each event of the request, in its order.")),
  });
}

}  // namespace

void add_system(endpoint_table& to) {
  auto document = open("GET", "/openapi.json", "readDocument", "This document.", read_document);
  document.answers = {{200, "OpenAPI 3.1.", map(), "application/json", {}}};
  to.endpoints.push_back(std::move(document));

  auto metrics = open("GET", "/metrics", "readMetrics", "Metrics in Prometheus' text format.", read_metrics);
  metrics.answers = {{200, "The metrics.", std::nullopt, "text/plain", {}}};
  to.endpoints.push_back(std::move(metrics));

  auto live = open("GET", "/livez", "readLiveness", "200 while the process runs. On both listeners.", read_livez);
  live.answers = {{200, "It runs.", map(), "application/json", {}}};
  to.endpoints.push_back(std::move(live));

  auto ready = open("GET", "/readyz", "readReadiness",
                    "200 when a callback could be recorded now, else 503 with the reasons. On both listeners.", read_readyz);
  ready.answers = {{200, "It is ready.", map(), "application/json", {}}};
  to.endpoints.push_back(std::move(ready));

  to.schemas.emplace_back("CallbackAnswer", callback_answer());
  auto callback =
      open("POST", "/callbacks/{provider}", "receiveCallback",
           "A provider's callback, on the callbacks listener: authenticated by its signature over the raw bytes.", nullptr);
  callback.tag = "callbacks";
  const auto replayed =
      optional("Idempotent-Replayed", about(one_of({"true"}), "The same key and content again: the first answer's result."));
  callback.answers = {
      {200,
       "Recorded, ignored by rule, or a verification request that is answered. `disposition` says which; providers may be "
       "configured to get a literal body, or none.",
       any(),
       "*/*",
       {replayed}},
      {204, "The same as 200, for providers that want it so.", any(), "*/*", {replayed}},
      {202, "Recorded: parked until its operation is registered, or not in the provider's map.", any(), "*/*", {replayed}},
  };
  callback.answers.push_back({401,
                              "The signature is missing, wrong, or outside the tolerance: the same words whatever is wrong with "
                              "it. Providers that ask for no body (Xero's intent to receive) get none, and no content type.",
                              component("Problem"),
                              "application/problem+json",
                              {}});
  // At the URL of one operation the same, by the methods that the provider's `callback_url` names.
  auto minted = callback;
  minted.path = "/callbacks/{provider}/{token}";
  minted.id = "receiveCallbackAtItsUrl";
  minted.summary =
      "The same at the callback URL of one operation (callback_url): the token authenticates it and names the operation.";
  to.endpoints.push_back(std::move(callback));
  to.endpoints.push_back(minted);
  minted.method = "GET";
  minted.id = "receiveCallbackByGet";
  minted.summary =
      "The same by GET, where `callback_url` lets it: what it says stands in the query. Also the verification request of a "
      "provider that asks by GET, as at the common URL.";
  to.endpoints.push_back(std::move(minted));

  auto handshake = open("GET", "/callbacks/{provider}", "answerHandshake",
                        "The verification request of a provider that asks by GET. 403 (wrong_verify_token) for a wrong token, "
                        "400 for an unusable challenge.",
                        nullptr);
  handshake.tag = "callbacks";
  handshake.answers = {{200, "What the provider wants to hear: the challenge as text, or JSON made of it.", any(), "*/*", {}}};
  to.endpoints.push_back(std::move(handshake));

  auto head = open("HEAD", "/callbacks/{provider}", "answerHandshakeHead",
                   "The verification request of a provider that asks by HEAD.", nullptr);
  head.tag = "callbacks";
  head.answers = {{200, "It is there.", std::nullopt, "text/plain", {}}};
  to.endpoints.push_back(std::move(head));
}

}  // namespace recibo::api
