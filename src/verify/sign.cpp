#include "recibo/core/digest.hpp"
#include "recibo/verify/verifier.hpp"

#include "content.hpp"
#include "mac.hpp"

namespace recibo::verify {
namespace {

using headers = std::vector<std::pair<std::string, std::string>>;

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
result<std::string> time_to_sign(const scheme& how, reading& from, sys_micros now, headers& to_add) {
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
    case place::form: break;
  }
  return error(permanent::content_missing, "the scheme's timestamp stands in the body, and the body has none");
}

}  // namespace

result<headers> sign(const scheme& how, const signed_message& message, const named_secret& key, sys_micros now) {
  headers out;
  if (how.kind == scheme_kind::none) return out;
  const signature_rule& rule = how.signature;
  if (rule.from != place::header)
    return error(permanent::invalid_configuration, "this scheme's signature stands inside the body");
  if (key.key.empty()) return error(permanent::invalid_configuration, "the secret is empty");
  reading from(how, message);
  const auto time = time_to_sign(how, from, now, out);
  if (!time) return time.error();
  const auto content = signed_content::gather(how, from, *time);
  if (!content) return content.error();

  const std::string_view bytes = key.key.reveal();
  std::string value = rule.prefix;
  switch (how.kind) {
    case scheme_kind::hmac: value += encode(rule.encoding, hmac(how.hash, bytes, content->with(bytes)).view()); break;
    case scheme_kind::hash: value += encode(rule.encoding, digest(how.hash, content->with(bytes)).view()); break;
    case scheme_kind::token: value += encode(rule.encoding, bytes); break;
    case scheme_kind::none: break;
  }
  if (!rule.pair.empty()) value = rule.element + rule.pair + value;
  if (how.timestamp && how.timestamp->from == place::element) {
    value = how.timestamp->names.front() + rule.pair + *time + rule.list + value;
  }
  out.emplace_back(rule.numbered.empty() ? rule.names.front() : rule.numbered + "1", std::move(value));
  return out;
}

}  // namespace recibo::verify
