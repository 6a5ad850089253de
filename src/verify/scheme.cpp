#include "recibo/verify/scheme.hpp"

#include "recibo/verify/strict_json.hpp"

#include "items.hpp"
#include "structured_fields.hpp"

#include <algorithm>
#include <array>

namespace recibo::verify {
namespace {

bool lower_case_name(const std::string& name) noexcept {
  return !name.empty() &&
         std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7f && c != ':' && (c < 'A' || c > 'Z'); });
}

std::optional<std::string_view> wrong_names(place from, const std::vector<std::string>& names) noexcept {
  if (names.empty()) return "has no name";
  if (from == place::header && !std::all_of(names.begin(), names.end(), lower_case_name))
    return "has a name that is no lower-case header name";
  if (from == place::json && !std::all_of(names.begin(), names.end(), is_json_pointer))
    return "has a name that is no JSON Pointer";
  if (from == place::form && std::any_of(names.begin(), names.end(), [](const auto& n) { return n.empty(); }))
    return "has an empty name";
  return std::nullopt;
}

std::optional<std::string> wrong_signature(const signature_rule& rule) {
  if (rule.from == place::element) return "signature: stands in a header, in JSON or in a form";
  if (rule.numbered.empty()) {
    if (const auto why = wrong_names(rule.from, rule.names)) return "signature: " + std::string(*why);
  } else if (rule.from != place::header || !lower_case_name(rule.numbered) || rule.max < 1 || rule.max > 100) {
    return "signature: numbered headers have a lower-case prefix and a largest number from 1 to 100";
  }
  const bool element = !rule.element.empty() || rule.element_is_secret_part;
  if (rule.pair.empty() == element) return "signature: pair and element come together";
  if (!rule.element.empty() && rule.element_is_secret_part)
    return "signature: element and element_is_secret_part exclude each other";
  return std::nullopt;
}

std::optional<std::string> wrong_key(const scheme& how) {
  const key_rule& rule = how.key;
  const bool shared = how.kind == scheme_kind::hmac || how.kind == scheme_kind::hash || how.kind == scheme_kind::token;
  if (shared && rule.encoding == text_encoding::pem) return "key: a shared secret is not PEM";
  if (!shared && (rule.digest || !rule.split.empty())) return "key: digest and split belong to shared secrets";
  if (rule.part < 0 || rule.part > 9 || (rule.split.empty() && rule.part != 0))
    return "key: part is 0 to 9, and belongs to split";
  if (const auto& part = how.signature.element_is_secret_part) {
    if (rule.split.empty() || *part < 0 || *part > 9) return "signature: element_is_secret_part needs key.split and is 0 to 9";
  }
  if (rule.certificate_url_header.empty() != rule.host_suffixes.empty())
    return "key: certificate_url_header and host_suffixes come together";
  if (rule.certificate_url_header.empty() && rule.id_header.empty()) return std::nullopt;
  if (shared) return "key: a shared secret is not fetched";
  if (!rule.certificate_url_header.empty() && !rule.id_header.empty()) return "key: comes by URL or by ID, not both";
  if (!lower_case_name(rule.certificate_url_header + rule.id_header)) return "key: a header name is in lower case";
  for (const std::string& suffix : rule.host_suffixes) {
    // One label would be a whole top-level domain, in which anybody can have a host.
    const std::size_t dot = suffix.find('.');
    if (!lower_case_name(suffix) || dot == std::string::npos || dot == 0 || suffix.back() == '.' ||
        suffix.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") != std::string::npos)
      return "key: a host suffix is a domain such as example.com";
  }
  return std::nullopt;
}

std::optional<std::string> wrong_timestamp(const scheme& how) {
  const timestamp_rule& rule = *how.timestamp;
  if (rule.from == place::claim) return "timestamp: stands in a header, in an element of the signature or in JSON";
  if (rule.from == place::form) return "timestamp: stands in a header, in an element of the signature or in JSON";
  if (rule.from == place::element && how.signature.pair.empty()) return "timestamp: an element needs signature.pair";
  if (const auto why = wrong_names(rule.from, rule.names)) return "timestamp: " + std::string(*why);
  if (rule.tolerance && rule.tolerance->count() <= 0) return "timestamp: a tolerance is longer than nothing";
  return std::nullopt;
}

std::optional<std::string> wrong_part(const scheme& how, const content_part& part) {
  switch (part.what) {
    case content_part::source::literal:
      if (part.names.size() != 1) return "content: a literal is one text";
      break;
    case content_part::source::timestamp:
      if (!how.timestamp) return "content: signs a timestamp that is not defined";
      break;
    case content_part::source::header:
      if (const auto why = wrong_names(place::header, part.names)) return "content: a header " + std::string(*why);
      break;
    case content_part::source::json:
      if (const auto why = wrong_names(place::json, part.names)) return "content: a JSON part " + std::string(*why);
      break;
    case content_part::source::query:
    case content_part::source::form:
      if (const auto why = wrong_names(place::form, part.names)) return "content: a field " + std::string(*why);
      break;
    case content_part::source::body:
    case content_part::source::method:
    case content_part::source::secret:
    case content_part::source::url:
    case content_part::source::url_hubspot:
    case content_part::source::url_plivo:
    case content_part::source::form_sorted:
    case content_part::source::body_crc32: break;
  }
  return std::nullopt;
}

std::optional<std::string> wrong_for_each(const scheme& how) {
  if (how.for_each.empty()) return std::nullopt;
  if (!is_json_pointer(how.for_each) || !split_at_star(how.for_each)) return "for_each: a JSON Pointer with one \"*\"";
  if (how.signature.from != place::json) return "for_each: every item carries its own signature, so that stands in JSON";
  return std::nullopt;
}

std::optional<std::string> wrong_choices(const scheme& how) {
  if (how.hash_from && (how.kind != scheme_kind::hmac || !lower_case_name(how.hash_from->header) || how.hash_from->names.empty()))
    return "hash_from: belongs to hmac, and has a lower-case header and a map";
  const auto signs = [&](content_part::source what) {
    return std::any_of(how.content.begin(), how.content.end(), [&](const content_part& p) { return p.what == what; });
  };
  if (!how.url_variants.empty() && !signs(content_part::source::url)) return "url_variants: the URL is not signed";
  if (how.body_hash && (how.body_hash->query.empty() || how.body_hash->encoding == signature_encoding::text))
    return "body_hash: has a query parameter and is hex, base64 or base64url";
  if (how.body_hash && !signs(content_part::source::url)) return "body_hash: stands in the URL, which is not signed";
  const bool optional_text =
      std::any_of(how.content.begin(), how.content.end(), [](const auto& p) { return !p.or_with.empty(); });
  if (optional_text && !how.url_variants.empty()) return "content: or_with and url_variants exclude each other";
  return std::nullopt;
}

bool first_is(const std::vector<std::string>& names, std::string_view name) noexcept {
  return !names.empty() && names.front() == name;
}

// "@method", "content-type", or the serialized form of one with parameters.
bool is_component(const std::string& name) {
  constexpr std::array<std::string_view, 8> derived{"@method",         "@target-uri", "@authority", "@scheme",
                                                    "@request-target", "@path",       "@query",     "@query-param"};
  std::string bare = name;
  if (name.starts_with('"')) {
    const auto read = parse_dictionary("x=(" + name + ")");
    if (!read || read->front().items.size() != 1 || serialize(read->front().items.front()) != name) return false;
    bare = read->front().items.front().value.value;
  }
  if (bare.starts_with('@')) return std::find(derived.begin(), derived.end(), bare) != derived.end();
  return lower_case_name(bare);
}

constexpr std::array http_algorithms{http_algorithm::hmac_sha256,       http_algorithm::ed25519,
                                     http_algorithm::ecdsa_p256_sha256, http_algorithm::ecdsa_p384_sha384,
                                     http_algorithm::rsa_pss_sha512,    http_algorithm::rsa_v1_5_sha256};

}  // namespace

std::string_view to_string(http_algorithm how) noexcept {
  switch (how) {
    case http_algorithm::hmac_sha256: return "hmac-sha256";
    case http_algorithm::ed25519: return "ed25519";
    case http_algorithm::ecdsa_p256_sha256: return "ecdsa-p256-sha256";
    case http_algorithm::ecdsa_p384_sha384: return "ecdsa-p384-sha384";
    case http_algorithm::rsa_pss_sha512: return "rsa-pss-sha512";
    case http_algorithm::rsa_v1_5_sha256: return "rsa-v1_5-sha256";
  }
  return "";
}

std::optional<http_algorithm> http_algorithm_of(std::string_view name) noexcept {
  for (const http_algorithm one : http_algorithms) {
    if (to_string(one) == name) return one;
  }
  return std::nullopt;
}

bool scheme::covers_body() const noexcept {
  if (kind == scheme_kind::plaid) return true;
  if (kind == scheme_kind::http_signatures) {
    if (!http.required) return true;
    const auto& all = *http.required;
    return std::any_of(all.begin(), all.end(), [](const auto& c) { return c == "content-digest" || c == "digest"; });
  }
  // PayPal signs a CRC-32 of the body, for which another body can be found; it is all that PayPal offers.
  return std::any_of(content.begin(), content.end(), [](const content_part& p) {
    return (p.what == content_part::source::body && !p.lower) || p.what == content_part::source::body_crc32;
  });
}

bool scheme::covers_header(std::string_view lower_case_name) const noexcept {
  if (kind == scheme_kind::http_signatures)
    return http.required && std::find(http.required->begin(), http.required->end(), lower_case_name) != http.required->end();
  const bool as_part = std::any_of(content.begin(), content.end(), [&](const content_part& p) {
    return p.what == content_part::source::header && !p.lower && first_is(p.names, lower_case_name);
  });
  if (as_part) return true;
  const bool time_is_signed = std::any_of(content.begin(), content.end(),
                                          [](const content_part& p) { return p.what == content_part::source::timestamp; });
  return time_is_signed && timestamp && timestamp->from == place::header && first_is(timestamp->names, lower_case_name);
}

bool scheme::covers_query(std::string_view field) const noexcept {
  const auto requires_it = [&](std::string_view component) {
    return http.required && std::find(http.required->begin(), http.required->end(), component) != http.required->end();
  };
  if (kind == scheme_kind::http_signatures) return requires_it("@target-uri") || requires_it("@query");
  return std::any_of(content.begin(), content.end(), [&](const content_part& p) {
    // Plivo signs the fields decoded and joined, so that one field may be written as two.
    if (p.what == content_part::source::url || p.what == content_part::source::url_hubspot) return true;
    return p.what == content_part::source::query && !p.lower && first_is(p.names, field);
  });
}

bool scheme::covers_form(std::string_view field) const noexcept {
  return covers_body() || std::any_of(content.begin(), content.end(), [&](const content_part& p) {
           if (p.what == content_part::source::form_sorted || p.what == content_part::source::url_plivo) return true;
           return p.what == content_part::source::form && !p.lower && p.names.size() == 1 && p.names.front() == field;
         });
}

bool scheme::covers_json(std::string_view pointer) const noexcept {
  if (covers_body() || body_hash) return true;
  if (kind == scheme_kind::aws_sns) {
    // What stands below them is in their text, which is signed as a whole.
    constexpr std::array<std::string_view, 6> members{"/Message", "/MessageId", "/Subject", "/Timestamp", "/TopicArn", "/Type"};
    return std::find(members.begin(), members.end(), pointer) != members.end();
  }
  if (!for_each.empty()) {
    // Relative to the items, or absolute and then of the only item.
    const auto star = split_at_star(for_each);
    const std::string first = star ? std::string(star->first) + "/0" + std::string(star->second) : std::string();
    if (star && pointer.starts_with(first + '/')) pointer.remove_prefix(first.size());
  }
  return std::any_of(content.begin(), content.end(), [&](const content_part& p) {
    return p.what == content_part::source::json && !p.lower && p.names.size() == 1 && p.names.front() == pointer;
  });
}

bool scheme::needs_url() const noexcept {
  using source = content_part::source;
  return kind == scheme_kind::http_signatures || std::any_of(content.begin(), content.end(), [](const content_part& p) {
           return p.what == source::url || p.what == source::url_hubspot || p.what == source::url_plivo;
         });
}

bool scheme::needs_foreign_key() const noexcept {
  return kind == scheme_kind::plaid || kind == scheme_kind::aws_sns || !key.certificate_url_header.empty() ||
         !key.id_header.empty();
}

bool scheme::is_asymmetric() const noexcept {
  switch (kind) {
    case scheme_kind::hmac:
    case scheme_kind::hash:
    case scheme_kind::token:
    case scheme_kind::none: return false;
    case scheme_kind::ed25519:
    case scheme_kind::ecdsa:
    case scheme_kind::rsa:
    case scheme_kind::plaid:
    case scheme_kind::aws_sns: return true;
    case scheme_kind::http_signatures: break;
  }
  return std::any_of(http.keys.begin(), http.keys.end(),
                     [](const http_signature_key& k) { return k.algorithm != http_algorithm::hmac_sha256; });
}

result<void> check_scheme(const scheme& how) {
  switch (how.kind) {
    case scheme_kind::none:
    case scheme_kind::plaid:
    case scheme_kind::aws_sns: return {};
    case scheme_kind::http_signatures:
      for (const std::string& one : how.http.required.value_or(std::vector<std::string>())) {
        if (!is_component(one)) return misconfigured("required_components: " + one + " is no component of a request");
      }
      return {};
    case scheme_kind::hmac:
    case scheme_kind::hash:
    case scheme_kind::token:
    case scheme_kind::ed25519:
    case scheme_kind::ecdsa:
    case scheme_kind::rsa: break;
  }
  if (const auto why = wrong_signature(how.signature)) return misconfigured(*why);
  if (const auto why = wrong_key(how)) return misconfigured(*why);
  if (how.timestamp) {
    if (const auto why = wrong_timestamp(how)) return misconfigured(*why);
  }
  for (const content_part& part : how.content) {
    if (const auto why = wrong_part(how, part)) return misconfigured(*why);
  }
  if (const auto why = wrong_for_each(how)) return misconfigured(*why);
  if (const auto why = wrong_choices(how)) return misconfigured(*why);
  if (how.kind == scheme_kind::token) {
    if (!how.content.empty()) return misconfigured("content: a token signs nothing");
    return {};
  }
  if (how.content.empty()) return misconfigured("content: nothing is signed");
  const bool keyed =
      how.kind != scheme_kind::hash || std::any_of(how.content.begin(), how.content.end(),
                                                   [](const content_part& p) { return p.what == content_part::source::secret; });
  if (!keyed) return misconfigured("content: a plain hash without the secret in it can be made by anybody");
  return {};
}

}  // namespace recibo::verify
