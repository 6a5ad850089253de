// A request as signature schemes look at it.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace recibo::verify {

// A request as it came, borrowed. `headers` in order of arrival, names in any case, values trimmed of blanks and tabs.
// `url` is the public URL that the provider knows, with its query, where the scheme signs it; `query` the raw query
// without '?'.
struct signed_message {
  std::string_view method;
  std::string_view url;
  std::string_view query;
  std::span<const std::pair<std::string, std::string>> headers;
  std::string_view body;
};

// The URL that the provider called: the configured one, with the query that arrived in place of its own.
inline std::string called_url(std::string_view public_url, std::string_view query) {
  if (public_url.empty() || query.empty()) return std::string(public_url);
  return std::string(public_url.substr(0, public_url.find('?'))).append("?").append(query);
}

}  // namespace recibo::verify
