#include "recibo/receive/extract.hpp"

#include "recibo/core/json.hpp"
#include "recibo/core/utf8.hpp"

#include "sources.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace recibo::receive {
namespace {

// Of a composite key with its length prefixes: what an index of PostgreSQL holds beside the other columns.
constexpr std::size_t key_bytes_max = 1024;

using verify::pointed_value;

bool is_blank(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
}

// Equal amounts have one text here: "19.90" and "19.9", "-0.00" and "0".
std::string normalised(const decimal& amount) {
  std::string_view text = amount.text;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  while (text.size() > 1 && text[0] == '0' && text[1] != '.') text.remove_prefix(1);
  if (text.find('.') != std::string_view::npos) {
    while (text.ends_with('0')) text.remove_suffix(1);
    if (text.ends_with('.')) text.remove_suffix(1);
  }
  if (text.empty() || text == "0") return "0";
  return (negative ? "-" : "") + std::string(text);
}

class extraction {
 public:
  extraction(const config::provider& how, const http::request& from, record::callback& out)
      : how_(how), out_(out), sources_(how.extract, from) {}

  void run() {
    if (sources_.broken()) fault({permanent::malformed_json, "body: " + sources_.broken()->detail});
    event();
    identity();
    key();
    occurred_at();
    sequence();
    money();
    result_object();
    if (out_.event == "ignore" && !sources_.broken()) out_.unprocessable.reset();
  }

  // Fields with their lengths: no two different contents have the same bytes.
  sha256_digest content() const {
    canonical bytes;
    bytes.add("fields/1").add(out_.event_raw);
    bytes.add(out_.occurred_at ? std::optional(to_rfc3339(*out_.occurred_at)) : std::nullopt);
    bytes.add(out_.sequence ? std::optional(std::to_string(*out_.sequence)) : std::nullopt);
    bytes.add(out_.amount ? std::optional(normalised(*out_.amount)) : std::nullopt);
    bytes.add(out_.currency).add(out_.request_id).add(std::to_string(out_.references.size()));
    for (const std::string& reference : out_.references) bytes.add(reference);
    bytes.add(out_.result);
    // Only where there are some: what was claimed before they were looked at keeps its digest.
    if (out_.account) bytes.add("account").add(out_.account);
    if (out_.named_instead || !out_.unproven_references.empty()) {
      bytes.add(out_.named_instead);
      for (const std::string& reference : out_.unproven_references) bytes.add(reference);
    }
    return sha256(bytes.bytes());
  }

 private:
  // The first one stands: it is what a person mends first.
  void fault(error why) {
    if (!out_.unprocessable) out_.unprocessable = std::move(why);
  }
  void malformed(std::string_view what, std::string_view why) {
    fault({permanent::malformed_field, std::string(what) + ": " + std::string(why)});
  }

  std::optional<pointed_value> read(const config::source& from, std::string_view what) {
    auto found = sources_.read(from, what);
    if (found) return std::move(*found);
    fault(std::move(found.error()));
    return std::nullopt;
  }

  // As a text, where one is wanted: an object or array is none.
  std::optional<pointed_value> scalar(const config::source& from, std::string_view what) {
    auto found = read(from, what);
    if (!found || (found->kind != json_value::kind::object && found->kind != json_value::kind::array)) return found;
    malformed(what, "an object or array stands where a single value is wanted");
    return std::nullopt;
  }
  std::optional<pointed_value> first_scalar(const config::sources& from, std::string_view what) {
    for (const config::source& one : from) {
      if (auto found = scalar(one, what)) return found;
    }
    return std::nullopt;
  }
  // An identifier that is blank says as little as one that is absent.
  std::optional<std::string> identifier(const config::source& from, std::string_view what) {
    auto found = scalar(from, what);
    if (!found || is_blank(found->text)) return std::nullopt;
    return std::move(found->text);
  }

  void event() {
    for (const config::source& one : how_.extract.event) {
      auto word = identifier(one, "event");
      if (!word) continue;
      if (auto fine = check_alias(*word, "event"); !fine) return fault(std::move(fine.error()));
      out_.event_raw = std::move(*word);
      if (const auto mapped = how_.events.find(out_.event_raw); mapped != how_.events.end()) out_.event = mapped->second;
      return;
    }
    fault({permanent::missing_field, "event: absent or blank"});
  }

  void identity() {
    const std::string by_url = std::exchange(out_.request_id, {});
    for (const config::source& one : how_.extract.request_id) {
      auto id = identifier(one, "request_id");
      if (!id) continue;
      if (auto fine = check_request_id(*id); !fine) {
        fault(std::move(fine.error()));
      } else {
        out_.request_id = std::move(*id);
      }
      break;
    }
    for (const config::source& one : how_.extract.reference) {
      auto reference = identifier(one, "reference");
      if (!reference) continue;
      if (auto fine = check_alias(*reference, "reference"); !fine) {
        fault(std::move(fine.error()));
        continue;
      }
      auto& known = is_proven(one) ? out_.references : out_.unproven_references;
      if (std::find(known.begin(), known.end(), *reference) == known.end()) known.push_back(std::move(*reference));
    }
    if (!by_url.empty()) {
      if (!out_.request_id.empty() && out_.request_id != by_url) out_.named_instead = std::move(out_.request_id);
      out_.request_id = by_url;
    }
    if (out_.request_id.empty() && out_.references.empty())
      fault({permanent::missing_field, "request_id, reference: both absent or blank"});
  }

  // The token of a URL speaks for its operation alone: a reference beside it could be any other's, unless that is signed.
  bool is_proven(const config::source& one) const noexcept {
    return !how_.callback_url || (!one.unsigned_accept && how_.verify.kind != verify::scheme_kind::none);
  }

  void key() {
    canonical bytes, covered;
    std::string shown;
    if (how_.extract.idempotency_key.empty()) {
      bytes.add(binary(out_.body_digest));
      shown = "sha256:" + to_hex(binary(out_.body_digest));
    }
    for (const config::source& one : how_.extract.idempotency_key) {
      auto part = identifier(one, "idempotency_key");
      if (!part) return fault({permanent::missing_field, "idempotency_key: absent or blank"});
      if (auto fine = check_alias(*part, "idempotency_key"); !fine) return fault(std::move(fine.error()));
      bytes.add(*part);
      if (!one.unsigned_accept) covered.add(*part);
      if (!shown.empty()) shown += " / ";
      shown += *part;
    }
    if (bytes.bytes().size() > key_bytes_max)
      return fault({permanent::malformed_field, "idempotency_key: its parts are longer than 1024 bytes together"});
    if (out_.signed_digest) out_.signed_digest = sha256(covered.add(binary(*out_.signed_digest)).bytes());
    out_.key = bytes.bytes();
    out_.key_text = std::move(shown);
  }

  void occurred_at() {
    for (const config::source& one : how_.extract.occurred_at) {
      const auto found = scalar(one, "occurred_at");
      if (!found) continue;
      const auto at = instant(*found, one.format.value_or(verify::timestamp_format::rfc3339));
      if (!at) return malformed("occurred_at", at.error().detail);
      out_.occurred_at = *at;
      return;
    }
  }

  static recibo::result<sys_micros> instant(const pointed_value& from, verify::timestamp_format format) {
    switch (format) {
      case verify::timestamp_format::rfc3339:
        if (from.kind == json_value::kind::string) return parse_rfc3339(from.text);
        return error(permanent::malformed_field, "a time is a text in RFC 3339");
      case verify::timestamp_format::unix_s: return parse_unix_seconds(from.text);
      case verify::timestamp_format::unix_ms: return parse_unix_millis(from.text);
      case verify::timestamp_format::unix_any: break;
    }
    return error(permanent::malformed_field, "no unit is configured for this time");
  }

  void sequence() {
    const auto found = first_scalar(how_.extract.sequence, "sequence");
    if (!found) return;
    std::int64_t number = 0;
    const char* const end = found->text.data() + found->text.size();
    const bool digits =
        !found->text.empty() && std::all_of(found->text.begin(), found->text.end(), [](char c) { return c >= '0' && c <= '9'; });
    const auto read = std::from_chars(found->text.data(), end, number);
    if (!digits || read.ec != std::errc() || read.ptr != end)
      return malformed("sequence", "not an integer from 0 to 9223372036854775807");
    out_.sequence = number;
  }

  void money() {
    if (const auto found = first_scalar(how_.extract.currency, "currency")) {
      const auto currency = parse_currency(found->text);
      if (currency) {
        out_.currency = *currency;
      } else {
        malformed("currency", "not a code of three letters");
      }
    }
    amount();
    if (const auto found = first_scalar(how_.extract.account, "account"); found && !is_blank(found->text)) {
      if (auto fine = check_alias(found->text, "account"); !fine) return fault(std::move(fine.error()));
      out_.account = found->text;
    }
  }

  void amount() {
    for (const config::source& one : how_.extract.amount) {
      const auto found = scalar(one, "amount");
      if (!found) continue;
      // A number may have an exponent, and is exact all the same; in a text an exponent is somebody's mistake.
      auto amount = found->kind == json_value::kind::number ? parse_json_decimal(found->text) : parse_decimal(found->text);
      if (!amount) return malformed("amount", amount.error().detail);
      if (one.minor_unit) {
        if (!out_.currency) return malformed("amount", "it counts the smallest unit of a currency, and there is no currency");
        amount = from_minor_unit(*amount, *out_.currency);
        if (!amount) return malformed("amount", amount.error().detail);
      }
      out_.amount = std::move(*amount);
      return;
    }
  }

  void result_object() {
    if (how_.extract.result.empty()) return;
    std::string json = "{";
    for (const auto& [name, from] : how_.extract.result) {
      const std::string what = "result." + name;
      const auto found = read(from, what);
      if (!found) continue;
      if (json.size() > 1) json += ',';
      append_json_string(json, name);
      json += ':';
      if (!append_value(json, *found)) return malformed(what, "longer than 4096 bytes, or no text in UTF-8 without U+0000");
    }
    json += '}';
    // Sorted names and one spelling, so that the same result has the same bytes.
    auto one_text = canonical_json(json);
    if (!one_text || one_text->size() > result_max)
      return malformed("result", "longer than 4096 bytes, or a number of too many digits");
    out_.result = std::move(*one_text);
  }

  static bool append_value(std::string& json, const pointed_value& found) {
    if (found.text.size() > result_max) return false;
    switch (found.kind) {
      case json_value::kind::string:
        // A header or form field may hold any bytes.
        if (!is_utf8(found.text) || found.text.find('\0') != std::string::npos) return false;
        append_json_string(json, found.text);
        return true;
      case json_value::kind::object:
      case json_value::kind::array:
        if (found.text.empty()) return false;  // beyond the bound of the reader
        break;
      case json_value::kind::null:
      case json_value::kind::boolean:
      case json_value::kind::number: break;
    }
    json += found.text;
    return true;
  }

  const config::provider& how_;
  record::callback& out_;
  source_reader sources_;
};

}  // namespace

void extract(const config::provider& how, const http::request& from, record::callback& out) {
  out.body_digest = sha256(from.body);
  extraction work(how, from, out);
  work.run();
  const bool by_fields = how.content == config::content_rule::fields && !out.unprocessable;
  out.content_digest = by_fields ? work.content() : out.body_digest;
}

}  // namespace recibo::receive
