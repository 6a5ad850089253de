#include "scheme_reader.hpp"

#include "secrets.hpp"

#include "recibo/verify/verifier.hpp"
#include "recibo/verify/words.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

// Keys that only a scheme from nothing takes.
constexpr std::string_view own_keys[] = {"kind",      "algorithm", "hash",      "key",      "signature",    "signed",   "content",
                                         "timestamp", "replay_id", "hash_from", "for_each", "url_variants", "body_hash"};

// Keys of the one preset that is told what a provider does.
constexpr std::string_view http_keys[] = {"required_components", "keys"};

bool refuse_own_keys(reading& r, section& s, std::string_view name) {
  bool good = true;
  for (const auto key : own_keys) {
    if (!s.has(key)) continue;
    s.get(key);
    r.error(s.key_at(key),
            std::string(key) + ": the scheme " + std::string(name) + " fixes this; only scheme: hmac starts from nothing");
    good = false;
  }
  for (const auto key : own_keys) s.get(key);
  return good;
}

constexpr choice<verify::scheme_kind> own_kinds[] = {
    {"hmac", verify::scheme_kind::hmac},       {"hash", verify::scheme_kind::hash},   {"token", verify::scheme_kind::token},
    {"ed25519", verify::scheme_kind::ed25519}, {"ecdsa", verify::scheme_kind::ecdsa}, {"rsa", verify::scheme_kind::rsa}};

// The kind that `scheme: NAME` starts from, where that is no preset.
std::optional<verify::scheme_kind> own_kind(std::string_view name) noexcept {
  for (const auto& one : own_kinds)
    if (one.word == name) return one.value;
  return std::nullopt;
}

// `kind` under `scheme: hmac`, which stands for a scheme of any kind.
std::optional<verify::scheme_kind> read_kind(reading& r, const field& kind, std::string_view scheme) {
  const auto out = own_kind(scheme);
  if (!kind) return out;
  verify::scheme_kind said{};
  if (!read_word(r, kind, said, own_kinds)) return std::nullopt;
  if (scheme != "hmac" && said != out) {
    r.error(kind.at, "kind: contradicts scheme");
    return std::nullopt;
  }
  return said;
}

// "hmac-sha256" and the like: the words of others for what has two keys here. Empty: it is none.
std::string spelled_otherwise(std::string_view name) {
  std::string plain;
  for (const char c : name)
    if (c != '-' && c != '_' && c != ' ') plain += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const auto& [word, unused] : verify::hash_words) {
    const std::string hash(word);
    if (plain == "hmac" + hash || plain == hash + "hmac" || plain == hash)
      return "; an HMAC of one's own is `scheme: hmac` with `algorithm: " + hash + "`";
  }
  return {};
}

bool read_preset(reading& r, section& s, const field& f, const std::string& name, verify::scheme& scheme) {
  const auto& presets = verify::presets();
  const auto it = presets.find(name);
  if (it != presets.end()) {
    scheme = it->second;
    const bool good = refuse_own_keys(r, s, name);
    return (scheme.kind != verify::scheme_kind::http_signatures || read_http_scheme(r, s, scheme)) && good;
  }
  s.ignore_rest();
  std::vector<std::string_view> known = {"none", "callback-url"};
  for (const auto& one : own_kinds) known.push_back(one.word);
  for (const auto& [preset, unused] : presets) known.push_back(preset);
  std::string hint = f.value->expanded ? "" : spelled_otherwise(name);
  if (hint.empty() && !f.value->expanded) hint = did_you_mean(name, known);
  r.error(f.at, "scheme: there is none named " + found(*f.value) + hint);
  return false;
}

// Overrides the tolerance. `off` is the only way to no age check (K11).
bool read_tolerance(reading& r, const field& f, verify::scheme& scheme) {
  if (!f) return true;
  const bool off = f.value->what == node::kind::scalar && f.value->text == "off";
  if (!scheme.timestamp) {
    if (off) return true;
    r.error(f.at, "tolerance: this scheme signs no time stamp, so there is no age to check");
    return false;
  }
  if (off) {
    scheme.timestamp->tolerance.reset();
    r.warn(f.at, "tolerance: off; a recorded request can be sent again at any time");
    return true;
  }
  if (scheme.timestamp->format == verify::timestamp_format::unix_any) {
    r.error(f.at, "tolerance: this scheme's time stamp has no fixed unit and is never judged by age");
    return false;
  }
  std::chrono::seconds value{};
  if (!read_duration(r, f, value, "1s", "1d")) return false;
  scheme.timestamp->tolerance = value;
  return true;
}

// Plaid and Circle: the secret, if there is one, is the very key that would be fetched. The secret of PayPal is signed, and the
// secrets of AWS SNS are the topics.
bool keys_are_secrets(const verify::scheme& scheme) noexcept {
  return scheme.kind == verify::scheme_kind::plaid || !scheme.key.id_header.empty();
}

// Whoever has one signed request can try shared secrets against it in peace; below this they are found.
constexpr std::size_t secret_bytes_usual = 12;

void warn_of_short(reading& r, const verify::scheme& scheme, const read_secret& one) {
  using verify::scheme_kind;
  if (scheme.kind != scheme_kind::hmac && scheme.kind != scheme_kind::hash && scheme.kind != scheme_kind::token) return;
  if (one.secret.key.reveal().size() < secret_bytes_usual)
    r.warn(one.at, "secrets: a secret of fewer than 12 bytes can be found by trying; take one of 16 or more");
}

bool read_keys(reading& r, section& s, std::string_view provider, verify::scheme* scheme, verify::keyring& keys) {
  const bool or_fetched = scheme != nullptr && keys_are_secrets(*scheme);
  const field list = s.require("secrets", or_fetched ? "the provider's public keys; or give fetch, which says how they are got"
                                                     : "a provider without a secret would accept anybody");
  bool good = list && list.value->what == node::kind::list && !list.value->items.empty();
  bool any_valid = false;
  auto all = read_secret_list(r, list);
  if (scheme != nullptr && scheme->kind == verify::scheme_kind::http_signatures && good)
    good = match_http_keys(r, s, all, scheme->http);
  for (read_secret& one : all) {
    good = good && one.good;
    if (!one.good || scheme == nullptr) continue;
    const auto ready = verify::prepare(*scheme, one.secret);
    if (!ready) {
      r.error(one.at, "secrets: " + ready.error().detail);
      good = false;
      continue;
    }
    // A short text that happens to be base64 is most likely not the secret that the provider showed.
    const std::size_t size = one.secret.key.reveal().size();
    if ((scheme->name == "standard-webhooks" || scheme->name == "svix") && (size < 24 || size > 64)) {
      r.error(one.at, "secrets: this secret does not hold the 24 to 64 bytes that Standard Webhooks asks for");
      good = false;
      continue;
    }
    warn_of_short(r, *scheme, one);
    any_valid = any_valid || one.secret.valid_at(r.now());
    keys.secrets.push_back(std::move(one.secret));
  }
  if (good && scheme != nullptr && !any_valid)
    r.warn(list.at, "secrets: none of them is valid now; every callback of " + std::string(provider) + " will be refused");
  return good;
}

}  // namespace

bool read_verify(reading& r, const field& f, std::string_view provider, verify::scheme& scheme, verify::keyring& keys,
                 key_source& fetched) {
  section s(r, f);
  if (!s.good()) return false;
  const field word = s.has("kind") && !s.has("scheme") ? s.get("scheme") : s.require("scheme", "how callbacks are verified");
  std::string name = s.has("scheme") ? "" : "hmac";
  bool good = s.has("scheme") || s.has("kind");
  if (word && !read_text(r, word, name, 63)) good = false;
  if (s.has("scheme") && !word) good = false;

  if (good && (name == "none" || name == "callback-url")) {
    scheme = {};
    scheme.name = name;
    scheme.kind = verify::scheme_kind::none;
    refuse_own_keys(r, s, name);
    for (const auto key : {"secrets", "fetch", "tolerance"}) {
      s.get(key);
      if (s.has(key))
        r.error(s.key_at(key), std::string(key) + ": scheme: " + name +
                                   (name == "none" ? " verifies nothing" : " verifies no signature") + " and takes no " +
                                   std::string(key));
    }
    if (name == "none")
      r.warn(word.at, "scheme: none; whoever reaches the listener can send callbacks as " + std::string(provider));
    return true;
  }
  if (!(good && name == "http-message-signatures")) {
    for (const auto key : http_keys) {
      if (!s.has(key)) continue;
      s.get(key);
      r.error(s.key_at(key), std::string(key) + ": belongs to the scheme http-message-signatures");
      good = false;
    }
  }
  if (good && own_kind(name)) {
    scheme = {};
    scheme.name = name;
    const auto kind = read_kind(r, s.get("kind"), name);
    good = kind.has_value();
    if (kind) scheme.kind = *kind;
    if (!read_own_scheme(r, s, scheme)) good = false;
  } else if (good) {
    good = read_preset(r, s, word, name, scheme);
  } else {
    s.ignore_rest();
  }
  const field tolerance = s.get("tolerance");
  if (good && tolerance) good = read_tolerance(r, tolerance, scheme);
  if (!good) s.get("fetch");
  if (good && !read_key_source(r, s, scheme, fetched)) good = false;
  // Keys that are fetched stand in for the secrets, where the secrets would be the keys.
  if (s.has("fetch") && !s.has("secrets") && (!good || keys_are_secrets(scheme))) return good;
  return read_keys(r, s, provider, good ? &scheme : nullptr, keys) && good;
}

}  // namespace recibo::config
