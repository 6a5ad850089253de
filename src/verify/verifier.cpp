#include "recibo/verify/verifier.hpp"

#include "recibo/core/digest.hpp"

#include "asymmetric.hpp"
#include "collect.hpp"
#include "content.hpp"
#include "kinds.hpp"

#include <algorithm>
#include <array>

namespace recibo::verify {
namespace {

// Verifying a signature by a public key costs as much as a hundred HMACs, so that fewer of them are looked at.
constexpr std::size_t asymmetric_candidates_max = 8;

result<std::string_view> read_time(const timestamp_rule& rule, const collected& signatures, reading& from) {
  occurrence found;
  switch (rule.from) {
    case place::header: found = from.header(rule.names); break;
    case place::element: found = signatures.time; break;
    case place::json: found = from.json(rule.names); break;
    case place::form: found = from.form(rule.names); break;
    case place::claim: break;
  }
  if (found.times > 1) return error(permanent::signature_repeated, "the timestamp stands more than once");
  if (found.times == 0 || found.value.empty()) return error(permanent::timestamp_missing, "no timestamp");
  return found.value;
}

// The hash that the request may choose from a short list of the scheme's.
result<hash_name> chosen_hash(const scheme& how, const reading& from) {
  if (!how.hash_from) return how.hash;
  const hash_choice& choice = *how.hash_from;
  const occurrence found = from.header(std::string_view(choice.header));
  if (found.times == 0) return how.hash;
  if (found.times > 1) return error(permanent::signature_repeated, "the header with the algorithm stands more than once");
  occurrence name{1, found.value};
  if (!choice.element.empty()) {
    name = {};
    for (std::string_view rest = found.value; !rest.empty();) {
      const std::string_view one = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      const std::size_t equals = one.find('=');
      if (equals == std::string_view::npos || trim(one.substr(0, equals)) != choice.element) continue;
      if (name.times++ == 0) name.value = trim(one.substr(equals + 1));
    }
  }
  const auto known = name.times == 1 ? choice.names.find(name.value) : choice.names.end();
  if (known == choice.names.end()) return error(permanent::signature_mismatch, "an algorithm that this scheme does not allow");
  return known->second;
}

// The hash of the body that a query parameter must hold.
result<void> judge_body_hash(const body_hash_rule& rule, reading& from) {
  const occurrence said = from.url_query(rule.query);
  // A form is signed itself; a hash that the URL names all the same has to hold.
  if (rule.unless_form && from.is_form() && said.times == 0) return {};
  if (said.times > 1) return error(permanent::signature_repeated, "the hash of the body stands more than once");
  const std::string_view body = from.message().body;
  if (said.times == 0) {
    if (body.empty()) return {};
    return error(permanent::content_missing, "the URL holds no hash of the body");
  }
  const auto bytes = decode_signature(rule.encoding, said.value);
  if (!bytes || !equal_constant_time(*bytes, digest(rule.hash, std::array{body}).view()))
    return error(permanent::signature_mismatch, "the body is not the one whose hash is signed");
  return {};
}

bool any_equal(std::string_view expected, std::string_view public_part, const scheme& how,
               const std::vector<candidate>& candidates) noexcept {
  bool equal = false;
  // Every candidate, so that the time does not tell which one was right.
  for (const candidate& one : candidates) {
    const bool meant = !how.signature.element_is_secret_part || one.key == public_part;
    equal = (equal_constant_time(expected, one.bytes) && meant) || equal;
  }
  return equal;
}

bool any_signed(const public_key& key, signing_method method, hash_name hash, const std::vector<std::string_view>& pieces,
                const std::vector<candidate>& candidates) {
  for (std::size_t i = 0; i < candidates.size() && i < asymmetric_candidates_max; ++i) {
    if (signed_by(key, method, hash, pieces, candidates[i].bytes)) return true;
  }
  return false;
}

// One request or item whose signatures, time and hash have been read.
struct checked_item {
  const scheme& how;
  hash_name hash;
  signed_content& content;
  const std::vector<candidate>& candidates;
  const public_key* fetched;  // of schemes whose key is fetched
};

bool made_by(const named_secret& one, const checked_item& q, std::size_t variant) {
  const std::string_view key = one.key.reveal();
  const prepared_key* const ready = one.ready.get();
  const std::string_view shown = ready != nullptr ? std::string_view(ready->public_part) : std::string_view();
  const auto by_public_key = [&](signing_method method) {
    const public_key* const verifying = q.fetched != nullptr ? q.fetched : ready != nullptr ? ready->verifying.get() : nullptr;
    return verifying != nullptr && any_signed(*verifying, method, q.hash, q.content.with(key, variant), q.candidates);
  };
  switch (q.how.kind) {
    case scheme_kind::hmac: {
      const hmac_key* const mac = ready != nullptr ? ready->mac_of(q.hash) : nullptr;
      const auto& pieces = q.content.with(key, variant);
      return any_equal((mac != nullptr ? (*mac)(pieces) : hmac(q.hash, key, pieces)).view(), shown, q.how, q.candidates);
    }
    case scheme_kind::hash: return any_equal(digest(q.hash, q.content.with(key, variant)).view(), shown, q.how, q.candidates);
    case scheme_kind::token: return any_equal(key, shown, q.how, q.candidates);
    case scheme_kind::ed25519: return by_public_key(signing_method::ed25519);
    case scheme_kind::ecdsa: return by_public_key(signing_method::ecdsa_der);
    case scheme_kind::rsa: return by_public_key(signing_method::rsa_pkcs1);
    case scheme_kind::plaid:
    case scheme_kind::aws_sns:
    case scheme_kind::http_signatures:
    case scheme_kind::none: break;
  }
  return false;
}

// The place in the keyring of the secret that made the signature of the present item.
result<std::size_t> verify_item(const scheme& how, reading& from, const keyring& keys, sys_micros now,
                                const public_key* fetched) {
  const auto signatures = collect(how, from);
  if (!signatures) return signatures.error();
  if (signatures->candidates.empty()) return error(permanent::signature_missing, "no signature that can be decoded");

  std::string_view time;
  if (how.timestamp) {
    const auto text = read_time(*how.timestamp, *signatures, from);
    if (!text) return text.error();
    if (const auto fine = judge_time(how.timestamp->format, how.timestamp->tolerance, *text, now); !fine) return fine.error();
    time = *text;
  }

  const auto hash = chosen_hash(how, from);
  if (!hash) return hash.error();
  auto content = signed_content::gather(how, from, time);
  if (!content) return content.error();
  if (how.body_hash) {
    if (const auto fine = judge_body_hash(*how.body_hash, from); !fine) return fine.error();
  }
  const checked_item q{how, *hash, *content, signatures->candidates, fetched};
  for (std::size_t i = 0; i < keys.secrets.size(); ++i) {
    if (!usable(keys.secrets[i], now)) continue;
    for (std::size_t variant = 0; variant < content->variants(); ++variant) {
      if (made_by(keys.secrets[i], q, variant)) return i;
    }
  }
  return error(permanent::signature_mismatch, "no valid secret made this signature");
}

result<std::string> verify_items(const scheme& how, reading& from, const keyring& keys, sys_micros now,
                                 const public_key* fetched) {
  const std::size_t count = from.items();
  if (count == 0) return error(permanent::content_missing, "there are no items in the body");
  if (count > items_max) return error(permanent::content_missing, "there are more items in the body than are looked at");
  std::size_t last = 0;
  for (std::size_t i = 0; i < count; ++i) {
    from.at_item(i);
    const auto one = verify_item(how, from, keys, now, fetched);
    if (!one) return one.error();
    last = std::max(last, *one);
  }
  return keys.secrets[last].name;
}

// With a key from elsewhere: PayPal's certificate, Circle's key by ID.
result<std::string> verify_with_foreign_key(const scheme& how, reading& from, const keyring& keys, sys_micros now,
                                            const fetched_key* fetched) {
  const auto needed = which_key(how, from.message(), keys, now);
  if (!needed) return needed.error();
  if (!*needed) return verify_items(how, from, keys, now, nullptr);
  const auto key = take_fetched(**needed, fetched, now);
  if (!key) return key.error();
  if (!how.key.id_header.empty()) {
    // No secret is part of it; the key's ID is what goes on record.
    keyring by_id;
    by_id.secrets.push_back(
        {.name = (*needed)->id, .text = {}, .from = {}, .until = {}, .key = secret((*needed)->id), .ready = {}});
    return verify_items(how, from, by_id, now, key->get());
  }
  return verify_items(how, from, keys, now, key->get());
}

}  // namespace

result<std::string> verify(const scheme& how, const signed_message& message, const keyring& keys, sys_micros now,
                           const fetched_key* fetched) {
  reading from(how, message);
  switch (how.kind) {
    case scheme_kind::none: return std::string();
    case scheme_kind::plaid: return verify_plaid(how, from, keys, now, fetched);
    case scheme_kind::aws_sns: return verify_sns(how, from, keys, now, fetched);
    case scheme_kind::http_signatures: return verify_http_signatures(how, from, keys, now);
    case scheme_kind::hmac:
    case scheme_kind::hash:
    case scheme_kind::token:
    case scheme_kind::ed25519:
    case scheme_kind::ecdsa:
    case scheme_kind::rsa: break;
  }
  if (how.needs_foreign_key()) return verify_with_foreign_key(how, from, keys, now, fetched);
  return verify_items(how, from, keys, now, nullptr);
}

}  // namespace recibo::verify
