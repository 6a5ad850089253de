// THE table of the API (decision 17): routing, rights, validation and /openapi.json all come from it.
#pragma once

#include "recibo/api/schema.hpp"
#include "recibo/config/settings.hpp"
#include "recibo/http/message.hpp"

#include <boost/asio/awaitable.hpp>

#include <optional>
#include <string>
#include <vector>

namespace recibo::api {

struct call;
struct inside;

// Answers one request. `in` outlives it, `of` lives until it is done.
using handler = boost::asio::awaitable<http::response> (*)(inside& in, call& of);

// Who may call an endpoint.
struct access {
  bool open = false;  // nobody needs a token
  config::role least = config::role::reader;
  bool client = false;   // role `client` too, for what is its own
  bool payload = false;  // and only with the permission `payload`
};

struct answer {
  int status = 200;
  std::string about;
  std::optional<schema> body;  // none: no body, or one that is no JSON
  std::string content_type = "application/json";
  std::vector<member> headers;  // required ones are always there
};

struct endpoint {
  std::string method;
  std::string path;  // segments are literal or {name}
  std::string id;    // operationId
  std::string tag;
  std::string summary;
  access who;
  std::vector<member> query;
  bool metadata_filter = false;  // also takes any metadata.<key>=value
  std::vector<member> headers;   // of the request, beside Authorization
  std::optional<schema> body;
  std::vector<answer> answers;  // of success; refusals are the same for all: problem+json
  handler run = nullptr;        // nullptr: served by the other listener, and only documented here
};

struct endpoint_table {
  std::vector<endpoint> endpoints;
  // Components that the endpoints refer to.
  std::vector<std::pair<std::string, schema>> schemas;
};

// The whole table, made once.
const endpoint_table& endpoints();

// The table as an OpenAPI 3.1 document: what GET /openapi.json answers and `recibo openapi` prints.
const std::string& openapi_json();

}  // namespace recibo::api
