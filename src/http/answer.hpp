// A response → the bytes of its head. Pure.
#pragma once

#include "recibo/http/message.hpp"

#include <string>
#include <string_view>

namespace recibo::http {

struct answer_frame {
  std::string_view date;            // IMF-fixdate
  std::string_view trace_id;        // X-Request-Id
  std::string_view trace_response;  // in the form of a traceparent
  bool http_1_0 = false;            // of the request: keep-alive must be said
  bool keep = true;                 // whether the connection is kept
};

// Whether a response with this status has a body, and with it Content-Length and Content-Type (RFC 9110 section 8.6).
bool may_have_body(int status) noexcept;

// Status line to empty line. A header of `of` whose name or value could break the head is left out, and so are those
// that are the session's to write.
std::string head_of(const response& of, const answer_frame& frame);

// "Thu, 01 Oct 2026 10:00:00 GMT" of Unix seconds.
std::string http_date(std::int64_t unix_seconds);

}  // namespace recibo::http
