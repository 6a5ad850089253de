// What a provider asks before it trusts an endpoint (R18), as configured: `handshake: {type, token}` of a provider, or what its
// preset brings. The conversations themselves are in receive/handshakes.
#pragma once

#include "recibo/verify/keyring.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace recibo::config {

enum class handshake_kind {
  slack,            // signed POST url_verification: its challenge
  zoom,             // signed POST endpoint.url_validation: an HMAC of its token
  meta,             // GET hub.challenge, with our token in hub.verify_token
  dropbox,          // GET challenge
  twitch,           // signed POST webhook_callback_verification: its challenge
  xero,             // signed POST without events: 200 and nothing else, and 401 without a body
  microsoft_graph,  // POST with validationToken in the query
  okta,             // GET with the challenge in a header: JSON
  aws_sns,          // signed SubscriptionConfirmation: its SubscribeURL is fetched
  discord,          // signed POST of type 0 (webhook events) or 1 (interactions)
  braintree,        // GET bt_challenge: an HMAC of it
  woocommerce,      // unsigned form with webhook_id: 200
  circle,           // HEAD
  intercom,         // HEAD, and a signed ping
  x_twitter,        // GET crc_token: an HMAC of it
  asana,            // POST with X-Hook-Secret: the header comes back
};

// As in the configuration: "slack", "microsoft-graph", "aws-sns", "x-twitter", …
std::string_view to_string(handshake_kind k) noexcept;
// nullopt: there is none of that name.
std::optional<handshake_kind> find_handshake(std::string_view name) noexcept;
// Every name, in the order of the enum.
const std::vector<std::string_view>& handshake_names();

// Whether the provider sends a token of ours back, which must be configured.
bool wants_token(handshake_kind k) noexcept;
// Whether the answer is computed with the provider's secret.
bool wants_secret(handshake_kind k) noexcept;

struct handshake {
  handshake_kind kind = handshake_kind::slack;
  // Where `wants_token`.
  verify::named_secret token{};
};

}  // namespace recibo::config
