// A request as the session read it and a response as it will be written. No Beast here: only http/ sees it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::http {

// In order of arrival, names as sent, values trimmed of blanks and tabs. Trailers are never among them (K10).
using header_list = std::vector<std::pair<std::string, std::string>>;

// First value of a header, name compared without case; nullopt when absent.
std::optional<std::string_view> find_header(const header_list& headers, std::string_view name) noexcept;
// How many times it stands there.
std::size_t count_header(const header_list& headers, std::string_view name) noexcept;

struct request {
  std::string method;
  // The raw request target, and its two halves: the path still percent-encoded, the query without '?'.
  std::string target, path, query;
  header_list headers;
  // Exactly the bytes sent, after transfer decoding.
  std::string body;
  // The socket's address; of the client behind a trusted proxy where there is one.
  std::string peer;
  // Scheme and host as a trusted proxy saw them, "https://hooks.example.com"; empty when none said so.
  std::string origin;
  // This request's own W3C trace context: the trace ID continues an incoming `traceparent`, the span ID is new.
  std::string trace_id, span_id;
  std::chrono::steady_clock::time_point arrived;
};

struct response {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  // More headers, for example Retry-After, Allow, Location, ETag. Content-Length, Date, Connection are the session's.
  header_list headers;
  // Close the connection after this answer.
  bool close = false;
  // Send Content-Type although there is no body.
  bool typed = false;
};

// %XX decoded; nullopt for a malformed escape. `plus_is_blank` for forms and queries.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank = false);
// name=value pairs of a query or form, decoded, in order; nullopt for a malformed escape.
std::optional<std::vector<std::pair<std::string, std::string>>> parse_form(std::string_view text);

}  // namespace recibo::http
