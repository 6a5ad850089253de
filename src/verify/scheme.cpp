#include "recibo/verify/scheme.hpp"

#include "recibo/verify/strict_json.hpp"

#include <algorithm>

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
  if (rule.pair.empty() != rule.element.empty()) return "signature: pair and element come together";
  return std::nullopt;
}

std::optional<std::string> wrong_timestamp(const scheme& how) {
  const timestamp_rule& rule = *how.timestamp;
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
    case content_part::source::url_hubspot: break;
  }
  return std::nullopt;
}

bool first_is(const std::vector<std::string>& names, std::string_view name) noexcept {
  return !names.empty() && names.front() == name;
}

}  // namespace

bool scheme::covers_body() const noexcept {
  return std::any_of(content.begin(), content.end(),
                     [](const content_part& p) { return p.what == content_part::source::body && !p.lower; });
}

bool scheme::covers_header(std::string_view lower_case_name) const noexcept {
  const bool as_part = std::any_of(content.begin(), content.end(), [&](const content_part& p) {
    return p.what == content_part::source::header && !p.lower && first_is(p.names, lower_case_name);
  });
  if (as_part) return true;
  const bool time_is_signed = std::any_of(content.begin(), content.end(),
                                          [](const content_part& p) { return p.what == content_part::source::timestamp; });
  return time_is_signed && timestamp && timestamp->from == place::header && first_is(timestamp->names, lower_case_name);
}

bool scheme::covers_query(std::string_view field) const noexcept {
  return std::any_of(content.begin(), content.end(), [&](const content_part& p) {
    return p.what == content_part::source::query && !p.lower && first_is(p.names, field);
  });
}

result<void> check_scheme(const scheme& how) {
  if (how.kind == scheme_kind::none) return {};
  if (const auto why = wrong_signature(how.signature)) return misconfigured(*why);
  if (how.timestamp) {
    if (const auto why = wrong_timestamp(how)) return misconfigured(*why);
  }
  for (const content_part& part : how.content) {
    if (const auto why = wrong_part(how, part)) return misconfigured(*why);
  }
  switch (how.kind) {
    case scheme_kind::hmac:
    case scheme_kind::hash: {
      if (how.content.empty()) return misconfigured("content: nothing is signed");
      const bool keyed = how.kind == scheme_kind::hmac ||
                         std::any_of(how.content.begin(), how.content.end(),
                                     [](const content_part& p) { return p.what == content_part::source::secret; });
      if (!keyed) return misconfigured("content: a plain hash without the secret in it can be made by anybody");
      break;
    }
    case scheme_kind::token:
      if (!how.content.empty()) return misconfigured("content: a token signs nothing");
      break;
    case scheme_kind::none: break;
  }
  return {};
}

}  // namespace recibo::verify
