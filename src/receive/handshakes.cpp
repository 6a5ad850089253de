#include "recibo/receive/handshakes.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/core/json.hpp"
#include "recibo/http/problem.hpp"
#include "recibo/verify/foreign_key.hpp"
#include "recibo/verify/keyed_hash.hpp"
#include "recibo/verify/strict_json.hpp"

#include <algorithm>

namespace recibo::receive {
namespace {

using config::handshake_kind;
using verify::hash_name;

http::response say(int status, std::string type, std::string body) {
  http::response out;
  out.status = status;
  out.content_type = std::move(type);
  out.body = std::move(body);
  // A challenge is good once.
  out.headers.emplace_back("Cache-Control", "no-store");
  return out;
}

// ASCII alone goes out, so that no charset needs to be named and none can be guessed; nosniff is on every answer.
http::response plain(std::string text) { return say(200, "text/plain", std::move(text)); }
http::response nothing(int status = 200) { return say(status, "text/plain", {}); }
http::response as_json(std::string text) { return say(200, "application/json", std::move(text)); }

http::response no_challenge() {
  return http::problem(400, "malformed_challenge", "This is no verification request of this provider.");
}
// No word of the API's: "forbidden" speaks of a role.
http::response wrong_token() {
  return http::problem(403, "wrong_verify_token", "The token is not the one that was agreed (handshake.token).");
}
http::response no_secret() { return http::problem(error(transient::not_ready, "No secret is valid now.")); }

bool is_printable(std::string_view text) noexcept {
  return !text.empty() && text.size() <= challenge_max &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

// What keyed hashes are given out for: neither JSON nor a form can be spelled in it, so that no callback can be signed with our
// help. The padding of base64 is the one use of "=".
bool is_word(std::string_view text, std::size_t longest) noexcept {
  if (text.size() > longest) return false;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' ||
           c == '+' || c == '/' || c == '~';
  });
}

bool is_digits(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Fields of the query. A name that stands twice has no value: which one counts must not depend on who reads it (K10).
class question {
 public:
  explicit question(const http::request& asked) : fields_(http::parse_form(asked.query)) {}
  std::optional<std::string_view> field(std::string_view name) const noexcept {
    std::optional<std::string_view> found;
    if (!fields_) return found;
    for (const auto& [key, value] : *fields_) {
      if (key != name) continue;
      if (found) return std::nullopt;
      found = value;
    }
    return found;
  }

 private:
  std::optional<std::vector<std::pair<std::string, std::string>>> fields_;
};

std::optional<std::string_view> one_header(const http::request& asked, std::string_view name) noexcept {
  if (http::count_header(asked.headers, name) != 1) return std::nullopt;
  return http::find_header(asked.headers, name);
}

const verify::named_secret* valid_secret(const config::provider& of, sys_micros at) noexcept {
  const auto& all = of.keys.secrets;
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const verify::named_secret& s) { return s.valid_at(at) && !s.text.empty(); });
  return it == all.end() ? nullptr : &*it;
}

const verify::named_secret* secret_named(const config::provider& of, std::string_view name) noexcept {
  const auto& all = of.keys.secrets;
  const auto it =
      std::find_if(all.begin(), all.end(), [&](const verify::named_secret& s) { return s.name == name && !s.text.empty(); });
  return it == all.end() ? nullptr : &*it;
}

http::response echo(std::optional<std::string_view> challenge) {
  if (!challenge || !is_printable(*challenge)) return no_challenge();
  return plain(std::string(*challenge));
}

http::response answer_meta(const config::handshake& how, const question& asked, sys_micros at) {
  const auto mode = asked.field("hub.mode");
  const auto token = asked.field("hub.verify_token");
  const bool right =
      token && how.token.valid_at(at) && !how.token.text.empty() && equal_constant_time(*token, how.token.text.reveal());
  if (!right || mode != "subscribe") return wrong_token();
  return echo(asked.field("hub.challenge"));
}

http::response answer_okta(const http::request& asked) {
  const auto challenge = one_header(asked, "x-okta-verification-challenge");
  if (!challenge || !is_printable(*challenge)) return no_challenge();
  return as_json("{\"verification\":" + json_string(*challenge) + "}");
}

bool is_braintree_challenge(std::string_view text) {
  return text.size() >= 20 && text.size() <= 32 && from_hex(text.size() % 2 == 0 ? std::string(text) : std::string(text) + "0");
}

// publicKey|HMAC-SHA1 of the challenge, keyed with the SHA-1 of the private key. The challenge's own alphabet keeps it from being
// the bt_payload of a notification.
http::response answer_braintree(const config::provider& of, const question& asked, sys_micros at) {
  const auto challenge = asked.field("bt_challenge");
  if (!challenge || !is_braintree_challenge(*challenge)) return no_challenge();
  const verify::named_secret* secret = valid_secret(of, at);
  const std::string_view both = secret == nullptr ? std::string_view() : secret->text.reveal();
  const std::size_t bar = both.find('|');
  if (bar == std::string_view::npos || bar + 1 == both.size()) return no_secret();
  const std::string key = verify::plain_hash(hash_name::sha1, both.substr(bar + 1));
  return plain(std::string(both.substr(0, bar)) + '|' + to_hex(verify::keyed_hash(hash_name::sha1, key, *challenge)));
}

http::response answer_crc(const config::provider& of, const question& asked, sys_micros at) {
  const auto token = asked.field("crc_token");
  if (!token || !is_word(*token, 256)) return no_challenge();
  const verify::named_secret* secret = valid_secret(of, at);
  if (secret == nullptr) return no_secret();
  const std::string mac = verify::keyed_hash(hash_name::sha256, secret->text.reveal(), *token);
  return as_json("{\"response_token\":\"sha256=" + to_base64(mac) + "\"}");
}

// A body in which nothing can be told.
bool tells_nothing(std::string_view body) noexcept {
  std::string rest;
  for (const char c : body) {
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    if (rest.size() == 2) return false;
    rest += c;
  }
  return rest.empty() || rest == "{}";
}

// Some values of the body, read strictly; nothing where anything in it is ambiguous.
class told_json {
 public:
  told_json(std::string_view body, std::initializer_list<std::string_view> pointers)
      : read_(verify::read_json(body, std::span(pointers.begin(), pointers.size()))) {}
  const verify::pointed_value* at(std::size_t i) const noexcept {
    return read_.broken || !read_.values[i] ? nullptr : &*read_.values[i];
  }
  std::optional<std::string_view> text(std::size_t i) const noexcept {
    const auto* value = at(i);
    if (value == nullptr || value->kind != json_value::kind::string) return std::nullopt;
    return std::string_view(value->text);
  }
  bool is_number(std::size_t i, std::string_view as_written) const noexcept {
    const auto* value = at(i);
    return value != nullptr && value->kind == json_value::kind::number && value->text == as_written;
  }

 private:
  verify::json_reading read_;
};

// Authentic, so it is kept, and a person can see what came.
signed_handshake unusable(std::string_view what) {
  signed_handshake out;
  out.unusable = error(permanent::malformed_field, "a verification request whose " + std::string(what) +
                                                       " is absent, too long or holds " + "other than printable ASCII");
  return out;
}

signed_handshake signed_echo(std::optional<std::string_view> challenge) {
  if (!challenge || !is_printable(*challenge)) return unusable("challenge");
  return signed_handshake{plain(std::string(*challenge))};
}

std::optional<signed_handshake> answer_slack(const http::request& asked) {
  const told_json body(asked.body, {"/type", "/challenge"});
  if (body.text(0) != "url_verification") return std::nullopt;
  return signed_echo(body.text(1));
}

std::optional<signed_handshake> answer_zoom(const config::provider& of, const http::request& asked,
                                            std::string_view secret_name) {
  const told_json body(asked.body, {"/event", "/payload/plainToken"});
  if (body.text(0) != "endpoint.url_validation") return std::nullopt;
  const auto token = body.text(1);
  if (!token || !is_word(*token, 255)) return unusable("plainToken");
  const verify::named_secret* secret = secret_named(of, secret_name);
  if (secret == nullptr) return signed_handshake{no_secret()};
  const std::string mac = verify::keyed_hash(hash_name::sha256, secret->text.reveal(), *token);
  return signed_handshake{as_json("{\"plainToken\":" + json_string(*token) + ",\"encryptedToken\":\"" + to_hex(mac) + "\"}")};
}

std::optional<signed_handshake> answer_twitch(const http::request& asked) {
  if (one_header(asked, "twitch-eventsub-message-type") != "webhook_callback_verification") return std::nullopt;
  // The header is not signed. A notification has an event and no challenge, and stays one.
  const told_json body(asked.body, {"/challenge", "/event"});
  if (body.at(0) == nullptr || body.at(1) != nullptr) return std::nullopt;
  return signed_echo(body.text(0));
}

std::optional<signed_handshake> answer_xero(const http::request& asked) {
  const told_json body(asked.body, {"/events"});
  const auto* events = body.at(0);
  if (events == nullptr || events->kind != json_value::kind::array || events->text != "[]") return std::nullopt;
  return signed_handshake{nothing()};
}

std::optional<signed_handshake> answer_discord(const http::request& asked) {
  const told_json body(asked.body, {"/type", "/event"});
  // A webhook event and the first interaction both have type 1; only an event has an `event`.
  if (body.is_number(0, "0") && body.at(1) == nullptr) {
    signed_handshake out{nothing(204)};
    // Discord asks for a type even so.
    out.answer.content_type = "application/json";
    out.answer.typed = true;
    return out;
  }
  if (body.is_number(0, "1") && body.at(1) == nullptr) return signed_handshake{as_json("{\"type\":1}")};
  return std::nullopt;
}

std::optional<signed_handshake> answer_intercom(const config::provider& of, const http::request& asked) {
  const told_json body(asked.body, {"/topic"});
  if (body.text(0) != "ping" || of.events.find("ping") != of.events.end()) return std::nullopt;
  return signed_handshake{nothing()};
}

std::optional<signed_handshake> answer_sns(const http::request& asked) {
  const told_json body(asked.body, {"/Type", "/SubscribeURL"});
  // `Type` is signed, the header of the same meaning is not.
  const auto type = body.text(0);
  if (type == "UnsubscribeConfirmation") return signed_handshake{nothing()};
  if (type != "SubscriptionConfirmation") return std::nullopt;
  const auto url = body.text(1);
  if (!url || !is_printable(*url) || !verify::is_sns_url(*url)) {
    signed_handshake out;
    out.unusable = error(permanent::malformed_field, "a confirmation whose SubscribeURL is not one of AWS SNS");
    return out;
  }
  return signed_handshake{nothing(), std::string(*url)};
}

bool asks_by_get(handshake_kind k) noexcept {
  return k == handshake_kind::meta || k == handshake_kind::dropbox || k == handshake_kind::okta ||
         k == handshake_kind::braintree || k == handshake_kind::x_twitter;
}
bool asks_by_head(handshake_kind k) noexcept { return k == handshake_kind::circle || k == handshake_kind::intercom; }

}  // namespace

const char* methods_of(const config::provider& of) noexcept {
  if (of.handshake && asks_by_get(of.handshake->kind)) return "GET, POST";
  if (of.handshake && asks_by_head(of.handshake->kind)) return "HEAD, POST";
  return "POST";
}

bool takes_method(const config::provider& of, std::string_view method) noexcept {
  if (method == "POST") return true;
  if (!of.handshake) return false;
  return (method == "GET" && asks_by_get(of.handshake->kind)) || (method == "HEAD" && asks_by_head(of.handshake->kind));
}

http::response answer_question(const config::provider& of, const http::request& asked, sys_micros at) {
  const question query(asked);
  switch (of.handshake->kind) {
    case handshake_kind::meta: return answer_meta(*of.handshake, query, at);
    case handshake_kind::dropbox: return echo(query.field("challenge"));
    case handshake_kind::okta: return answer_okta(asked);
    case handshake_kind::braintree: return answer_braintree(of, query, at);
    case handshake_kind::x_twitter: return answer_crc(of, query, at);
    case handshake_kind::circle:
    case handshake_kind::intercom: return nothing();
    case handshake_kind::slack:
    case handshake_kind::zoom:
    case handshake_kind::twitch:
    case handshake_kind::xero:
    case handshake_kind::microsoft_graph:
    case handshake_kind::aws_sns:
    case handshake_kind::discord:
    case handshake_kind::woocommerce:
    case handshake_kind::asana: break;
  }
  return no_challenge();
}

std::optional<http::response> answer_unsigned(const config::provider& of, const http::request& asked) {
  if (!of.handshake) return std::nullopt;
  const bool silent = tells_nothing(asked.body);
  if (of.handshake->kind == handshake_kind::microsoft_graph) {
    const question query(asked);
    // Asked for and unusable is refused as such. With news in its body it is a callback, whatever its query says: to be judged
    // by what it carries, and not to be answered as if it had been taken.
    const bool asks = asked.query.find("validationToken") != std::string::npos;
    if (!asks || !silent) return std::nullopt;
    return echo(query.field("validationToken"));
  }
  if (of.handshake->kind == handshake_kind::woocommerce) {
    constexpr std::string_view field = "webhook_id=";
    const std::string_view body = asked.body;
    const bool ping = body.starts_with(field) && body.size() <= field.size() + 20 && is_digits(body.substr(field.size()));
    return ping ? std::optional(nothing()) : std::nullopt;
  }
  if (of.handshake->kind == handshake_kind::asana) {
    if (http::count_header(asked.headers, "x-hook-secret") == 0 || !silent) return std::nullopt;
    const auto secret = one_header(asked, "x-hook-secret");
    if (!secret || !is_word(*secret, 255)) return no_challenge();
    http::response out = nothing();
    out.headers.emplace_back("X-Hook-Secret", std::string(*secret));
    return out;
  }
  return std::nullopt;
}

std::optional<signed_handshake> answer_signed(const config::provider& of, const http::request& asked,
                                              std::string_view secret_name) {
  if (!of.handshake) return std::nullopt;
  switch (of.handshake->kind) {
    case handshake_kind::slack: return answer_slack(asked);
    case handshake_kind::zoom: return answer_zoom(of, asked, secret_name);
    case handshake_kind::twitch: return answer_twitch(asked);
    case handshake_kind::xero: return answer_xero(asked);
    case handshake_kind::discord: return answer_discord(asked);
    case handshake_kind::intercom: return answer_intercom(of, asked);
    case handshake_kind::aws_sns: return answer_sns(asked);
    case handshake_kind::meta:
    case handshake_kind::dropbox:
    case handshake_kind::microsoft_graph:
    case handshake_kind::okta:
    case handshake_kind::braintree:
    case handshake_kind::woocommerce:
    case handshake_kind::circle:
    case handshake_kind::x_twitter:
    case handshake_kind::asana: break;
  }
  return std::nullopt;
}

bool signed_by_a_handshake(const config::provider& of, const http::request& asked) {
  if (!of.handshake) return false;
  if (of.handshake->kind == handshake_kind::x_twitter) return is_word(asked.body, 256);
  if (of.handshake->kind != handshake_kind::braintree) return false;
  const auto fields = http::parse_form(asked.body);
  return fields && std::any_of(fields->begin(), fields->end(), [](const auto& f) {
           std::string_view value = f.second;
           // The verifier takes it with and without.
           if (value.ends_with('\n')) value.remove_suffix(1);
           return f.first == "bt_payload" && is_braintree_challenge(value);
         });
}

bool refuses_without_body(const config::provider& of) noexcept {
  return of.handshake && of.handshake->kind == handshake_kind::xero;
}

}  // namespace recibo::receive
