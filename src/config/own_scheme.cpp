// A scheme that starts from nothing: every key of the full form, and the short forms of the common case.
#include "scheme_reader.hpp"

#include "recibo/verify/verifier.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

using verify::content_part;
using part_source = content_part::source;

constexpr choice<verify::hash_name> hashes[] = {{"sha1", verify::hash_name::sha1},
                                                {"sha256", verify::hash_name::sha256},
                                                {"sha384", verify::hash_name::sha384},
                                                {"sha512", verify::hash_name::sha512}};
constexpr choice<verify::signature_encoding> signature_encodings[] = {{"hex", verify::signature_encoding::hex},
                                                                      {"base64", verify::signature_encoding::base64},
                                                                      {"base64url", verify::signature_encoding::base64url},
                                                                      {"text", verify::signature_encoding::text}};
constexpr choice<verify::text_encoding> key_encodings[] = {
    {"utf8", verify::text_encoding::utf8}, {"base64", verify::text_encoding::base64}, {"hex", verify::text_encoding::hex}};
constexpr choice<verify::place> signature_places[] = {
    {"header", verify::place::header}, {"json", verify::place::json}, {"form", verify::place::form}};
constexpr choice<verify::place> timestamp_places[] = {
    {"header", verify::place::header}, {"json", verify::place::json}, {"element", verify::place::element}};
constexpr choice<verify::timestamp_format> formats[] = {{"unix_s", verify::timestamp_format::unix_s},
                                                        {"unix_ms", verify::timestamp_format::unix_ms},
                                                        {"unix_any", verify::timestamp_format::unix_any},
                                                        {"rfc3339", verify::timestamp_format::rfc3339}};
constexpr choice<verify::timestamp_format> units[] = {{"seconds", verify::timestamp_format::unix_s},
                                                      {"milliseconds", verify::timestamp_format::unix_ms},
                                                      {"rfc3339", verify::timestamp_format::rfc3339}};

// A name in the form that its place asks for.
bool read_place_name(reading& r, const field& f, verify::place from, std::string& out) {
  if (!read_text(r, f, out, 255)) return false;
  if (from == verify::place::header) {
    out = header_name(out);
    if (out.empty()) r.error(f.at, std::string(f.name) + ": this is no name of an HTTP header");
    return !out.empty();
  }
  if (from == verify::place::json && !is_pointer(out)) {
    r.error(f.at, std::string(f.name) + ": a JSON Pointer begins with \"/\"");
    return false;
  }
  return true;
}

bool read_place_names(reading& r, const field& f, verify::place from, std::vector<std::string>& out) {
  bool good = static_cast<bool>(f);
  for (const field& one : elements(r, f, true)) {
    std::string name;
    if (read_place_name(r, one, from, name)) {
      out.push_back(std::move(name));
    } else {
      good = false;
    }
  }
  return good && !out.empty();
}

void read_key_rule(reading& r, const field& f, verify::key_rule& out) {
  section s(r, f);
  if (const field prefix = s.get("strip_prefix")) read_text(r, prefix, out.strip_prefix, 63);
  if (const field encoding = s.get("encoding")) {
    if (encoding.value->text == "pem" && encoding.value->what == node::kind::scalar) {
      r.error(encoding.at, "encoding: pem is " + std::string(not_served_text));
    } else {
      read_word(r, encoding, out.encoding, key_encodings);
    }
  }
  for (const auto key : {"digest", "split", "part", "certificate_url_header", "host_suffixes"}) s.not_served(key);
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
  const field pair = s.get("pair"), element = s.get("element");
  if (pair) read_text(r, pair, out.pair, 1);
  if (element) read_text(r, element, out.element, 63);
  if (s.has("pair") != s.has("element")) r.error(s.at(), "signature: pair and element belong together");
  if (const field prefix = s.get("prefix")) read_text(r, prefix, out.prefix, 63);
  if (const field encoding = s.get("encoding")) read_word(r, encoding, out.encoding, signature_encodings);
  s.not_served("element_is_secret_part");
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
  if (format) read_word(r, format, out.format, formats);
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

void read_part(reading& r, const field& f, std::vector<content_part>& out) {
  section s(r, f);
  if (!s.good()) return;
  content_part part;
  int sources = 0;
  for (const auto& [key, what] : {std::pair{"body", part_source::body},
                                  {"timestamp", part_source::timestamp},
                                  {"method", part_source::method},
                                  {"secret", part_source::secret}}) {
    const field flag = s.get(key);
    if (s.has(key)) ++sources;
    if (!flag) continue;
    bool on = false;
    if (read_bool(r, flag, on) && !on) r.error(flag.at, std::string(key) + ": only true makes sense here");
    part.what = what;
  }
  const auto take_named = [&](std::string_view key, part_source what, verify::place place) {
    const field names = s.get(key);
    if (s.has(key)) ++sources;
    if (!names) return;
    part.what = what;
    read_place_names(r, names, place, part.names);
  };
  take_named("header", part_source::header, verify::place::header);
  take_named("json", part_source::json, verify::place::json);
  take_named("query", part_source::query, verify::place::form);
  take_named("form", part_source::form, verify::place::form);
  if (part.what == part_source::form && !part.names.empty() && part.names.front() == "sorted_name_value")
    r.error(s.key_at("form"), "form: sorted_name_value is " + std::string(not_served_text));
  if (const field lit = s.get("lit")) {
    std::string text;
    if (read_text(r, lit, text, 255)) part.names = {text};
    part.what = part_source::literal;
  }
  if (s.has("lit")) ++sources;
  if (const field url = s.get("url")) {
    constexpr choice<part_source> urls[] = {{"full", part_source::url}, {"hubspot_decoded", part_source::url_hubspot}};
    if (url.value->what == node::kind::scalar && url.value->text == "plivo") {
      r.error(url.at, "url: plivo is " + std::string(not_served_text));
    } else {
      read_word(r, url, part.what, urls);
    }
  }
  if (s.has("url")) ++sources;
  s.not_served("body_crc32");
  if (const field before = s.get("before")) read_text(r, before, part.before, 255);
  if (const field after = s.get("after")) read_text(r, after, part.after, 255);
  if (const field lower = s.get("lower")) read_bool(r, lower, part.lower);
  if (const field optional = s.get("optional")) read_bool(r, optional, part.optional);
  if (const field fallback = s.get("default")) {
    // The empty text is what a default usually is.
    if (fallback.value->what == node::kind::scalar && fallback.value->text.empty()) {
      part.fallback.emplace();
    } else if (std::string text; read_text(r, fallback, text, 255)) {
      part.fallback = text;
    }
  }
  if (sources != 1 && !s.has("body_crc32"))
    r.error(s.at(), "content: a part has exactly one of lit, body, timestamp, method, secret, url, header, query, json and form");
  out.push_back(std::move(part));
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

}  // namespace

bool read_own_scheme(reading& r, section& s, verify::scheme& scheme) {
  const std::size_t before = r.problems.size();
  const field algorithm = s.get("algorithm"), hash = s.get("hash");
  if (s.has("algorithm") && s.has("hash")) r.error(s.key_at("hash"), "hash: the same as algorithm; give one of them");
  if (algorithm) read_word(r, algorithm, scheme.hash, hashes);
  if (hash) read_word(r, hash, scheme.hash, hashes);
  if (const field key = s.get("key")) read_key_rule(r, key, scheme.key);
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
  for (const auto key : {"hash_from", "for_each", "url_variants", "body_hash"}) s.not_served(key);
  if (r.problems.size() != before) return false;
  // What the checks above do not know, the module that verifies does.
  if (const auto fine = verify::check_scheme(scheme); !fine) {
    r.error(s.at(), "verify: " + fine.error().detail);
    return false;
  }
  return true;
}

}  // namespace recibo::config
