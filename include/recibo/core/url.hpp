// http and https URLs that we call, taken apart strictly (K29), and templates of such URLs. Pure.
#pragma once

#include "recibo/core/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo {

struct http_url {
  bool tls = false;
  std::string host;  // lower case, without the brackets of an IPv6 address and without a dot at its end
  std::uint16_t port = 0;
  std::string target;  // path and query as they are sent, at least "/"

  // As the Host header wants it: brackets around IPv6, the port only where it is not the scheme's own.
  std::string authority() const;
  // Scheme, host and port; for logs, because path and query of a URL may hold a token.
  std::string origin() const;
};

// The reason when it is none, never with the URL in it: it may hold a password.
struct url_reading {
  std::optional<http_url> url;
  std::string why;
};

// Absolute, printable ASCII without blanks, a host, no user, no password, no fragment, no backslash, and no host that
// looks like a number without being a dotted IPv4 address (resolvers read "2130706433" and "0x7f.1" as addresses). An
// internationalised name is taken in its ASCII form (xn--).
url_reading parse_http_url(std::string_view text);

// Everything but unreserved characters (RFC 3986) encoded: the result is one path segment. No encoding helps "." and "..",
// which stay dot segments in any spelling: who builds a path of foreign text refuses them, as url_template does.
std::string percent_encode(std::string_view text);

// "https://host/operations/{reference}": a URL with named gaps in its path or query, which foreign text fills (S39).
class url_template {
 public:
  // permanent::invalid_configuration   no URL, an unknown or unclosed gap, a gap in scheme, host or port, or dot segments
  // `names` are the gaps that may stand there.
  static result<url_template> parse(std::string_view text, const std::vector<std::string_view>& names);

  // Fills each gap with its value, percent-encoded: a value stays within the one path segment, or the one query value, in
  // which its gap stands. The host is always the template's.
  // permanent::missing_field     a gap without a value, or an empty value: the URL would be of something else
  // permanent::malformed_field   a path segment would become "." or "..", or the value holds a control character
  result<http_url> fill(const std::vector<std::pair<std::string_view, std::string_view>>& values) const;

  // The names of its gaps, in order.
  std::vector<std::string> gaps() const;
  const http_url& base() const noexcept { return base_; }

 private:
  struct piece {
    std::string text;  // literal, or the gap's name
    bool gap = false;
  };
  http_url base_;
  std::vector<piece> pieces_;  // of the target
};

}  // namespace recibo
