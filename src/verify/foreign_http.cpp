// HTTP Message Signatures (RFC 9421) with Content-Digest (RFC 9530). The algorithm is the key's, what must be covered is the
// configuration's: of the request's own word for either nothing is believed, or it would choose how it is judged.
#include "recibo/core/digest.hpp"

#include "asymmetric.hpp"
#include "http_components.hpp"
#include "kinds.hpp"

#include <algorithm>
#include <array>

namespace recibo::verify {
namespace {

// One label of Signature-Input, with its signature.
struct labelled {
  const sf_member& input;
  std::string_view signature;
};

bool signed_base(const named_secret& one, http_algorithm how, std::string_view base, std::string_view signature) {
  const std::array pieces{base};
  const prepared_key& ready = *one.ready;
  const auto by = [&](signing_method method, hash_name hash) {
    return ready.verifying && signed_by(*ready.verifying, method, hash, pieces, signature);
  };
  switch (how) {
    case http_algorithm::hmac_sha256: {
      const hmac_key* const mac = ready.mac_of(hash_name::sha256);
      return mac != nullptr && equal_constant_time((*mac)(pieces).view(), signature);
    }
    case http_algorithm::ed25519: return by(signing_method::ed25519, hash_name::sha512);
    case http_algorithm::ecdsa_p256_sha256: return by(signing_method::ecdsa_raw, hash_name::sha256);
    case http_algorithm::ecdsa_p384_sha384: return by(signing_method::ecdsa_raw, hash_name::sha384);
    case http_algorithm::rsa_pss_sha512: return by(signing_method::rsa_pss64, hash_name::sha512);
    case http_algorithm::rsa_v1_5_sha256: return by(signing_method::rsa_pkcs1, hash_name::sha256);
  }
  return false;
}

const http_signature_key* entry_by_id(const scheme& how, std::string_view id) noexcept {
  for (const http_signature_key& one : how.http.keys) {
    if (one.id == id) return &one;
  }
  return nullptr;
}

const named_secret* secret_of(const keyring& keys, const http_signature_key& entry) noexcept {
  for (const named_secret& one : keys.secrets) {
    if (one.name == entry.secret) return &one;
  }
  return nullptr;
}

result<void> judge_times(const scheme& how, const sf_member& input, sys_micros now) {
  const auto tolerance = how.timestamp ? how.timestamp->tolerance : std::nullopt;
  const sf_bare* const created = find_parameter(input.parameters, "created");
  if (created == nullptr && tolerance)
    return error(permanent::timestamp_missing, "the signature does not say when it was created");
  for (const std::string_view name : {"created", "expires"}) {
    const sf_bare* const one = find_parameter(input.parameters, name);
    if (one != nullptr && one->what != sf_bare::kind::integer)
      return error(permanent::timestamp_malformed, "created and expires are whole seconds");
  }
  if (created != nullptr) {
    if (auto fine = judge_time(timestamp_format::unix_s, tolerance, created->value, now); !fine) return fine;
  }
  if (const sf_bare* const expires = find_parameter(input.parameters, "expires")) {
    const auto at = parse_unix_seconds(expires->value);
    if (!at) return error(permanent::timestamp_malformed, "created and expires are whole seconds");
    if (std::chrono::floor<std::chrono::seconds>(now) > *at)
      return error(permanent::timestamp_stale, "the signature has expired");
  }
  return {};
}

bool covers(const sf_member& input, std::string_view component) {
  const std::string wanted = component.starts_with('"') ? std::string(component) : serialize_string(component);
  return std::any_of(input.items.begin(), input.items.end(), [&](const sf_item& one) { return serialize(one) == wanted; });
}

result<void> judge_cover(const scheme& how, const sf_member& input) {
  const auto lacks = [](std::string_view what) {
    return error(permanent::content_missing, "the signature does not cover " + std::string(what));
  };
  if (input.items.empty() && !how.http.nothing_suffices) return lacks("anything");
  if (how.http.required) {
    for (const std::string& one : *how.http.required) {
      if (!covers(input, one)) return lacks(one);
    }
    return {};
  }
  if (!covers(input, "@method")) return lacks("@method");
  if (!covers(input, "@target-uri") && !(covers(input, "@authority") && covers(input, "@path"))) return lacks("@target-uri");
  if (!covers(input, "content-digest") && !covers(input, "digest")) return lacks("content-digest");
  return {};
}

// The name of the secret that made this one.
result<std::string> judge_label(const scheme& how, const labelled& one, const reading& from, const keyring& keys,
                                sys_micros now) {
  const sf_bare* const id = find_parameter(one.input.parameters, "keyid");
  if (id == nullptr || id->what != sf_bare::kind::string)
    return error(permanent::signature_mismatch, "the signature names no key");
  if (auto fine = judge_times(how, one.input, now); !fine) return fine.error();
  const http_signature_key* const entry = entry_by_id(how, id->value);
  const named_secret* const key = entry == nullptr ? nullptr : secret_of(keys, *entry);
  if (key == nullptr || !key->ready || !usable(*key, now))
    return error(permanent::signature_mismatch, "the signature is by an unknown key");
  if (const sf_bare* const said = find_parameter(one.input.parameters, "alg");
      said != nullptr && (said->what != sf_bare::kind::string || said->value != to_string(entry->algorithm)))
    return error(permanent::signature_mismatch, "the algorithm is not the key's");
  if (auto fine = judge_cover(how, one.input); !fine) return fine.error();
  const auto base = signature_base(one.input, from);
  if (!base) return error(permanent::content_missing, "a covered component is absent, or cannot be computed");
  if (auto fine = judge_digests(from); !fine) return fine.error();
  if (!signed_base(*key, entry->algorithm, *base, one.signature))
    return error(permanent::signature_mismatch, "the key did not make this signature");
  return key->name;
}

result<std::vector<sf_member>> read_header(const reading& from, std::string_view name) {
  const occurrence found = from.header(name);
  if (found.times > 1) return error(permanent::signature_repeated, std::string(name) + " stands more than once");
  if (found.times == 0 || found.value.empty())
    return error(permanent::signature_missing, "there is no header " + std::string(name));
  if (found.value.size() > signature_header_max) return error(permanent::signature_missing, std::string(name) + " is too long");
  auto read = parse_dictionary(found.value);
  if (!read) return error(permanent::signature_missing, std::string(name) + " cannot be read");
  return std::move(*read);
}

}  // namespace

result<std::string> verify_http_signatures(const scheme& how, reading& from, const keyring& keys, sys_micros now) {
  const auto inputs = read_header(from, "signature-input");
  if (!inputs) return inputs.error();
  const auto signatures = read_header(from, "signature");
  if (!signatures) return signatures.error();
  error why(permanent::signature_missing, "no label has both an input and a signature");
  for (const sf_member& input : *inputs) {
    const sf_member* const made = find_member(*signatures, input.name);
    if (!input.is_list || made == nullptr || made->is_list || made->items.front().value.what != sf_bare::kind::bytes) continue;
    auto name = judge_label(how, {input, made->items.front().value.value}, from, keys, now);
    if (name) return name;
    why = name.error();
  }
  return why;
}

}  // namespace recibo::verify
