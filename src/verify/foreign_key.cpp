#include "recibo/verify/foreign_key.hpp"

#include "recibo/core/digest.hpp"

#include "collect.hpp"
#include "host.hpp"
#include "kinds.hpp"

#include <algorithm>
#include <array>

namespace recibo::verify {
namespace {

error unwanted(const char* why) { return error(permanent::signature_mismatch, why); }
// An answer of the provider's that is no key is the provider's fault, or a proxy's: not the sender's, and not for ever.
error no_key(const char* why) { return error(transient::not_ready, why); }

result<std::string_view> only_header(const reading& from, const std::string& name, const char* what) {
  const occurrence found = from.header(std::string_view(name));
  if (found.times > 1) return error(permanent::signature_repeated, std::string(what) + " stands more than once");
  if (found.times == 0 || found.value.empty()) return error(permanent::signature_missing, std::string("there is no ") + what);
  return found.value;
}

// Nothing is fetched for what holds no signature that could be checked with it.
result<void> want_signature(const scheme& how, reading& from) {
  const auto signatures = collect(how, from);
  if (!signatures) return signatures.error();
  if (signatures->candidates.empty()) return error(permanent::signature_missing, "no signature that can be decoded");
  return {};
}

result<std::optional<needed_key>> certificate_by_header(const scheme& how, reading& from) {
  const auto url = only_header(from, how.key.certificate_url_header, "URL of a certificate");
  if (!url) return url.error();
  const auto parts = plain_https(*url);
  const auto& below = how.key.host_suffixes;
  if (!parts || std::none_of(below.begin(), below.end(), [&](const auto& s) { return host_is_below(parts->host, s); }))
    return unwanted("the certificate's URL is not one of the provider's");
  if (const auto fine = want_signature(how, from); !fine) return fine.error();
  needed_key out;
  out.url = *url;
  return std::optional(std::move(out));
}

result<std::optional<needed_key>> key_by_header(const scheme& how, reading& from, const keyring& keys) {
  // Keys that are written down are the ones that are meant, and then nothing is fetched.
  if (!keys.secrets.empty()) return std::optional<needed_key>();
  const auto id = only_header(from, how.key.id_header, "ID of a key");
  if (!id) return id.error();
  if (!is_key_id(*id)) return unwanted("the key's ID is no ID");
  if (const auto fine = want_signature(how, from); !fine) return fine.error();
  needed_key out;
  out.what = needed_key::form::circle;
  out.id = *id;
  return std::optional(std::move(out));
}

result<fetched_key> read_plaid(const needed_key& what, std::string_view body, sys_micros now) {
  constexpr std::array<std::string_view, 1> at{"/key"};
  const json_reading read = read_json(body, at);
  if (read.broken || !read.values[0] || read.values[0]->kind != json_value::kind::object)
    return no_key("the answer holds no key");
  auto key = read_json_web_key(read.values[0]->text);
  if (!key || key->id != what.id) return no_key("the answer holds no key of this ID that can be used");
  if (key->expired_from && *key->expired_from <= now) return unwanted("the key has expired");
  return fetched_key{what.id, std::move(key->key), key->expired_from};
}

result<fetched_key> read_circle(const needed_key& what, std::string_view body) {
  constexpr std::array<std::string_view, 3> at{"/data/id", "/data/algorithm", "/data/publicKey"};
  const json_reading read = read_json(body, at);
  const auto is = [&](std::size_t i, std::string_view text) { return read.values[i] && read.values[i]->text == text; };
  if (read.broken || !is(0, what.id) || !is(1, "ECDSA_SHA_256") || !read.values[2])
    return no_key("the answer holds no key of this ID");
  const auto der = from_base64(read.values[2]->text);
  auto key = der ? public_key_from_spki(*der) : result<public_key_ptr>(misconfigured(""));
  if (!key || (*key)->what() != public_key::kind::p256) return no_key("the answer holds no key on P-256");
  return fetched_key{what.id, std::move(*key), std::nullopt};
}

result<fetched_key> read_certificate(const scheme& how, const needed_key& what, std::string_view body, certificate_rules rules,
                                     sys_micros now) {
  if (rules.names_below.empty()) {
    rules.names_below =
        how.kind == scheme_kind::aws_sns ? std::vector<std::string>{"amazonaws.com", "amazonaws.com.cn"} : how.key.host_suffixes;
  }
  auto checked = check_certificate(body, rules, now);
  if (!checked) return checked.error();
  if (checked->key->what() != public_key::kind::rsa) return no_key("the certificate's key is not RSA");
  return fetched_key{what.url, std::move(checked->key),
                     rules.strict ? std::optional(checked->until) : std::optional<sys_micros>()};
}

}  // namespace

bool is_key_id(std::string_view id) noexcept {
  // Dots alone would climb in a path.
  return !id.empty() && id.size() <= 128 && id.find_first_not_of('.') != std::string_view::npos &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' || c == '_' || c == '-';
         });
}

result<public_key_ptr> take_fetched(const needed_key& needed, const fetched_key* fetched, sys_micros now) {
  if (fetched == nullptr || !fetched->key)
    return error(transient::not_ready, "the key that this request names has not been fetched");
  if (fetched->cache_key != needed.cache_key()) return unwanted("the fetched key is another one");
  if (fetched->until && now >= *fetched->until) return unwanted("the key has expired");
  return fetched->key;
}

result<std::optional<needed_key>> which_key(const scheme& how, const signed_message& message, const keyring& keys,
                                            sys_micros now) {
  if (!how.needs_foreign_key()) return std::optional<needed_key>();
  reading from(how, message);
  if (how.kind == scheme_kind::plaid) return plaid_key(how, from, keys, now);
  if (how.kind == scheme_kind::aws_sns) return sns_key(from, keys, now);
  if (!how.key.certificate_url_header.empty()) return certificate_by_header(how, from);
  return key_by_header(how, from, keys);
}

bool speaks_of_other_body(const scheme& how, const signed_message& message) {
  if (how.kind != scheme_kind::plaid) return false;
  reading from(how, message);
  return plaid_speaks_of_other_body(from);
}

result<fetched_key> read_fetched_key(const scheme& how, const needed_key& what, std::string_view body,
                                     const certificate_rules& rules, sys_micros now) {
  if (body.size() > fetched_bytes_max) return no_key("the answer is too long for a key");
  switch (what.what) {
    case needed_key::form::certificate: return read_certificate(how, what, body, rules, now);
    case needed_key::form::plaid: return read_plaid(what, body, now);
    case needed_key::form::circle: return read_circle(what, body);
  }
  return no_key("the answer holds no key");
}

}  // namespace recibo::verify
