#include "recibo/config/settings.hpp"

#include <algorithm>

namespace recibo::config {

std::string_view to_string(unmatched u) noexcept {
  for (const auto& [word, one] : unmatched_words)
    if (one == u) return word;
  return "";
}

std::string_view to_string(role r) noexcept {
  switch (r) {
    case role::support: return "support";
    case role::reader: return "reader";
    case role::operator_: return "operator";
    case role::admin: return "admin";
    case role::client: return "client";
  }
  return "";
}

std::string destination::origin() const {
  if (!nats) return parsed_url.origin();
  // Without the port that is HTTP's own the authority is complete.
  const bool six = parsed_url.host.find(':') != std::string::npos;
  return (parsed_url.tls ? "tls://" : "nats://") + (six ? '[' + parsed_url.host + ']' : parsed_url.host) + ':' +
         std::to_string(parsed_url.port);
}

bool destination::subscribes(std::string_view type) const noexcept {
  return std::any_of(events.begin(), events.end(), [&](std::string_view pattern) {
    if (pattern == "*") return true;
    if (pattern.ends_with(".*")) return type.starts_with(pattern.substr(0, pattern.size() - 1));
    return pattern == type;
  });
}

}  // namespace recibo::config
