// Plaid: a JWT in a header that holds the hash of the body (Plaid docs, "Verify webhooks"). Of JOSE nothing is served but
// what Plaid sends: compact form, ES256, a kid. An algorithm from the token decides nothing, so that neither "none" nor an
// HMAC under the public key can pass.
#include "recibo/core/digest.hpp"

#include "asymmetric.hpp"
#include "kinds.hpp"

#include <array>

namespace recibo::verify {
namespace {

constexpr std::string_view header_name = "plaid-verification";

struct web_token {
  std::string_view signed_part;  // header "." payload, as it came
  std::string key_id, signature, payload;
};

error broken_token(const char* why) { return error(permanent::signature_missing, why); }

result<web_token> read_token(const reading& from) {
  const occurrence found = from.header(header_name);
  if (found.times > 1) return error(permanent::signature_repeated, "the token's header stands more than once");
  if (found.times == 0 || found.value.empty()) return broken_token("there is no token");
  const std::string_view text = found.value;
  if (text.size() > signature_header_max) return broken_token("the token is too long");
  // RFC 7515, section 2: base64url without padding. With it one token would have two spellings.
  if (text.find('=') != std::string_view::npos) return broken_token("the token's parts are padded");
  const std::size_t first = text.find('.'), second = text.find('.', first == std::string_view::npos ? first : first + 1);
  if (second == std::string_view::npos || text.find('.', second + 1) != std::string_view::npos)
    return broken_token("the token has not three parts");
  const auto head = from_base64url(text.substr(0, first));
  auto payload = from_base64url(text.substr(first + 1, second - first - 1));
  auto signature = from_base64url(text.substr(second + 1));
  if (!head || !payload || !signature || signature->size() != 64) return broken_token("the token's parts cannot be decoded");

  constexpr std::array<std::string_view, 3> at{"/alg", "/kid", "/crit"};
  const json_reading read = read_json(*head, at);
  const auto text_of = [&](std::size_t i) -> std::string_view {
    const auto& v = read.values[i];
    return v && v->kind == json_value::kind::string ? std::string_view(v->text) : std::string_view();
  };
  if (read.broken) return broken_token("the token's header is no strict JSON");
  if (text_of(0) != "ES256") return error(permanent::signature_mismatch, "the token is not signed by ES256");
  // Extensions that must be understood are not understood (RFC 7515, section 4.1.11).
  if (read.values[2]) return error(permanent::signature_mismatch, "the token has critical extensions");
  if (!is_key_id(text_of(1))) return error(permanent::signature_mismatch, "the token names no key");
  return web_token{text.substr(0, second), std::string(text_of(1)), std::move(*signature), std::move(*payload)};
}

// What the token says of the body's hash, in hexadecimal; an error where that is none.
result<bool> is_hash_of_body(const std::optional<pointed_value>& hash, const reading& from) {
  if (!hash || hash->kind != json_value::kind::string)
    return error(permanent::content_missing, "the token holds no hash of the body");
  const auto said = from_hex(hash->text);
  return said && equal_constant_time(*said, digest(hash_name::sha256, std::array{from.message().body}).view());
}

// Its age, and that it speaks of this body: what a token must say whatever key signed it, so that none is fetched for one that
// cannot be right.
result<void> judge_claims(const scheme& how, const web_token& token, const reading& from, sys_micros now) {
  constexpr std::array<std::string_view, 2> at{"/iat", "/request_body_sha256"};
  const json_reading claims = read_json(token.payload, at);
  if (claims.broken) return broken_token("the token's payload is no strict JSON");
  const auto& issued = claims.values[0];
  if (!issued || issued->kind != json_value::kind::number) return error(permanent::timestamp_missing, "the token has no iat");
  const auto tolerance = how.timestamp ? how.timestamp->tolerance : std::nullopt;
  if (const auto fine = judge_time(timestamp_format::unix_s, tolerance, issued->text, now); !fine) return fine.error();
  const auto same = is_hash_of_body(claims.values[1], from);
  if (!same) return same.error();
  if (!*same) return error(permanent::signature_mismatch, "the body is not the one whose hash is signed");
  return {};
}

// A key that is written down, by its ID.
const named_secret* pinned(const keyring& keys, std::string_view id) noexcept {
  for (const named_secret& one : keys.secrets) {
    if (one.ready && one.ready->id == id) return &one;
  }
  return nullptr;
}

needed_key to_fetch(std::string id) {
  needed_key out;
  out.what = needed_key::form::plaid;
  out.id = std::move(id);
  return out;
}

}  // namespace

bool plaid_speaks_of_other_body(reading& from) {
  const auto token = read_token(from);
  if (!token) return false;
  constexpr std::array<std::string_view, 1> at{"/request_body_sha256"};
  const json_reading claims = read_json(token->payload, at);
  if (claims.broken) return false;
  const auto same = is_hash_of_body(claims.values[0], from);
  return same && !*same;
}

result<std::optional<needed_key>> plaid_key(const scheme& how, reading& from, const keyring& keys, sys_micros now) {
  auto token = read_token(from);
  if (!token) return token.error();
  // Keys that are written down are the ones that are meant, and then nothing is fetched.
  if (!keys.secrets.empty()) return std::optional<needed_key>();
  if (const auto fine = judge_claims(how, *token, from, now); !fine) return fine.error();
  return std::optional(to_fetch(std::move(token->key_id)));
}

result<std::string> verify_plaid(const scheme& how, reading& from, const keyring& keys, sys_micros now,
                                 const fetched_key* fetched) {
  const auto token = read_token(from);
  if (!token) return token.error();
  if (const auto fine = judge_claims(how, *token, from, now); !fine) return fine.error();

  public_key_ptr key;
  std::string name;
  if (keys.secrets.empty()) {
    auto taken = take_fetched(to_fetch(token->key_id), fetched, now);
    if (!taken) return taken.error();
    key = std::move(*taken);
    name = token->key_id;
  } else {
    const named_secret* const one = pinned(keys, token->key_id);
    if (one == nullptr || !usable(*one, now))
      return error(permanent::signature_mismatch, "the token is signed by an unknown key");
    if (one->ready->expired_from && now >= *one->ready->expired_from)
      return error(permanent::signature_mismatch, "the key has expired");
    key = one->ready->verifying;
    name = one->name;
  }
  if (!signed_by(*key, signing_method::ecdsa_raw, hash_name::sha256, std::array{token->signed_part}, token->signature))
    return error(permanent::signature_mismatch, "the token is not signed by the key that it names");
  return name;
}

}  // namespace recibo::verify
