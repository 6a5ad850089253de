#include "recibo/receive/extract.hpp"

#include "elements.hpp"
#include "extract_items.hpp"
#include "sources.hpp"
#include "values.hpp"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

namespace recibo::receive {
namespace {

// Of a composite key with its length prefixes: what an index of PostgreSQL holds beside the other columns.
constexpr std::size_t key_bytes_max = 1024;

using verify::pointed_value;

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

// callback::key_beside, also of what cannot be understood: by this it is told from others with the same body. `url_of`: the
// operation whose callback URL it came to; empty: none.
std::string key_beside(const config::provider& how, source_reader& from, std::string_view url_of) {
  canonical parts;
  const auto add = [&](std::string_view what, const config::sources& list) {
    for (const config::source& one : list) {
      const bool beside = one.from == config::source::place::header || one.from == config::source::place::query;
      // Nobody vouches for an unsigned key; an identity that is not signed has a URL of its own, or is only a hint.
      if (!beside || (what == "key" && one.unsigned_accept)) continue;
      const auto found = from.read(one, what);
      if (found && *found && !is_blank((*found)->text)) parts.add(what).add((*found)->text);
    }
  };
  if (!url_of.empty()) parts.add("url").add(url_of);
  add("request_id", how.extract.request_id);
  add("reference", how.extract.reference);
  add("key", how.extract.idempotency_key);
  return parts.bytes().empty() ? std::string() : std::string(binary(sha256(parts.bytes())));
}

class extraction {
 public:
  // `element`: one of many events in the body, and which; nullptr: the body is one.
  extraction(const config::provider& how, const http::request& from, record::callback& out, const json_value* element = nullptr,
             std::size_t index = 0)
      : how_(how), out_(out), body_(from.body), element_(element), index_(index), sources_(how.extract, from, element) {}

  void run() {
    out_.key_beside = key_beside(how_, sources_, out_.request_id);
    if (sources_.broken()) fault({permanent::malformed_json, "body: " + sources_.broken()->detail});
    items();
    event();
    identity();
    key();
    occurred_at();
    sequence();
    money();
    result_object();
    settle_items();
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
    // Nothing is added for callbacks without items, so that their digests are what they were.
    for (const auto& i : out_.items) {
      bytes.add(i.item_id).add(i.event_raw).add(i.result);
      bytes.add(i.occurred_at ? std::optional(to_rfc3339(*i.occurred_at)) : std::nullopt);
      bytes.add(i.sequence ? std::optional(std::to_string(*i.sequence)) : std::nullopt);
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

  void items() {
    const auto& rule = how_.extract.items;
    // Whatever items a hint names, its operation is asked about.
    if (!rule || how_.hints || sources_.broken()) return;
    recibo::result<json_value> body = json_value();
    if (element_ == nullptr) body = parse_json(body_);
    if (!body) return fault({permanent::malformed_json, "body: " + body.error().detail});
    auto items = extract_items(how_, element_ ? *element_ : *body);
    if (!items) return fault(std::move(items.error()));
    out_.items = std::move(*items);
  }

  // Where only items are spoken of and none of them can be decided, nothing of the callback can: what is ignored is no news, and
  // one element that nobody understands keeps the others of its item back.
  void settle_items() {
    if (out_.items.empty() || !out_.event_raw.empty()) return;
    std::set<std::string_view> unclear;
    for (const auto& i : out_.items)
      if (!i.understood()) unclear.insert(i.item_id);
    const auto decides = [&](const auto& i) { return i.understood() && i.event != "ignore" && !unclear.contains(i.item_id); };
    if (std::any_of(out_.items.begin(), out_.items.end(), decides)) return;
    if (unclear.empty()) {
      out_.event = "ignore";
      return;
    }
    for (const auto& i : out_.items) {
      if (i.unprocessable) return fault({i.unprocessable->code, "items: " + i.unprocessable->detail});
    }
    const auto unmapped = std::find_if(out_.items.begin(), out_.items.end(), [](const auto& i) { return !i.understood(); });
    out_.event_raw = unmapped->event_raw;
  }

  // All parts of it are needed.
  std::optional<std::string> word_of_event() {
    std::vector<std::string> parts;
    for (const config::source& one : how_.extract.event) {
      auto part = identifier(one, "event");
      if (!part) return std::nullopt;
      parts.push_back(std::move(*part));
    }
    if (parts.empty()) return std::nullopt;
    return join_word(parts);
  }

  void event() {
    // A body about one item says what happened to that item.
    if (!out_.items.empty() && !how_.extract.items->each) return;
    if (auto word = word_of_event()) {
      if (auto fine = check_alias(*word, "event"); !fine) return fault(std::move(fine.error()));
      out_.event_raw = std::move(*word);
      if (const auto mapped = how_.events.find(out_.event_raw); mapped != how_.events.end()) out_.event = mapped->second;
      if (!how_.hints) return;
    }
    // What a hint says of the news is not believed; only foreign traffic is ignored by it.
    if (how_.hints) {
      if (out_.event != "ignore") out_.event = record::hint_event;
      return;
    }
    if (!out_.items.empty()) return;
    const bool joined = how_.extract.event.size() > 1;
    fault({permanent::missing_field, joined ? "event: one of its parts is absent or blank" : "event: absent or blank"});
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
    // An answer that was asked for has to say whose it is where that stands: a gateway's envelope says it of nobody.
    const bool names_nobody = out_.request_id.empty() && out_.references.empty() && out_.unproven_references.empty();
    if (out_.looked_up && names_nobody && !(how_.extract.request_id.empty() && how_.extract.reference.empty()))
      fault({permanent::missing_field, "request_id, reference: both absent or blank in the answer"});
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
    // Only of a key that is not signed its parts are told apart.
    const bool framed = out_.signed_digest.has_value();
    if (framed) out_.key_frame.assign(1, {});
    if (how_.extract.idempotency_key.empty()) {
      bytes.add(binary(out_.body_digest));
      shown = "sha256:" + to_hex(binary(out_.body_digest));
    }
    for (const config::source& one : how_.extract.idempotency_key) {
      auto part = identifier(one, "idempotency_key");
      if (!part) return fault({permanent::missing_field, "idempotency_key: absent or blank"});
      if (auto fine = check_alias(*part, "idempotency_key"); !fine) return fault(std::move(fine.error()));
      bytes.add(*part);
      // What stands in the body is the same whenever these bytes come.
      const bool beside = one.from == config::source::place::header || one.from == config::source::place::query;
      if (!one.unsigned_accept) covered.add(*part);
      if (framed && one.unsigned_accept && beside) {
        out_.unsigned_key += canonical().add(*part).bytes();
        out_.key_frame.emplace_back();
      } else if (framed) {
        out_.key_frame.back() += canonical().add(*part).bytes();
      }
      if (!shown.empty()) shown += " / ";
      shown += *part;
    }
    if (element_ != nullptr) add_index(bytes, covered, shown);
    if (bytes.bytes().size() > key_bytes_max)
      return fault({permanent::malformed_field, "idempotency_key: its parts are longer than 1024 bytes together"});
    if (out_.unsigned_key.empty()) out_.key_frame.clear();
    if (out_.signed_digest) {
      out_.signed_parts = covered.bytes();
      out_.signed_digest = sha256(covered.add(binary(*out_.signed_digest)).bytes());
    }
    out_.key = bytes.bytes();
    out_.key_text = std::move(shown);
  }

  // What names the request names each of its events only with its place there; a resend has them in the same places.
  void add_index(canonical& bytes, canonical& covered, std::string& shown) {
    const auto& key = how_.extract.idempotency_key;
    const bool within =
        std::any_of(key.begin(), key.end(), [](const config::source& s) { return s.from == config::source::place::json; });
    covered.add_number(static_cast<std::int64_t>(index_));
    if (within) return;
    bytes.add(std::to_string(index_));
    if (!out_.key_frame.empty()) out_.key_frame.back() += canonical().add(std::to_string(index_)).bytes();
    shown += " / " + std::to_string(index_);
  }

  void occurred_at() {
    for (const config::source& one : how_.extract.occurred_at) {
      const auto found = scalar(one, "occurred_at");
      if (!found) continue;
      const auto at = read_instant(*found, one.format.value_or(verify::timestamp_format::rfc3339));
      if (!at) return malformed("occurred_at", at.error().detail);
      out_.occurred_at = *at;
      return;
    }
  }

  void sequence() {
    const auto found = first_scalar(how_.extract.sequence, "sequence");
    if (!found) return;
    const auto number = read_sequence(found->text);
    if (!number) return malformed("sequence", number.error().detail);
    out_.sequence = *number;
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
    result_text text;
    for (const auto& [name, from] : how_.extract.result) {
      const std::string what = "result." + name;
      const auto found = read(from, what);
      if (found && !text.add(name, *found)) return malformed(what, "longer than 4096 bytes, or no text in UTF-8 without U+0000");
    }
    auto whole = text.take();
    if (!whole) return malformed("result", whole.error().detail);
    out_.result = std::move(*whole);
  }

  const config::provider& how_;
  record::callback& out_;
  std::string_view body_;
  const json_value* element_;
  std::size_t index_;
  source_reader sources_;
};

record::callback common_part(const record::callback& whole, const http::request& from) {
  record::callback out;
  out.settings = whole.settings;
  out.provider = whole.provider;
  out.received_at = whole.received_at;
  out.id = make_id<delivery_id>(whole.received_at);
  out.peer = whole.peer;
  out.trace_id = whole.trace_id;
  out.secret_name = whole.secret_name;
  out.signed_digest = whole.signed_digest;
  out.request_id = whole.request_id;
  out.body_digest = whole.body_digest;
  out.content_digest = sha256(from.body);
  return out;
}

std::vector<record::callback> unprocessable_whole(const config::provider& how, const record::callback& whole,
                                                  const http::request& from, error why) {
  std::vector<record::callback> out;
  auto& only = out.emplace_back(common_part(whole, from));
  only.part = 0;
  source_reader sources(how.extract, from);
  only.key_beside = key_beside(how, sources, whole.request_id);
  only.body_digest = only.content_digest;
  only.unprocessable = std::move(why);
  return out;
}

}  // namespace

std::vector<record::callback> extract_each(const config::provider& how, const http::request& from,
                                           const record::callback& whole) {
  const auto body = parse_json(from.body);
  if (!body) return unprocessable_whole(how, whole, from, {permanent::malformed_json, "body: " + body.error().detail});
  std::vector<const json_value*> elements;
  if (!collect_elements(*body, *how.extract.each, elements))
    return unprocessable_whole(how, whole, from, {permanent::missing_field, "each: there is no list of events"});
  const std::size_t count = elements.size();
  if (count > record::events_in_request_max) {
    const auto most = std::to_string(record::events_in_request_max);
    return unprocessable_whole(how, whole, from, {permanent::malformed_field, "each: more than " + most + " events"});
  }
  std::vector<record::callback> out;
  out.reserve(count);
  const auto digest = sha256(from.body);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& element = *elements[i];
    auto& part = out.emplace_back(common_part(whole, from));
    part.body_digest = digest;
    part.part = i;
    extraction work(how, from, part, &element, i);
    work.run();
    if (part.unprocessable) continue;
    if (part.is_hint()) {
      // What it says does not count, so that one key has one content.
      part.content_digest = sha256(part.key);
      continue;
    }
    if (how.content == config::content_rule::fields) {
      part.content_digest = work.content();
    } else if (const auto text = canonical_json(element)) {
      part.content_digest = sha256(*text);
    }
  }
  return out;
}

void extract(const config::provider& how, const http::request& from, record::callback& out) {
  out.body_digest = sha256(from.body);
  extraction work(how, from, out);
  work.run();
  const bool by_fields = how.content == config::content_rule::fields && !out.unprocessable;
  out.content_digest = by_fields ? work.content() : out.body_digest;
  // What it says does not count, so that one key has one content.
  if (out.is_hint() && !out.unprocessable) out.content_digest = sha256(out.key);
}

}  // namespace recibo::receive
