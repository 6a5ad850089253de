// presets.json → schemes: the full form of a scheme, read strictly (R13).
#include "recibo/verify/scheme.hpp"

#include "recibo/core/embedded.hpp"
#include "recibo/verify/words.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>

namespace recibo {
// Made at build time from src/verify/presets.json.
std::span<const embedded_file> embedded_presets();
}  // namespace recibo

namespace recibo::verify {
namespace {

using nlohmann::json;

// Thrown inside this file only, so that reading a nested object stays one expression per field; parse_scheme catches.
struct unsuitable {
  std::string why;
};

[[noreturn]] void refuse(std::string why) { throw unsuitable{std::move(why)}; }

template <class Enum, std::size_t N>
Enum word(const json& value, const std::array<std::pair<std::string_view, Enum>, N>& words, const char* field) {
  if (value.is_string()) {
    for (const auto& [text, meaning] : words) {
      if (value.get_ref<const std::string&>() == text) return meaning;
    }
  }
  refuse(std::string(field) + ": not a value that this version knows");
}

constexpr word_table<scheme_kind, 10> kinds{{{"hmac", scheme_kind::hmac},
                                             {"hash", scheme_kind::hash},
                                             {"token", scheme_kind::token},
                                             {"ed25519", scheme_kind::ed25519},
                                             {"ecdsa", scheme_kind::ecdsa},
                                             {"rsa", scheme_kind::rsa},
                                             {"plaid", scheme_kind::plaid},
                                             {"aws-sns", scheme_kind::aws_sns},
                                             {"http-message-signatures", scheme_kind::http_signatures},
                                             {"none", scheme_kind::none}}};
constexpr word_table<place, 5> places{{{"header", place::header},
                                       {"json", place::json},
                                       {"form", place::form},
                                       {"element", place::element},
                                       {"claim", place::claim}}};
constexpr word_table<content_part::source, 3> url_forms{{{"full", content_part::source::url},
                                                         {"hubspot_decoded", content_part::source::url_hubspot},
                                                         {"plivo", content_part::source::url_plivo}}};
constexpr word_table<content_part::source, 1> checksums{{{"decimal", content_part::source::body_crc32}}};
constexpr word_table<url_variant, 2> variants{{{"no_port", url_variant::no_port}, {"default_port", url_variant::default_port}}};

void only(const json& object, std::initializer_list<std::string_view> known, const char* where) {
  if (!object.is_object()) refuse(std::string(where) + ": not an object");
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) refuse(std::string(where) + ": unknown key " + name);
  }
}

std::string text(const json& object, const char* field, std::string otherwise = {}) {
  const auto at = object.find(field);
  if (at == object.end()) return otherwise;
  if (!at->is_string()) refuse(std::string(field) + ": not a text");
  return at->get<std::string>();
}

bool flag(const json& object, const char* field) {
  const auto at = object.find(field);
  if (at == object.end()) return false;
  if (!at->is_boolean()) refuse(std::string(field) + ": not true or false");
  return at->get<bool>();
}

// Wherever a name is text it may be a list, tried in order.
std::vector<std::string> names(const json& value, const char* field) {
  if (value.is_string()) return {value.get<std::string>()};
  if (!value.is_array() || value.empty()) refuse(std::string(field) + ": neither a name nor a list of names");
  std::vector<std::string> out;
  for (const json& one : value) {
    if (!one.is_string()) refuse(std::string(field) + ": neither a name nor a list of names");
    out.push_back(one.get<std::string>());
  }
  return out;
}

int small_number(const json& object, const char* field, int least, int most) {
  const json& value = object[field];
  if (!value.is_number_integer() || value < least || value > most) refuse(std::string(field) + ": not a number in its range");
  return value.get<int>();
}

key_rule read_key(const json& from) {
  only(from, {"strip_prefix", "encoding", "digest", "split", "part", "certificate_url_header", "host_suffixes", "id_header"},
       "key");
  key_rule out;
  out.strip_prefix = text(from, "strip_prefix");
  if (from.contains("encoding")) out.encoding = word(from["encoding"], key_encoding_words, "key.encoding");
  if (from.contains("digest")) out.digest = word(from["digest"], hash_words, "key.digest");
  out.split = text(from, "split");
  if (from.contains("part")) out.part = small_number(from, "part", 0, 9);
  out.certificate_url_header = text(from, "certificate_url_header");
  if (from.contains("host_suffixes")) out.host_suffixes = names(from["host_suffixes"], "key.host_suffixes");
  out.id_header = text(from, "id_header");
  return out;
}

hash_choice read_hash_choice(const json& from) {
  only(from, {"header", "element", "map"}, "hash_from");
  hash_choice out;
  out.header = text(from, "header");
  out.element = text(from, "element");
  if (!from.contains("map") || !from["map"].is_object()) refuse("hash_from.map: not an object");
  for (const auto& [name, hash] : from["map"].items()) out.names.emplace(name, word(hash, hash_words, "hash_from.map"));
  return out;
}

body_hash_rule read_body_hash(const json& from) {
  only(from, {"query", "hash", "encoding", "unless_form"}, "body_hash");
  body_hash_rule out;
  out.query = text(from, "query");
  if (from.contains("hash")) out.hash = word(from["hash"], hash_words, "body_hash.hash");
  if (from.contains("encoding")) out.encoding = word(from["encoding"], signature_encoding_words, "body_hash.encoding");
  out.unless_form = flag(from, "unless_form");
  return out;
}

signature_rule read_signature(const json& from) {
  only(from,
       {"from", "names", "name", "repeat", "list", "pair", "element", "element_is_secret_part", "prefix", "encoding", "numbered",
        "max"},
       "signature");
  signature_rule out;
  if (from.contains("from")) out.from = word(from["from"], places, "signature.from");
  if (from.contains("names")) out.names = names(from["names"], "signature.names");
  if (from.contains("name")) out.names = names(from["name"], "signature.name");
  out.repeat = flag(from, "repeat");
  out.list = text(from, "list");
  out.pair = text(from, "pair");
  out.element = text(from, "element");
  out.prefix = text(from, "prefix");
  out.numbered = text(from, "numbered");
  if (from.contains("max")) out.max = small_number(from, "max", 1, 100);
  if (from.contains("element_is_secret_part")) out.element_is_secret_part = small_number(from, "element_is_secret_part", 0, 9);
  if (from.contains("encoding")) out.encoding = word(from["encoding"], signature_encoding_words, "signature.encoding");
  return out;
}

timestamp_rule read_timestamp(const json& from) {
  only(from, {"from", "name", "format", "tolerance_s"}, "timestamp");
  timestamp_rule out;
  if (from.contains("from")) out.from = word(from["from"], places, "timestamp.from");
  if (from.contains("name")) out.names = names(from["name"], "timestamp.name");
  if (from.contains("format")) out.format = word(from["format"], timestamp_format_words, "timestamp.format");
  const auto tolerance = from.find("tolerance_s");
  if (tolerance == from.end()) {
    out.tolerance = std::chrono::seconds(300);
  } else if (tolerance->is_number_integer()) {
    out.tolerance = std::chrono::seconds(tolerance->get<std::int64_t>());
  } else if (!tolerance->is_null()) {
    refuse("timestamp.tolerance_s: neither a number of seconds nor null");
  }
  return out;
}

content_part read_part(const json& from) {
  only(from,
       {"lit", "body", "timestamp", "method", "secret", "url", "header", "query", "json", "form", "body_crc32", "before", "after",
        "or_with", "lower", "optional", "default"},
       "content");
  content_part out;
  int sources = 0;
  const auto take = [&](const char* field, content_part::source what, bool named) {
    const auto at = from.find(field);
    if (at == from.end()) return;
    ++sources;
    out.what = what;
    if (named) {
      out.names = names(*at, field);
    } else if (!at->is_boolean() || !at->get<bool>()) {
      refuse(std::string("content: ") + field + " is not true");
    }
  };
  take("lit", content_part::source::literal, true);
  take("body", content_part::source::body, false);
  take("timestamp", content_part::source::timestamp, false);
  take("method", content_part::source::method, false);
  take("secret", content_part::source::secret, false);
  take("header", content_part::source::header, true);
  take("query", content_part::source::query, true);
  take("json", content_part::source::json, true);
  take("form", content_part::source::form, true);
  if (from.contains("url")) {
    ++sources;
    out.what = word(from["url"], url_forms, "content.url");
  }
  if (from.contains("body_crc32")) {
    ++sources;
    out.what = word(from["body_crc32"], checksums, "content.body_crc32");
  }
  if (sources != 1) refuse("content: a part has exactly one source");
  // Not a field of that name but all fields, sorted.
  if (out.what == content_part::source::form && out.names.front() == "sorted_name_value") {
    out.what = content_part::source::form_sorted;
    out.names.clear();
  }
  out.or_with = text(from, "or_with");
  out.before = text(from, "before");
  out.after = text(from, "after");
  out.lower = flag(from, "lower");
  out.optional = flag(from, "optional");
  if (from.contains("default")) out.fallback = text(from, "default");
  return out;
}

scheme read_scheme(std::string_view name, const json& from) {
  only(from,
       {"kind", "hash", "hash_from", "key", "signature", "timestamp", "content", "for_each", "url_variants", "body_hash",
        "replay_id"},
       "scheme");
  scheme out;
  out.name = name;
  if (from.contains("kind")) out.kind = word(from["kind"], kinds, "kind");
  if (from.contains("hash")) out.hash = word(from["hash"], hash_words, "hash");
  if (from.contains("hash_from")) out.hash_from = read_hash_choice(from["hash_from"]);
  if (from.contains("key")) out.key = read_key(from["key"]);
  if (from.contains("signature")) out.signature = read_signature(from["signature"]);
  if (from.contains("timestamp")) out.timestamp = read_timestamp(from["timestamp"]);
  if (from.contains("content")) {
    if (!from["content"].is_array()) refuse("content: not a list");
    for (const json& part : from["content"]) out.content.push_back(read_part(part));
  }
  out.for_each = text(from, "for_each");
  if (from.contains("url_variants")) {
    if (!from["url_variants"].is_array()) refuse("url_variants: not a list");
    for (const json& one : from["url_variants"]) out.url_variants.push_back(word(one, variants, "url_variants"));
  }
  if (from.contains("body_hash")) out.body_hash = read_body_hash(from["body_hash"]);
  if (from.contains("replay_id")) {
    const json& id = from["replay_id"];
    only(id, {"header", "json"}, "replay_id");
    if (id.contains("header")) out.replay_header = names(id["header"], "replay_id.header").front();
    if (id.contains("json")) out.replay_json = names(id["json"], "replay_id.json").front();
  }
  return out;
}

result<scheme> checked_scheme(std::string_view name, const json& from) {
  try {
    scheme out = read_scheme(name, from);
    if (auto fine = check_scheme(out); !fine) return fine.error();
    return out;
  } catch (const unsuitable& u) {
    return misconfigured(u.why);
  }
}

std::map<std::string, scheme, std::less<>> read_presets() {
  std::map<std::string, scheme, std::less<>> out;
  for (const embedded_file& file : embedded_presets()) {
    const json all = json::parse(file.content);
    for (const auto& [name, one] : all.items()) {
      if (auto read = checked_scheme(name, one)) out.emplace(name, std::move(*read));
    }
  }
  return out;
}

}  // namespace

const std::map<std::string, scheme, std::less<>>& presets() {
  static const std::map<std::string, scheme, std::less<>> all = read_presets();
  return all;
}

result<scheme> parse_scheme(std::string_view name, std::string_view text_of_json) {
  const json from = json::parse(text_of_json, nullptr, false);
  if (from.is_discarded()) return misconfigured("not JSON");
  return checked_scheme(name, from);
}

}  // namespace recibo::verify
