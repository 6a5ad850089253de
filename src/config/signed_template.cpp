#include "scheme_reader.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

using part_source = verify::content_part::source;

struct part_name {
  std::string_view word;
  part_source what;
  bool named;  // followed by ":name"
};

constexpr part_name parts[] = {
    {"body", part_source::body, false},     {"timestamp", part_source::timestamp, false},
    {"method", part_source::method, false}, {"url", part_source::url, false},
    {"secret", part_source::secret, false}, {"header", part_source::header, true},
    {"query", part_source::query, true},    {"json", part_source::json, true},
    {"form", part_source::form, true},
};

std::optional<std::string> add_part(std::string_view inside, std::vector<verify::content_part>& out) {
  const std::size_t colon = inside.find(':');
  const std::string_view word = inside.substr(0, colon);
  const auto it = std::find_if(std::begin(parts), std::end(parts), [&](const part_name& p) { return p.word == word; });
  const std::string shown = in_quotes("{" + std::string(inside) + "}");
  if (it == std::end(parts))
    return "unknown part " + shown +
           "; there are {body}, {timestamp}, {method}, {url}, {secret}, {header:name}, {query:name}, {json:/pointer} and "
           "{form:name}";
  if (it->named != (colon != std::string_view::npos))
    return shown + (it->named ? " needs a name behind a colon" : " takes no name");
  verify::content_part part;
  part.what = it->what;
  if (it->named) {
    std::string name(inside.substr(colon + 1));
    if (it->what == part_source::header) name = header_name(name);
    if (name.empty()) return shown + ": this is no name";
    if (it->what == part_source::json && !is_pointer(name)) return shown + ": a JSON Pointer begins with \"/\"";
    part.names.push_back(std::move(name));
  }
  out.push_back(std::move(part));
  return std::nullopt;
}

}  // namespace

std::optional<std::string> parse_signed_template(std::string_view text, std::vector<verify::content_part>& out) {
  std::string literal;
  const auto flush = [&] {
    if (literal.empty()) return;
    verify::content_part part;
    part.what = part_source::literal;
    part.names.push_back(std::move(literal));
    out.push_back(std::move(part));
    literal.clear();
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      literal += c;
      ++i;
    } else if (c == '{') {
      const std::size_t end = text.find('}', i);
      if (end == std::string_view::npos) return "\"{\" is never closed; a literal one is written \"{{\"";
      flush();
      if (auto why = add_part(text.substr(i + 1, end - i - 1), out)) return why;
      i = end;
    } else if (c == '}') {
      return "\"}\" without \"{\"; a literal one is written \"}}\"";
    } else {
      literal += c;
    }
  }
  flush();
  return std::nullopt;
}

std::string header_name(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !(c >= '0' && c <= '9') && std::string_view("!#$%&'*+-.^_`|~").find(c) == std::string_view::npos) return {};
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

bool is_pointer(std::string_view text) noexcept {
  if (text.empty() || text.front() != '/') return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '~' && (i + 1 == text.size() || (text[i + 1] != '0' && text[i + 1] != '1'))) return false;
  return true;
}

}  // namespace recibo::config
