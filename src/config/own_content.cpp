// `content` of a scheme that starts from nothing: what is signed, part by part.
#include "own_scheme.hpp"
#include "scheme_reader.hpp"

namespace recibo::config {
namespace {

using verify::content_part;
using part_source = content_part::source;

// Unlike other texts this one may be a line end, which is what forms lose.
void read_text_with_breaks(reading& r, const field& f, std::string& out) {
  if (f.value->what == node::kind::scalar && !f.value->text.empty() && f.value->text.size() <= 8 &&
      f.value->text.find_first_not_of("\r\n") == std::string::npos) {
    out = f.value->text;
  } else {
    read_text(r, f, out, 8);
  }
}

}  // namespace

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
  // Not a field of that name but every field.
  if (part.what == part_source::form && !part.names.empty() && part.names.front() == "sorted_name_value") {
    part.what = part_source::form_sorted;
    part.names.clear();
  }
  if (const field lit = s.get("lit")) {
    std::string text;
    if (read_text(r, lit, text, 255)) part.names = {text};
    part.what = part_source::literal;
  }
  if (s.has("lit")) ++sources;
  if (const field url = s.get("url")) {
    constexpr choice<part_source> urls[] = {
        {"full", part_source::url}, {"hubspot_decoded", part_source::url_hubspot}, {"plivo", part_source::url_plivo}};
    read_word(r, url, part.what, urls);
  }
  if (s.has("url")) ++sources;
  if (const field checksum = s.get("body_crc32")) {
    constexpr choice<part_source> checksums[] = {{"decimal", part_source::body_crc32}};
    read_word(r, checksum, part.what, checksums);
  }
  if (s.has("body_crc32")) ++sources;
  if (const field before = s.get("before")) read_text(r, before, part.before, 255);
  if (const field after = s.get("after")) read_text(r, after, part.after, 255);
  if (const field also = s.get("or_with")) read_text_with_breaks(r, also, part.or_with);
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
  if (sources != 1)
    r.error(s.at(),
            "content: a part has exactly one of lit, body, timestamp, method, secret, url, header, query, json, form and "
            "body_crc32");
  out.push_back(std::move(part));
}

}  // namespace recibo::config
