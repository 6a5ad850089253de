#include "prepared.hpp"

#include "recibo/core/ascii.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/verify/verifier.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

bool only_blanks(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
}

bool is_pem(std::string_view text) noexcept { return text.find("-----BEGIN ") != std::string_view::npos; }

// The part'th piece between separators; nullopt: there are fewer.
std::optional<std::string_view> part_of(std::string_view text, std::string_view separator, int part) {
  for (;; --part) {
    const std::size_t at = text.find(separator);
    if (part == 0) return text.substr(0, at);
    if (at == std::string_view::npos) return std::nullopt;
    text.remove_prefix(at + separator.size());
  }
}

// As WordPress decodes what it stored (wp_specialchars_decode with ENT_QUOTES): one pass, quotes, "<", ">" and "&" alone, numbers
// with any leading zeros.
std::string without_entities(std::string_view text) {
  constexpr std::pair<std::string_view, char> named[] = {{"quot;", '"'}, {"lt;", '<'}, {"gt;", '>'}, {"amp;", '&'}};
  constexpr std::pair<std::string_view, char> numbered[] = {{"39;", '\''}, {"x27;", '\''}, {"34;", '"'}, {"x22;", '"'},
                                                            {"60;", '<'},  {"62;", '>'},   {"38;", '&'}, {"x26;", '&'}};
  const auto begins = [](std::string_view rest, std::string_view with) { return same_text(rest.substr(0, with.size()), with); };
  std::string out;
  while (!text.empty()) {
    const char first = text.front();
    text.remove_prefix(1);
    out += first;
    if (first != '&') continue;
    const auto known = std::find_if(std::begin(named), std::end(named), [&](const auto& n) { return text.starts_with(n.first); });
    if (known != std::end(named)) {
      out.back() = known->second;
      text.remove_prefix(known->first.size());
      continue;
    }
    if (!text.starts_with('#')) continue;
    const bool hexadecimal = begins(text.substr(1), "x");
    const std::size_t digits = std::min(text.find_first_not_of('0', hexadecimal ? 2 : 1), text.size());
    for (const auto& [number, stands_for] : numbered) {
      const bool in_hex = number.starts_with('x');
      const std::string_view meant = in_hex ? number.substr(1) : number;
      if (in_hex != hexadecimal || !begins(text.substr(digits), meant)) continue;
      out.back() = stands_for;
      text.remove_prefix(digits + meant.size());
      break;
    }
  }
  return out;
}

result<std::string> decode_text(text_encoding how, std::string_view text) {
  std::optional<std::string> bytes;
  switch (how) {
    case text_encoding::utf8:
    case text_encoding::pem: bytes = std::string(text); break;
    case text_encoding::html: bytes = without_entities(text); break;
    case text_encoding::base64:
      bytes = from_base64(text);
      if (!bytes) return misconfigured("the secret is not base64, as this scheme's secrets are");
      break;
    case text_encoding::hex:
      bytes = from_hex(text);
      if (!bytes) return misconfigured("the secret is not hexadecimal, as this scheme's secrets are");
      break;
  }
  if (bytes->empty()) return misconfigured("the secret is empty");
  return std::move(*bytes);
}

// PEM is recognized whatever the scheme's own form is: nothing else looks like it.
result<public_key_ptr> read_key(text_encoding how, std::string_view text, bool ed25519) {
  if (is_pem(text)) return public_key_from_pem(text);
  if (how == text_encoding::pem || how == text_encoding::utf8) {
    if (const auto der = from_base64(text)) return public_key_from_spki(*der);
    return misconfigured("this is no public key in PEM");
  }
  const auto bytes = decode_text(how, text);
  if (!bytes) return bytes.error();
  if (ed25519 && bytes->size() == 32) return public_key_from_ed25519(*bytes);
  return public_key_from_spki(*bytes);
}

result<void> want_kind(const public_key& key, std::initializer_list<public_key::kind> kinds, const char* else_say) {
  if (std::find(kinds.begin(), kinds.end(), key.what()) == kinds.end()) return misconfigured(else_say);
  return {};
}

std::vector<hash_name> hashes_of(const scheme& how) {
  std::vector<hash_name> out{how.hash};
  if (how.hash_from) {
    for (const auto& [name, hash] : how.hash_from->names) {
      if (std::find(out.begin(), out.end(), hash) == out.end()) out.push_back(hash);
    }
  }
  return out;
}

class preparer {
 public:
  preparer(const scheme& how, named_secret& one) : how_(how), one_(one) {}

  result<void> run() {
    text_ = one_.text.reveal();
    if (only_blanks(text_)) return misconfigured("the secret is empty or only blanks");
    if (text_.starts_with(how_.key.strip_prefix)) text_.remove_prefix(how_.key.strip_prefix.size());
    auto fine = by_kind();
    if (!fine) return fine.error();
    one_.ready = std::make_shared<const prepared_key>(std::move(out_));
    return {};
  }

 private:
  result<void> by_kind() {
    using kind = public_key::kind;
    switch (how_.kind) {
      case scheme_kind::none: return keep(text_encoding::utf8);
      case scheme_kind::hash:
      case scheme_kind::token: return shared_secret();
      case scheme_kind::hmac: {
        auto fine = shared_secret();
        if (!fine) return fine;
        for (const hash_name hash : hashes_of(how_)) out_.macs.emplace_back(hash, one_.key.reveal());
        return {};
      }
      case scheme_kind::ed25519: return public_half({kind::ed25519}, "this scheme's keys are Ed25519");
      case scheme_kind::ecdsa: return public_half({kind::p256}, "this scheme's keys are on the curve P-256");
      case scheme_kind::rsa: return public_half({kind::rsa}, "this scheme's keys are RSA");
      case scheme_kind::plaid: {
        auto read = read_json_web_key(text_);
        if (!read) return read.error();
        out_.verifying = std::move(read->key);
        out_.id = std::move(read->id);
        out_.expired_from = read->expired_from;
        return keep(text_encoding::utf8);
      }
      case scheme_kind::aws_sns:
        if (!text_.starts_with("arn:")) return misconfigured("the secret of this scheme is the ARN of the topic");
        return keep(text_encoding::utf8);
      case scheme_kind::http_signatures: return http_key();
    }
    return {};
  }

  result<void> keep(text_encoding how) {
    auto bytes = decode_text(how, text_);
    if (!bytes) return bytes.error();
    one_.key = secret(std::move(*bytes));
    return {};
  }

  result<void> shared_secret() {
    const auto& rule = how_.key;
    if (!rule.split.empty()) {
      if (how_.signature.element_is_secret_part) {
        const auto shown = part_of(text_, rule.split, *how_.signature.element_is_secret_part);
        if (!shown || shown->empty()) return misconfigured("the secret has not all of its parts");
        out_.public_part = *shown;
      }
      const auto mine = part_of(text_, rule.split, rule.part);
      if (!mine || only_blanks(*mine)) return misconfigured("the secret has not all of its parts");
      text_ = *mine;
    }
    auto fine = keep(rule.encoding);
    if (fine && rule.digest) one_.key = secret(std::string(digest(*rule.digest, std::array{one_.key.reveal()}).view()));
    return fine;
  }

  result<void> public_half(std::initializer_list<public_key::kind> kinds, const char* else_say) {
    // Of a scheme whose key comes by URL the secret is only a text that is signed (PayPal's webhook ID).
    if (!how_.key.certificate_url_header.empty()) return keep(text_encoding::utf8);
    auto key = read_key(how_.key.encoding, text_, how_.kind == scheme_kind::ed25519);
    if (!key) return key.error();
    auto fine = want_kind(**key, kinds, else_say);
    if (!fine) return fine;
    out_.verifying = std::move(*key);
    return keep(text_encoding::utf8);
  }

  result<void> http_key() {
    using kind = public_key::kind;
    const http_signature_key* const entry = entry_of(how_, one_.name);
    if (entry == nullptr) return misconfigured("no entry of keys uses this secret");
    if (entry->algorithm == http_algorithm::hmac_sha256) {
      auto fine = keep(entry->encoding);
      if (fine) out_.macs.emplace_back(hash_name::sha256, one_.key.reveal());
      return fine;
    }
    auto key = read_key(entry->encoding, text_, entry->algorithm == http_algorithm::ed25519);
    if (!key) return key.error();
    result<void> fine;
    switch (entry->algorithm) {
      case http_algorithm::hmac_sha256: break;
      case http_algorithm::ed25519: fine = want_kind(**key, {kind::ed25519}, "ed25519 wants an Ed25519 key"); break;
      case http_algorithm::ecdsa_p256_sha256:
        fine = want_kind(**key, {kind::p256}, "ecdsa-p256-sha256 wants a key on P-256");
        break;
      case http_algorithm::ecdsa_p384_sha384:
        fine = want_kind(**key, {kind::p384}, "ecdsa-p384-sha384 wants a key on P-384");
        break;
      case http_algorithm::rsa_pss_sha512:
      case http_algorithm::rsa_v1_5_sha256: fine = want_kind(**key, {kind::rsa}, "this algorithm wants an RSA key"); break;
    }
    if (!fine) return fine;
    out_.verifying = std::move(*key);
    return keep(text_encoding::utf8);
  }

  const scheme& how_;
  named_secret& one_;
  std::string_view text_;
  prepared_key out_;
};

}  // namespace

const http_signature_key* entry_of(const scheme& how, const std::string& secret_name) noexcept {
  for (const http_signature_key& one : how.http.keys) {
    if (one.secret == secret_name) return &one;
  }
  return nullptr;
}

result<void> prepare(const scheme& how, named_secret& one) { return preparer(how, one).run(); }

result<secret> key_bytes(const scheme& how, const secret& text) {
  named_secret one{.name = {}, .text = text, .from = {}, .until = {}, .key = {}, .ready = {}};
  const auto fine = prepare(how, one);
  if (!fine) return fine.error();
  return std::move(one.key);
}

}  // namespace recibo::verify
