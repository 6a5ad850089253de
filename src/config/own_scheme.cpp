// A scheme that starts from nothing: every key of the full form, and the short forms of the common case.
#include "own_scheme.hpp"
#include "scheme_reader.hpp"

#include "recibo/verify/verifier.hpp"
#include "recibo/verify/words.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

using verify::content_part;
using part_source = content_part::source;

constexpr choice<verify::place> signature_places[] = {
    {"header", verify::place::header}, {"json", verify::place::json}, {"form", verify::place::form}};
constexpr choice<verify::place> timestamp_places[] = {
    {"header", verify::place::header}, {"json", verify::place::json}, {"element", verify::place::element}};
constexpr choice<verify::timestamp_format> units[] = {{"seconds", verify::timestamp_format::unix_s},
                                                      {"milliseconds", verify::timestamp_format::unix_ms},
                                                      {"rfc3339", verify::timestamp_format::rfc3339}};

// Whether the secret is the provider's public key.
bool is_public(verify::scheme_kind kind) noexcept {
  return kind == verify::scheme_kind::ed25519 || kind == verify::scheme_kind::ecdsa || kind == verify::scheme_kind::rsa;
}

void read_key_rule(reading& r, const field& f, const verify::scheme& scheme, verify::key_rule& out) {
  section s(r, f);
  if (const field prefix = s.get("strip_prefix")) read_text(r, prefix, out.strip_prefix, 63);
  if (const field encoding = s.get("encoding"); encoding && read_word(r, encoding, out.encoding, verify::key_encoding_words)) {
    if (out.encoding == verify::text_encoding::pem && !is_public(scheme.kind))
      r.error(encoding.at, "encoding: pem is for public keys, and this kind has a shared secret");
    const bool is_text = out.encoding == verify::text_encoding::utf8 || out.encoding == verify::text_encoding::html;
    if (is_text && is_public(scheme.kind)) r.error(encoding.at, "encoding: a public key is pem, base64 or hex");
  }
  const field digest = s.get("digest"), split = s.get("split"), part = s.get("part");
  verify::hash_name hash{};
  if (digest && read_word(r, digest, hash, verify::hash_words)) out.digest = hash;
  if (split) read_text(r, split, out.split, 1);
  if (part) read_int(r, part, out.part, 0, 9);
  if (part && !s.has("split")) r.error(part.at, "part: belongs to split");
  for (const field& one : {digest, split}) {
    if (one && is_public(scheme.kind)) r.error(one.at, std::string(one.name) + ": belongs to shared secrets");
  }
  if (const field url = s.get("certificate_url_header"))
    read_place_name(r, url, verify::place::header, out.certificate_url_header);
  for (const field& one : elements(r, s.get("host_suffixes"), true)) {
    if (std::string text; read_text(r, one, text, 253)) out.host_suffixes.push_back(std::move(text));
  }
  if (s.has("certificate_url_header") != s.has("host_suffixes"))
    r.error(s.at(), "key: certificate_url_header and host_suffixes belong together: whose hosts a certificate is taken from");
}

bool read_signature(reading& r, const field& f, verify::scheme& scheme) {
  verify::signature_rule& out = scheme.signature;
  if (scheme.kind == verify::scheme_kind::token) out.encoding = verify::signature_encoding::text;
  section s(r, f);
  if (!s.good()) return false;
  if (const field from = s.get("from")) read_word(r, from, out.from, signature_places);
  const field header = s.get("header"), names = s.get("names"), name = s.get("name"), numbered = s.get("numbered");
  bool named = false;
  if (int{s.has("header")} + int{s.has("names")} + int{s.has("name")} + int{s.has("numbered")} != 1) {
    r.error(s.at(), "signature: give exactly one of header, names, name and numbered");
  } else if (numbered) {
    if (out.from != verify::place::header) r.error(numbered.at, "numbered: contradicts from");
    named = read_place_name(r, numbered, verify::place::header, out.numbered);
    out.max = 100;
  } else if (header) {
    if (out.from != verify::place::header) r.error(header.at, "header: contradicts from");
    named = read_place_names(r, header, verify::place::header, out.names);
  } else {
    named = read_place_names(r, names ? names : name, out.from, out.names);
  }
  if (const field max = s.get("max")) {
    read_int(r, max, out.max, 1, 100);
    if (!s.has("numbered")) r.error(max.at, "max: belongs to numbered");
  }
  if (const field repeat = s.get("repeat")) read_bool(r, repeat, out.repeat);
  if (const field list = s.get("list")) read_text(r, list, out.list, 1);
  const field pair = s.get("pair"), element = s.get("element"), part = s.get("element_is_secret_part");
  if (pair) read_text(r, pair, out.pair, 1);
  if (element) read_text(r, element, out.element, 63);
  if (part) read_int(r, part, out.element_is_secret_part.emplace(), 0, 9);
  if (s.has("pair") != (s.has("element") || s.has("element_is_secret_part")))
    r.error(s.at(), "signature: pair and element belong together");
  if (s.has("element") && s.has("element_is_secret_part"))
    r.error(s.key_at("element_is_secret_part"), "element_is_secret_part: in place of element; give one of them");
  if (const field prefix = s.get("prefix")) read_text(r, prefix, out.prefix, 63);
  if (const field encoding = s.get("encoding")) read_word(r, encoding, out.encoding, verify::signature_encoding_words);
  return named;
}

void read_timestamp(reading& r, const field& f, verify::scheme& scheme) {
  verify::timestamp_rule out;
  out.tolerance = verify::tolerance_default;
  section s(r, f);
  if (!s.good()) return;
  if (const field from = s.get("from")) read_word(r, from, out.from, timestamp_places);
  const field header = s.get("header"), name = s.get("name");
  if (s.has("header") == s.has("name")) {
    r.error(s.at(), "timestamp: give exactly one of header and name");
  } else if (header && out.from != verify::place::header) {
    r.error(header.at, "header: contradicts from");
  } else {
    read_place_names(r, header ? header : name, out.from, out.names);
  }
  const field unit = s.get("unit"), format = s.get("format");
  if (s.has("unit") && s.has("format")) r.error(s.key_at("format"), "format: the same as unit; give one of them");
  if (unit) read_word(r, unit, out.format, units);
  if (format) read_word(r, format, out.format, verify::timestamp_format_words);
  if (out.format == verify::timestamp_format::unix_any) out.tolerance.reset();
  if (const field tolerance = s.get("tolerance_s")) {
    std::int64_t seconds = 0;
    if (read_integer(r, tolerance, seconds, 1, 86'400)) {
      out.tolerance = std::chrono::seconds(seconds);
      if (out.format == verify::timestamp_format::unix_any) r.error(tolerance.at, "tolerance_s: unix_any is never judged by age");
    }
  }
  scheme.timestamp = std::move(out);
}

bool has_part(const verify::scheme& scheme, part_source what) {
  return std::any_of(scheme.content.begin(), scheme.content.end(), [&](const content_part& p) { return p.what == what; });
}

void read_content(reading& r, section& s, verify::scheme& scheme) {
  const field signed_text = s.get("signed"), content = s.get("content");
  if (scheme.kind == verify::scheme_kind::token) {
    for (const auto key : {"signed", "content", "timestamp", "algorithm", "hash"})
      if (s.has(key)) r.error(s.key_at(key), std::string(key) + ": a token signs nothing; this belongs to hmac and hash");
    return;
  }
  if (s.has("signed") == s.has("content")) {
    r.error(s.at(), "verify: give exactly one of signed and content, which say what is signed");
    return;
  }
  std::string text;
  if (signed_text && read_text(r, signed_text, text, 1024)) {
    if (const auto why = parse_signed_template(text, scheme.content))
      r.error(signed_text.at, "signed: " + (signed_text.value->expanded ? "cannot be read as a template" : *why));
  }
  for (const field& part : elements(r, content)) read_part(r, part, scheme.content);
  const position at = signed_text ? signed_text.at : content.at;
  const bool literals_only = std::all_of(scheme.content.begin(), scheme.content.end(), [](const content_part& p) {
    return p.what == part_source::literal || p.what == part_source::secret;
  });
  if (!scheme.content.empty() && literals_only) r.error(at, "verify: nothing of the request is signed");
  if (!scheme.content.empty() && scheme.kind == verify::scheme_kind::hash && !has_part(scheme, part_source::secret))
    r.error(at, "verify: a plain hash without {secret} in it can be made by anybody");
  const bool times = has_part(scheme, part_source::timestamp);
  if (times && !s.has("timestamp")) r.error(at, "verify: {timestamp} is signed, and timestamp does not say where it stands");
  if (!times && scheme.timestamp && !(scheme.timestamp->from == verify::place::json && scheme.covers_body()))
    r.warn(s.key_at("timestamp"), "timestamp: it is not among what is signed, so it proves nothing about age");
}

void read_hash_from(reading& r, const field& f, verify::scheme& scheme) {
  verify::hash_choice out;
  section s(r, f);
  if (!s.good()) return;
  if (const field header = s.require("header", "which header names the algorithm"))
    read_place_name(r, header, verify::place::header, out.header);
  if (const field element = s.get("element")) read_text(r, element, out.element, 63);
  for (const named& one : members(r, s.require("map", "which names mean which algorithm"))) {
    verify::hash_name hash{};
    if (read_word(r, one.value, hash, verify::hash_words)) out.names.emplace(std::string(one.name), hash);
  }
  if (out.names.empty()) r.error(s.at(), "hash_from: the map is empty, so that no name would be accepted");
  scheme.hash_from = std::move(out);
}

void read_body_hash(reading& r, const field& f, verify::scheme& scheme) {
  constexpr choice<verify::signature_encoding> encodings[] = {{"hex", verify::signature_encoding::hex},
                                                              {"base64", verify::signature_encoding::base64},
                                                              {"base64url", verify::signature_encoding::base64url}};
  verify::body_hash_rule out;
  section s(r, f);
  if (!s.good()) return;
  if (const field query = s.require("query", "which field of the query holds the hash")) read_text(r, query, out.query, 63);
  if (const field hash = s.get("hash")) read_word(r, hash, out.hash, verify::hash_words);
  if (const field encoding = s.get("encoding")) read_word(r, encoding, out.encoding, encodings);
  if (const field unless = s.get("unless_form")) read_bool(r, unless, out.unless_form);
  scheme.body_hash = std::move(out);
}

void read_url_variants(reading& r, const field& f, verify::scheme& scheme) {
  constexpr choice<verify::url_variant> variants[] = {{"no_port", verify::url_variant::no_port},
                                                      {"default_port", verify::url_variant::default_port}};
  for (const field& one : elements(r, f, true)) {
    verify::url_variant variant{};
    if (read_word(r, one, variant, variants)) scheme.url_variants.push_back(variant);
  }
}

void read_for_each(reading& r, const field& f, verify::scheme& scheme) {
  if (!read_text(r, f, scheme.for_each, 255)) return;
  if (!is_pointer(scheme.for_each)) r.error(f.at, "for_each: a JSON Pointer begins with \"/\"");
}

}  // namespace

bool read_own_scheme(reading& r, section& s, verify::scheme& scheme) {
  const std::size_t before = r.problems.size();
  const field algorithm = s.get("algorithm"), hash = s.get("hash");
  if (s.has("algorithm") && s.has("hash")) r.error(s.key_at("hash"), "hash: the same as algorithm; give one of them");
  if (algorithm) read_word(r, algorithm, scheme.hash, verify::hash_words);
  if (hash) read_word(r, hash, scheme.hash, verify::hash_words);
  for (const field& one : {algorithm, hash}) {
    if (one && scheme.kind == verify::scheme_kind::ed25519)
      r.error(one.key, std::string(one.name) + ": Ed25519 has a hash of its own");
  }
  if (is_public(scheme.kind)) scheme.key.encoding = verify::text_encoding::pem;
  if (const field key = s.get("key")) read_key_rule(r, key, scheme, scheme.key);
  if (const field signature = s.require("signature", "where the request carries it")) read_signature(r, signature, scheme);
  if (const field timestamp = s.get("timestamp")) read_timestamp(r, timestamp, scheme);
  read_content(r, s, scheme);
  if (const field replay = s.get("replay_id")) {
    section id(r, replay);
    std::string name;
    if (const field header = id.get("header"); header && read_place_name(r, header, verify::place::header, name))
      scheme.replay_header = name;
    if (const field json = id.get("json"); json && read_place_name(r, json, verify::place::json, name)) scheme.replay_json = name;
  }
  if (const field choice = s.get("hash_from")) read_hash_from(r, choice, scheme);
  if (const field each = s.get("for_each")) read_for_each(r, each, scheme);
  if (const field variants = s.get("url_variants")) read_url_variants(r, variants, scheme);
  if (const field body = s.get("body_hash")) read_body_hash(r, body, scheme);
  if (r.problems.size() != before) return false;
  // What the checks above do not know, the module that verifies does.
  if (const auto fine = verify::check_scheme(scheme); !fine) {
    r.error(s.at(), "verify: " + fine.error().detail);
    return false;
  }
  return true;
}

}  // namespace recibo::config
