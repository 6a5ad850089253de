// http and https URLs of the configuration, taken apart strictly (K29). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::config {

struct http_url {
  bool tls = false;
  std::string host;  // without the brackets of an IPv6 address
  std::uint16_t port = 0;
};

// The reason when it is none, never with the URL in it: it may hold a password.
struct url_reading {
  std::optional<http_url> url;
  std::string why;
};

// Absolute, printable ASCII without blanks, a host, no user, no password, no fragment, no backslash, and no host that
// looks like a number without being a dotted IPv4 address (resolvers read "2130706433" and "0x7f.1" as addresses).
url_reading parse_http_url(std::string_view text);

}  // namespace recibo::config
