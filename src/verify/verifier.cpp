#include "recibo/verify/verifier.hpp"

#include "recibo/core/digest.hpp"

#include "content.hpp"
#include "mac.hpp"
#include "reading.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

// What the signature's place holds: decoded signatures, and the time stamp where it is an element beside them.
struct collected {
  std::vector<std::string> candidates;
  occurrence time;
};

std::optional<std::string> decode(signature_encoding how, std::string_view text) {
  switch (how) {
    case signature_encoding::hex: return from_hex(text);
    case signature_encoding::base64: return from_base64(text);
    case signature_encoding::base64url: return from_base64url(text);
    case signature_encoding::text: return std::string(text);
  }
  return std::nullopt;
}

void take_signature(const signature_rule& rule, std::string_view text, collected& out) {
  if (!text.starts_with(rule.prefix) || out.candidates.size() >= candidates_max) return;
  auto bytes = decode(rule.encoding, text.substr(rule.prefix.size()));
  // An empty signature never matches, whatever the secret is.
  if (bytes && !bytes->empty()) out.candidates.push_back(std::move(*bytes));
}

void take_element(const scheme& how, std::string_view element, collected& out) {
  const signature_rule& rule = how.signature;
  if (rule.pair.empty()) return take_signature(rule, element, out);
  const std::size_t at = element.find(rule.pair);
  if (at == std::string_view::npos) return;
  const std::string_view key = trim(element.substr(0, at));
  const std::string_view value = trim(element.substr(at + rule.pair.size()));
  if (key == rule.element) take_signature(rule, value, out);
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

// DocuSign: x-docusign-signature-1 to -100, in any order and with gaps; each at most once.
result<collected> collect_numbered(const scheme& how, const reading& from) {
  collected out;
  bool present = false;
  std::vector<std::string> name(1);
  for (int i = 1; i <= how.signature.max; ++i) {
    name.front() = how.signature.numbered + std::to_string(i);
    const occurrence found = from.header(name);
    if (found.times == 0) continue;
    if (found.times > 1) return error(permanent::signature_repeated, "a signature header stands twice");
    present = true;
    take_value(how, found.value, out);
  }
  if (!present) return error(permanent::signature_missing, "no signature header");
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

result<collected> collect(const scheme& how, reading& from) {
  if (how.signature.from == place::header)
    return how.signature.numbered.empty() ? collect_headers(how, from) : collect_numbered(how, from);
  const occurrence found = how.signature.from == place::json ? from.json(how.signature.names) : from.form(how.signature.names);
  if (found.times == 0) return error(permanent::signature_missing, "no signature in the body");
  if (found.times > 1) return error(permanent::signature_repeated, "the signature stands more than once in the body");
  collected out;
  take_value(how, found.value, out);
  return out;
}

result<std::string_view> read_time(const timestamp_rule& rule, const collected& signatures, reading& from) {
  occurrence found;
  switch (rule.from) {
    case place::header: found = from.header(rule.names); break;
    case place::element: found = signatures.time; break;
    case place::json: found = from.json(rule.names); break;
    case place::form: found = from.form(rule.names); break;
  }
  if (found.times > 1) return error(permanent::signature_repeated, "the timestamp stands more than once");
  if (found.times == 0 || found.value.empty()) return error(permanent::timestamp_missing, "no timestamp");
  return found.value;
}

std::chrono::microseconds distance(std::chrono::microseconds a, std::chrono::microseconds b) noexcept {
  return a < b ? b - a : a - b;
}

result<void> judge_time(const timestamp_rule& rule, std::string_view text, sys_micros now) {
  result<sys_micros> at = sys_micros{};
  switch (rule.format) {
    case timestamp_format::unix_s:
      at = parse_unix_seconds(text);
      // Both in whole seconds, as providers' libraries compare them: 300.9 s of 300 is in time.
      now = std::chrono::floor<std::chrono::seconds>(now);
      break;
    case timestamp_format::unix_ms:
      at = parse_unix_millis(text);
      now = std::chrono::floor<std::chrono::milliseconds>(now);
      break;
    case timestamp_format::unix_any:
      if (text.size() > 20 || !std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; })) {
        return error(permanent::timestamp_malformed, "the timestamp is not a number");
      }
      return {};
    case timestamp_format::rfc3339: at = parse_rfc3339(text); break;
  }
  if (!at) return error(permanent::timestamp_malformed, "the timestamp is not in the scheme's format");
  if (rule.tolerance && distance(now.time_since_epoch(), at->time_since_epoch()) > *rule.tolerance) {
    return error(permanent::timestamp_stale, "the timestamp is outside the tolerance");
  }
  return {};
}

bool any_equal(std::string_view expected, const std::vector<std::string>& candidates) noexcept {
  bool equal = false;
  // Every candidate, so that the time does not tell which one was right.
  for (const std::string& candidate : candidates) equal = equal_constant_time(expected, candidate) || equal;
  return equal;
}

bool made_by(const scheme& how, std::string_view key, const signed_content& content, const std::vector<std::string>& candidates) {
  switch (how.kind) {
    case scheme_kind::hmac: return any_equal(hmac(how.hash, key, content.with(key)).view(), candidates);
    case scheme_kind::hash: return any_equal(digest(how.hash, content.with(key)).view(), candidates);
    case scheme_kind::token: return any_equal(key, candidates);
    case scheme_kind::none: break;
  }
  return false;
}

}  // namespace

result<secret> key_bytes(const scheme& how, const secret& text) {
  std::string_view from = text.reveal();
  if (std::all_of(from.begin(), from.end(), [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); })) {
    return error(permanent::invalid_configuration, "the secret is empty or only blanks");
  }
  if (from.starts_with(how.key.strip_prefix)) from.remove_prefix(how.key.strip_prefix.size());
  std::optional<std::string> bytes;
  switch (how.key.encoding) {
    case text_encoding::utf8: bytes = std::string(from); break;
    case text_encoding::base64:
      bytes = from_base64(from);
      if (!bytes) return error(permanent::invalid_configuration, "the secret is not base64, as this scheme's secrets are");
      break;
    case text_encoding::hex:
      bytes = from_hex(from);
      if (!bytes) return error(permanent::invalid_configuration, "the secret is not hexadecimal, as this scheme's secrets are");
      break;
  }
  if (bytes->empty()) return error(permanent::invalid_configuration, "the secret is empty");
  return secret(std::move(*bytes));
}

result<std::string> verify(const scheme& how, const signed_message& message, const keyring& keys, sys_micros now) {
  if (how.kind == scheme_kind::none) return std::string();
  reading from(how, message);
  const auto signatures = collect(how, from);
  if (!signatures) return signatures.error();
  if (signatures->candidates.empty()) return error(permanent::signature_missing, "no signature that can be decoded");

  std::string_view time;
  if (how.timestamp) {
    const auto text = read_time(*how.timestamp, *signatures, from);
    if (!text) return text.error();
    if (const auto fine = judge_time(*how.timestamp, *text, now); !fine) return fine.error();
    time = *text;
  }

  const auto content = signed_content::gather(how, from, time);
  if (!content) return content.error();
  for (const named_secret& one : keys.secrets) {
    if (one.key.empty() || !one.valid_at(now)) continue;
    if (made_by(how, one.key.reveal(), *content, signatures->candidates)) return one.name;
  }
  return error(permanent::signature_mismatch, "no valid secret made this signature");
}

}  // namespace recibo::verify
