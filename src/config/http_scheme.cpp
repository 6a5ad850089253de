// `scheme: http-message-signatures`: which keys a provider signs with, and what its signatures must cover.
#include "scheme_reader.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

using verify::http_algorithm;

constexpr choice<http_algorithm> algorithms[] = {{"hmac-sha256", http_algorithm::hmac_sha256},
                                                 {"ed25519", http_algorithm::ed25519},
                                                 {"ecdsa-p256-sha256", http_algorithm::ecdsa_p256_sha256},
                                                 {"ecdsa-p384-sha384", http_algorithm::ecdsa_p384_sha384},
                                                 {"rsa-pss-sha512", http_algorithm::rsa_pss_sha512},
                                                 {"rsa-v1_5-sha256", http_algorithm::rsa_v1_5_sha256}};
constexpr choice<verify::text_encoding> encodings[] = {{"utf8", verify::text_encoding::utf8},
                                                       {"base64", verify::text_encoding::base64},
                                                       {"hex", verify::text_encoding::hex},
                                                       {"pem", verify::text_encoding::pem}};

void read_one_key(reading& r, const named& entry, std::vector<verify::http_signature_key>& out) {
  verify::http_signature_key one;
  one.id = std::string(entry.name);
  if (one.id.empty() || one.id.size() > 255) r.error(entry.at, "keys: the ID of a key has 1 to 255 characters");
  section s(r, entry.value);
  if (!s.good()) return;
  if (const field secret = s.get("secret")) read_text(r, secret, one.secret, 63);
  const field algorithm = s.require("algorithm", "how this key signs; what a request says of it decides nothing");
  if (algorithm) read_word(r, algorithm, one.algorithm, algorithms);
  const bool shared = one.algorithm == http_algorithm::hmac_sha256;
  one.encoding = shared ? verify::text_encoding::utf8 : verify::text_encoding::pem;
  if (const field encoding = s.get("encoding"); encoding && read_word(r, encoding, one.encoding, encodings)) {
    if (shared && one.encoding == verify::text_encoding::pem)
      r.error(encoding.at, "encoding: pem is for public keys, and hmac-sha256 has a shared secret");
    if (!shared && one.encoding == verify::text_encoding::utf8)
      r.error(encoding.at, "encoding: a public key is pem, base64 or hex");
  }
  out.push_back(std::move(one));
}

}  // namespace

bool read_http_scheme(reading& r, section& s, verify::scheme& scheme) {
  const std::size_t before = r.problems.size();
  if (const field required = s.get("required_components")) {
    auto& out = scheme.http.required.emplace();
    for (const field& one : elements(r, required)) {
      std::string text;
      if (read_text(r, one, text, 255)) out.push_back(std::move(text));
    }
    if (out.empty()) r.error(required.at, "required_components: a signature that need not cover anything proves nothing");
  }
  for (const named& one : members(r, s.require("keys", "which keys sign, by their keyid")))
    read_one_key(r, one, scheme.http.keys);
  if (s.has("keys") && scheme.http.keys.empty()) r.error(s.key_at("keys"), "keys: the map is empty, so that nobody could sign");
  if (r.problems.size() != before) return false;
  if (const auto fine = verify::check_scheme(scheme); !fine) {
    r.error(s.key_at("required_components"), fine.error().detail);
    return false;
  }
  return true;
}

bool match_http_keys(reading& r, section& s, const std::vector<read_secret>& secrets, verify::http_signature_rule& out) {
  bool good = true;
  const position at = s.key_at("keys");
  for (std::size_t i = 0; i < out.keys.size(); ++i) {
    auto& one = out.keys[i];
    if (one.secret.empty() && i < secrets.size()) one.secret = secrets[i].secret.name;
    const auto named_so = [&](const read_secret& candidate) { return candidate.secret.name == one.secret; };
    if (std::none_of(secrets.begin(), secrets.end(), named_so)) {
      r.error(at, "keys: " + in_quotes(one.id) + " has no secret; name one of the list with secret");
      good = false;
    } else if (std::count_if(out.keys.begin(), out.keys.end(), [&](const auto& k) { return k.secret == one.secret; }) > 1) {
      r.error(at, "keys: the secret " + in_quotes(one.secret) + " has two IDs; write it down twice if both are meant");
      good = false;
    }
  }
  return good;
}

}  // namespace recibo::config
