#include "recibo/config/handshake.hpp"

namespace recibo::config {

std::string_view to_string(handshake_kind k) noexcept {
  switch (k) {
    case handshake_kind::slack: return "slack";
    case handshake_kind::zoom: return "zoom";
    case handshake_kind::meta: return "meta";
    case handshake_kind::dropbox: return "dropbox";
    case handshake_kind::twitch: return "twitch";
    case handshake_kind::xero: return "xero";
    case handshake_kind::microsoft_graph: return "microsoft-graph";
    case handshake_kind::okta: return "okta";
    case handshake_kind::aws_sns: return "aws-sns";
    case handshake_kind::discord: return "discord";
    case handshake_kind::braintree: return "braintree";
    case handshake_kind::woocommerce: return "woocommerce";
    case handshake_kind::circle: return "circle";
    case handshake_kind::intercom: return "intercom";
    case handshake_kind::x_twitter: return "x-twitter";
    case handshake_kind::asana: return "asana";
  }
  return "";
}

const std::vector<std::string_view>& handshake_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (int k = 0; k <= static_cast<int>(handshake_kind::asana); ++k) out.push_back(to_string(static_cast<handshake_kind>(k)));
    return out;
  }();
  return names;
}

std::optional<handshake_kind> find_handshake(std::string_view name) noexcept {
  for (int k = 0; k <= static_cast<int>(handshake_kind::asana); ++k) {
    if (to_string(static_cast<handshake_kind>(k)) == name) return static_cast<handshake_kind>(k);
  }
  return std::nullopt;
}

bool wants_token(handshake_kind k) noexcept { return k == handshake_kind::meta; }

bool wants_secret(handshake_kind k) noexcept {
  return k == handshake_kind::zoom || k == handshake_kind::braintree || k == handshake_kind::x_twitter;
}

}  // namespace recibo::config
