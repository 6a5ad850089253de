#include "recibo/verify/diagnose.hpp"

#include "recibo/core/digest.hpp"

#include "reading.hpp"
#include "signed_pieces.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

// Printable ASCII stays; everything else becomes an escape, so that a terminal shows bytes and obeys none.
std::string shown(std::string_view bytes, std::size_t longest) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (out.size() >= longest) return out + "… (" + std::to_string(bytes.size() - i) + " more bytes)";
    const char c = bytes[i];
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\\') {
      out += "\\\\";
    } else if (c < 0x20 || c > 0x7e) {
      out += "\\x" + to_hex(bytes.substr(i, 1));
    } else {
      out += c;
    }
  }
  return out;
}

void add_places(const scheme& how, reading& from, findings& out) {
  const signature_rule& rule = how.signature;
  std::vector<std::string> names = rule.names;
  for (int i = 1; !rule.numbered.empty() && i <= rule.max; ++i) names.push_back(rule.numbered + std::to_string(i));
  for (const auto& name : names) {
    occurrence found;
    switch (rule.from) {
      case place::header: found = from.header(std::string_view(name)); break;
      case place::json: found = from.json(rule.names); break;
      case place::form: found = from.form(rule.names); break;
      case place::element:
      case place::claim: break;
    }
    if (!rule.numbered.empty() && found.times == 0 && name != names.front()) continue;
    out.signatures.push_back({name, found.times, found.value.size()});
  }
}

std::optional<std::chrono::seconds> age_of(timestamp_format format, std::string_view text, sys_micros now) {
  result<sys_micros> at = malformed({});
  switch (format) {
    case timestamp_format::unix_s: at = parse_unix_seconds(text); break;
    case timestamp_format::unix_ms: at = parse_unix_millis(text); break;
    case timestamp_format::rfc3339: at = parse_rfc3339(text); break;
    case timestamp_format::unix_any: break;
  }
  if (!at) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::seconds>(now - *at);
}

}  // namespace

findings look_into(const scheme& how, const signed_message& message, sys_micros now) {
  findings out;
  if (how.kind == scheme_kind::none) return out;
  reading from(how, message);
  add_places(how, from, out);
  if (const std::string time = time_text(how, message); !time.empty()) {
    out.timestamp = shown(time, 64);
    out.age = age_of(how.timestamp->format, time, now);
  }
  if (const auto pieces = signed_pieces(how, message, "{secret}")) {
    std::string all;
    for (const auto& piece : *pieces) {
      out.content_size += piece.size();
      if (all.size() <= shown_max) all += std::string_view(piece).substr(0, shown_max + 1);
    }
    out.content = shown(all, shown_max);
    if (all.size() > shown_max) out.content = shown(std::string_view(all).substr(0, shown_max), shown_max) + "…";
  }
  return out;
}

}  // namespace recibo::verify
