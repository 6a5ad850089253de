#include "collect.hpp"

#include "recibo/core/digest.hpp"

#include "kinds.hpp"

#include <algorithm>
#include <bitset>

namespace recibo::verify {
namespace {

void take_signature(const signature_rule& rule, std::string_view text, std::string_view key, collected& out) {
  if (!text.starts_with(rule.prefix) || out.candidates.size() >= candidates_max) return;
  auto bytes = decode_signature(rule.encoding, text.substr(rule.prefix.size()));
  // An empty signature never matches, whatever the secret is.
  if (bytes && !bytes->empty()) out.candidates.push_back({std::move(*bytes), key});
}

void take_element(const scheme& how, std::string_view element, collected& out) {
  const signature_rule& rule = how.signature;
  if (rule.pair.empty()) return take_signature(rule, element, {}, out);
  const std::size_t at = element.find(rule.pair);
  if (at == std::string_view::npos) return;
  const std::string_view key = trim(element.substr(0, at));
  const std::string_view value = trim(element.substr(at + rule.pair.size()));
  if (rule.element_is_secret_part || key == rule.element) take_signature(rule, value, key, out);
  if (!how.timestamp || how.timestamp->from != place::element) return;
  const auto& names = how.timestamp->names;
  if (std::find(names.begin(), names.end(), key) != names.end() && out.time.times++ == 0) out.time.value = value;
}

void take_value(const scheme& how, std::string_view value, collected& out) {
  if (value.size() > signature_header_max) return;
  const std::string& separator = how.signature.list;
  if (separator.empty()) return take_element(how, value, out);
  while (!value.empty()) {
    const std::size_t end = std::min(value.find(separator), value.size());
    if (const std::string_view element = trim(value.substr(0, end)); !element.empty()) take_element(how, element, out);
    value.remove_prefix(std::min(end + separator.size(), value.size()));
  }
}

constexpr int numbered_max = 100;

// 1 to 100 in its one spelling; 0: something else.
int number_behind(std::string_view name, std::string_view prefix) noexcept {
  if (name.size() <= prefix.size() || name.size() > prefix.size() + 3 || !same_text(name.substr(0, prefix.size()), prefix))
    return 0;
  int out = 0;
  for (const char c : name.substr(prefix.size())) {
    if (c < '0' || c > '9' || (out == 0 && c == '0')) return 0;
    out = out * 10 + (c - '0');
  }
  return out <= numbered_max ? out : 0;
}

// DocuSign: x-docusign-signature-1 to -100, in any order and with gaps; each at most once.
result<collected> collect_numbered(const scheme& how, const signed_message& message) {
  collected out;
  std::bitset<numbered_max + 1> seen;
  for (const auto& [name, value] : message.headers) {
    const int number = number_behind(name, how.signature.numbered);
    if (number < 1 || number > how.signature.max) continue;
    const auto at = static_cast<std::size_t>(number);
    if (seen[at]) return error(permanent::signature_repeated, "a signature header stands twice");
    seen[at] = true;
    take_value(how, trim(value), out);
  }
  if (seen.none()) return error(permanent::signature_missing, "no signature header");
  return out;
}

result<collected> collect_headers(const scheme& how, const reading& from) {
  const auto values = from.every_header(how.signature.names);
  if (values.empty()) return error(permanent::signature_missing, "no signature header");
  // One of two would decide by order (K10), unless the provider repeats the header on purpose.
  if (values.size() > 1 && !how.signature.repeat)
    return error(permanent::signature_repeated, "the signature header stands more than once");
  collected out;
  for (const std::string_view value : values) take_value(how, value, out);
  return out;
}

}  // namespace

std::optional<std::string> decode_signature(signature_encoding how, std::string_view text) {
  switch (how) {
    case signature_encoding::hex: return from_hex(text);
    case signature_encoding::base64: return from_base64(text);
    case signature_encoding::base64url: return from_base64url(text);
    case signature_encoding::text: return std::string(text);
  }
  return std::nullopt;
}

result<collected> collect(const scheme& how, reading& from) {
  if (how.signature.from == place::header)
    return how.signature.numbered.empty() ? collect_headers(how, from) : collect_numbered(how, from.message());
  const occurrence found = how.signature.from == place::json ? from.json(how.signature.names) : from.form(how.signature.names);
  if (found.times == 0) return error(permanent::signature_missing, "no signature in the body");
  if (found.times > 1) return error(permanent::signature_repeated, "the signature stands more than once in the body");
  collected out;
  take_value(how, found.value, out);
  return out;
}

}  // namespace recibo::verify
