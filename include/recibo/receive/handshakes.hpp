// Verification requests of providers, and what they want to hear (R18, S28). Pure: settings, request and time in, answer out.
// A handshake that is signed is verified before it comes here. What is echoed without a signature is bounded in length and
// characters and goes out as text/plain, so that the endpoint can neither be made to speak for somebody else nor to sign for him.
// Nothing is stored. Facts and their sources: src/config/provider_profiles.json, docs/providers/.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/http/message.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::receive {

// The longest challenge that is taken, in bytes. Providers send some dozens; Microsoft's token is the longest.
inline constexpr std::size_t challenge_max = 2048;

// For Allow: "POST", "GET, POST" or "HEAD, POST".
const char* methods_of(const config::provider& of) noexcept;
bool takes_method(const config::provider& of, std::string_view method) noexcept;

// A GET or HEAD that takes_method. 200 with what the provider wants to hear; 403 where it names a wrong token (compared in
// constant time); 400 where the challenge is missing, stands twice, is too long or holds other than printable ASCII; 503 where no
// secret is valid to answer with. Nothing of the request comes back but with 200.
http::response answer_question(const config::provider& of, const http::request& asked, sys_micros at);

// A POST that nobody signed and that tells no news: Microsoft's validationToken, WooCommerce's ping, Asana's X-Hook-Secret.
// nullopt: it is none of these. Only a request without news in its body is a handshake, so that no callback is taken for one.
std::optional<http::response> answer_unsigned(const config::provider& of, const http::request& asked);

struct signed_handshake {
  http::response answer;
  // AWS SNS: to be fetched before `answer` is given; empty otherwise. Its host has been checked.
  std::string confirm_url{};
  // It is authentic and asks for what cannot be given: to be kept as unprocessable, for this reason, and `answer` is none.
  std::optional<error> unusable{};
};
// A POST whose signature is right. `secret_name`: the secret that verified it. nullopt: an ordinary callback.
std::optional<signed_handshake> answer_signed(const config::provider& of, const http::request& asked,
                                              std::string_view secret_name);

// Whether the signature of this POST is one that answer_question gives to anybody who asks (X's crc_token, Braintree's
// bt_challenge): then it says nothing about who sent it.
bool signed_by_a_handshake(const config::provider& of, const http::request& asked);

// Whether the provider wants a refusal of its signature without a body (Xero's intent to receive).
bool refuses_without_body(const config::provider& of) noexcept;

}  // namespace recibo::receive
