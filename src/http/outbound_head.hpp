// An outbound request as bytes. Pure.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/http/client.hpp"

#include <string>

namespace recibo::http {

// The whole request: request line, headers, body.
// permanent::url_refused, malformed_field   whatever would not be one request to that host
result<std::string> wire_of(const outbound_request& what, bool plain_http);

}  // namespace recibo::http
