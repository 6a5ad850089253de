#include "recibo/core/digest.hpp"
#include "recibo/verify/verifier.hpp"

#include "content.hpp"
#include "http_components.hpp"
#include "items.hpp"
#include "mac.hpp"
#include "prepared.hpp"

#include <nlohmann/json.hpp>

#include <array>

namespace recibo::verify {
namespace {

using header_list = std::vector<std::pair<std::string, std::string>>;

std::string encode(signature_encoding how, std::string_view bytes) {
  switch (how) {
    case signature_encoding::hex: return to_hex(bytes);
    case signature_encoding::base64: return to_base64(bytes);
    case signature_encoding::base64url: {
      std::string out = to_base64(bytes);
      for (char& c : out) c = c == '+' ? '-' : c == '/' ? '_' : c;
      return out;
    }
    case signature_encoding::text: return std::string(bytes);
  }
  return {};
}

std::string write_time(timestamp_format how, sys_micros at) {
  using namespace std::chrono;
  switch (how) {
    case timestamp_format::unix_s:
    case timestamp_format::unix_any: return std::to_string(floor<seconds>(at).time_since_epoch().count());
    case timestamp_format::unix_ms: return std::to_string(floor<milliseconds>(at).time_since_epoch().count());
    case timestamp_format::rfc3339: return to_rfc3339(at);
  }
  return {};
}

// The time stamp to sign; `to_add` gets a header for it where it stands in one and is not there yet.
result<std::string> time_to_sign(const scheme& how, reading& from, sys_micros now, header_list& to_add) {
  if (!how.timestamp) return std::string();
  const timestamp_rule& rule = *how.timestamp;
  switch (rule.from) {
    case place::element: return write_time(rule.format, now);
    case place::header:
      if (const occurrence there = from.header(rule.names); there.times > 0) return std::string(there.value);
      to_add.emplace_back(rule.names.front(), write_time(rule.format, now));
      return to_add.back().second;
    case place::json:
      if (const occurrence there = from.json(rule.names); there.times > 0) return std::string(there.value);
      break;
    case place::form:
    case place::claim: break;
  }
  return error(permanent::content_missing, "the scheme's timestamp stands in the body, and the body has none");
}

// The signature of the present item, as it stands in its header or field.
result<std::string> signature_text(const scheme& how, reading& from, std::string_view time, const named_secret& key) {
  auto content = signed_content::gather(how, from, time);
  if (!content) return content.error();
  const signature_rule& rule = how.signature;
  const std::string_view bytes = key.key.reveal();
  std::string value = rule.prefix;
  switch (how.kind) {
    case scheme_kind::hmac: value += encode(rule.encoding, hmac(how.hash, bytes, content->with(bytes)).view()); break;
    case scheme_kind::hash: value += encode(rule.encoding, digest(how.hash, content->with(bytes)).view()); break;
    case scheme_kind::token: value += encode(rule.encoding, bytes); break;
    case scheme_kind::ed25519:
    case scheme_kind::ecdsa:
    case scheme_kind::rsa:
    case scheme_kind::plaid:
    case scheme_kind::aws_sns:
    case scheme_kind::http_signatures:
    case scheme_kind::none: break;
  }
  if (rule.pair.empty()) return value;
  const std::string element = rule.element_is_secret_part && key.ready ? key.ready->public_part : rule.element;
  value = element + rule.pair + value;
  if (how.timestamp && how.timestamp->from == place::element)
    value = how.timestamp->names.front() + rule.pair + std::string(time) + rule.list + value;
  return value;
}

bool signs_the_body(const scheme& how) {
  for (const content_part& part : how.content) {
    if (part.what == content_part::source::body || part.what == content_part::source::body_crc32) return true;
  }
  return false;
}

result<std::string> put_in_json(const scheme& how, reading& from, std::string_view time, const named_secret& key) {
  using json = nlohmann::ordered_json;
  json document = json::parse(from.message().body, nullptr, false);
  const std::size_t count = from.items();
  if (document.is_discarded() || count == 0 || count > items_max)
    return misconfigured("this scheme's signature stands in a JSON body, and the body is none with a place for it");
  const auto star = split_at_star(how.for_each);
  for (std::size_t i = 0; i < count; ++i) {
    from.at_item(i);
    auto value = signature_text(how, from, time, key);
    if (!value) return value.error();
    std::string at = how.signature.names.front();
    if (star) at = std::string(star->first) + '/' + std::to_string(i) + std::string(star->second) + at;
    try {
      document[json::json_pointer(at)] = std::move(*value);
    } catch (const json::exception&) {
      return misconfigured("the signature has no place in this JSON body");
    }
  }
  return document.dump();
}

result<std::string> put_in_form(const scheme& how, reading& from, std::string_view time, const named_secret& key) {
  auto value = signature_text(how, from, time, key);
  if (!value) return value.error();
  std::string out(from.message().body);
  if (!out.empty()) out += '&';
  return out + encode_query_text(how.signature.names.front()) + '=' + encode_query_text(*value);
}

// RFC 9421 with a shared secret: what the scheme requires, under the label "sig1".
result<header_list> sign_http(const scheme& how, const signed_message& message, const named_secret& key, sys_micros now) {
  const http_signature_key* const entry = entry_of(how, key.name);
  if (entry == nullptr || entry->algorithm != http_algorithm::hmac_sha256 || !key.ready)
    return misconfigured("only the provider's private key can make this scheme's signatures");
  header_list out;
  header_list all(message.headers.begin(), message.headers.end());
  if (reading(how, message).header("content-digest").times == 0) {
    out.emplace_back("content-digest", "sha-256=:" + to_base64(digest(hash_name::sha256, std::array{message.body}).view()) + ':');
    all.push_back(out.back());
  }
  const std::vector<std::string> usual{"@method", "@target-uri", "content-digest"};
  std::string input = "sig1=(";
  for (const std::string& one : how.http.required.value_or(usual)) {
    if (!input.ends_with('(')) input += ' ';
    input += one.starts_with('"') ? one : serialize_string(one);
  }
  input += ");created=" + write_time(timestamp_format::unix_s, now) + ";keyid=" + serialize_string(entry->id);
  const auto read = parse_dictionary(input);
  if (!read) return misconfigured("the required components cannot be written");
  const signed_message with_digest{message.method, message.url, message.query, all, message.body};
  const reading from(how, with_digest);
  const auto base = signature_base(read->front(), from);
  if (!base) return error(permanent::content_missing, "a component that must be covered is absent");
  out.emplace_back("signature-input", std::move(input));
  out.emplace_back(
      "signature",
      "sig1=:" + to_base64((*key.ready->mac_of(hash_name::sha256))(std::array{std::string_view(*base)}).view()) + ':');
  return out;
}

}  // namespace

result<signed_parts> sign_request(const scheme& how, const signed_message& message, const named_secret& key, sys_micros now) {
  signed_parts out;
  if (how.kind == scheme_kind::none) return out;
  if (key.key.empty()) return misconfigured("the secret is empty");
  if (how.is_asymmetric()) return misconfigured("only the provider's private key can make this scheme's signatures");
  if (how.kind == scheme_kind::http_signatures) {
    auto headers = sign_http(how, message, key, now);
    if (!headers) return headers.error();
    out.headers = std::move(*headers);
    return out;
  }
  const signature_rule& rule = how.signature;
  if (rule.from != place::header && signs_the_body(how))
    return misconfigured("the signature would stand in the body that it signs");
  reading from(how, message);
  const auto time = time_to_sign(how, from, now, out.headers);
  if (!time) return time.error();
  auto text = rule.from == place::json   ? put_in_json(how, from, *time, key)
              : rule.from == place::form ? put_in_form(how, from, *time, key)
                                         : signature_text(how, from, *time, key);
  if (!text) return text.error();
  if (rule.from == place::header) {
    out.headers.emplace_back(rule.numbered.empty() ? rule.names.front() : rule.numbered + "1", std::move(*text));
  } else {
    out.body = std::move(*text);
  }
  return out;
}

result<header_list> sign(const scheme& how, const signed_message& message, const named_secret& key, sys_micros now) {
  if (how.kind != scheme_kind::none && how.signature.from != place::header)
    return error(permanent::invalid_configuration, "this scheme's signature stands inside the body");
  auto made = sign_request(how, message, key, now);
  if (!made) return made.error();
  return std::move(made->headers);
}

}  // namespace recibo::verify
