// Scalars as values: text, numbers, durations, sizes, instants, words, URLs.
#include "reader.hpp"
#include "units.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace recibo::config {
namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Whether a plain scalar is a number or a boolean to readers of YAML 1.2 (core schema), and so is no text.
bool resolves(std::string_view text) noexcept {
  for (const auto word : {"true", "True", "TRUE", "false", "False", "FALSE"})
    if (text == word) return true;
  if (text.starts_with("0x") || text.starts_with("0o"))
    return text.size() > 2 && text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos;
  std::string_view rest = text;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) rest.remove_prefix(1);
  for (const auto word : {".inf", ".Inf", ".INF", ".nan", ".NaN", ".NAN"})
    if (rest == word) return true;
  std::size_t i = 0;
  const auto digits = [&] {
    const std::size_t start = i;
    while (i < rest.size() && is_digit(rest[i])) ++i;
    return i - start;
  };
  std::size_t mantissa = digits();
  if (i < rest.size() && rest[i] == '.') {
    ++i;
    mantissa += digits();
  }
  if (mantissa == 0) return false;
  if (i < rest.size() && (rest[i] == 'e' || rest[i] == 'E')) {
    ++i;
    if (i < rest.size() && (rest[i] == '-' || rest[i] == '+')) ++i;
    if (digits() == 0) return false;
  }
  return i == rest.size();
}

bool is_scalar(reading& r, const field& f, std::string_view expected) {
  if (!f || f.value->what == node::kind::broken) return false;
  if (f.value->what == node::kind::scalar) return true;
  r.error(f.at, std::string(f.name) + ": expected " + std::string(expected) + ", found " + found(*f.value));
  return false;
}

// The scalar may be something else than text: written plainly, or (partly) from the environment.
bool may_be_number(const node& n) noexcept { return n.plain || n.expanded; }

// A word in quotes is text, and a number in quotes is no number: other readers of YAML see it so.
std::string quotes_hint(const node& n) { return !may_be_number(n) && resolves(n.text) ? " in quotes, which makes it text" : ""; }

std::optional<std::chrono::milliseconds> duration(reading& r, const field& f, std::string_view least, std::string_view most) {
  if (!is_scalar(r, f, "a duration")) return std::nullopt;
  const auto value = parse_duration(f.value->text);
  if (!value) {
    mismatch(r, f, "a duration with its unit, such as 500ms, 30s, 5m, 12h or 90d");
    return std::nullopt;
  }
  if (*value < parse_duration(least) || *value > parse_duration(most)) {
    mismatch(r, f, "a duration from " + std::string(least) + " to " + std::string(most));
    return std::nullopt;
  }
  return value;
}

}  // namespace

bool is_no_text(const node& n) noexcept { return n.what == node::kind::scalar && n.plain && !n.expanded && resolves(n.text); }

bool read_text(reading& r, const field& f, std::string& out, std::size_t longest) {
  if (!is_scalar(r, f, "text")) return false;
  const node& n = *f.value;
  if (is_no_text(n)) {
    r.error(f.at, std::string(f.name) + ": expected text, found " + n.text + " without quotes, which is a number or a boolean");
    return false;
  }
  if (n.text.empty()) {
    r.error(f.at, std::string(f.name) + ": this text is empty");
    return false;
  }
  if (n.text.size() > longest) {
    r.error(f.at, std::string(f.name) + ": longer than " + std::to_string(longest) + " bytes");
    return false;
  }
  for (const char c : n.text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      r.error(f.at, std::string(f.name) + ": holds a control character or a line break");
      return false;
    }
  }
  out = n.text;
  return true;
}

bool read_bool(reading& r, const field& f, bool& out) {
  if (!is_scalar(r, f, "true or false")) return false;
  const node& n = *f.value;
  if (may_be_number(n) && (n.text == "true" || n.text == "false")) {
    out = n.text == "true";
    return true;
  }
  mismatch(r, f, "true or false");
  return false;
}

bool read_integer(reading& r, const field& f, std::int64_t& out, std::int64_t least, std::int64_t most) {
  const std::string expected = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  if (!is_scalar(r, f, expected)) return false;
  const std::string& text = f.value->text;
  std::int64_t value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc{} || end != text.data() + text.size() || value < least || value > most || !may_be_number(*f.value)) {
    r.error(f.at, std::string(f.name) + ": expected " + expected + ", found " + found(*f.value) + quotes_hint(*f.value));
    return false;
  }
  out = value;
  return true;
}

bool read_number(reading& r, const field& f, double& out, double least, double most) {
  const auto show = [](double d) {
    std::string text = std::to_string(d);
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    return text;
  };
  const std::string expected = "a number from " + show(least) + " to " + show(most);
  if (!is_scalar(r, f, expected)) return false;
  const std::string& text = f.value->text;
  double value = 0;
  const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (bad != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value < least || value > most ||
      !may_be_number(*f.value)) {
    r.error(f.at, std::string(f.name) + ": expected " + expected + ", found " + found(*f.value) + quotes_hint(*f.value));
    return false;
  }
  out = value;
  return true;
}

bool read_time(reading& r, const field& f, sys_micros& out) {
  if (!is_scalar(r, f, "an instant")) return false;
  const auto at = parse_rfc3339(f.value->text);
  if (!at) {
    mismatch(r, f, "an instant with its offset, such as 2027-01-31T00:00:00Z");
    return false;
  }
  out = *at;
  return true;
}

bool read_duration(reading& r, const field& f, std::chrono::milliseconds& out, std::string_view least, std::string_view most) {
  const auto value = duration(r, f, least, most);
  if (value) out = *value;
  return value.has_value();
}

bool read_duration(reading& r, const field& f, std::chrono::seconds& out, std::string_view least, std::string_view most) {
  const auto value = duration(r, f, least, most);
  if (!value) return false;
  if (value->count() % 1000 != 0) {
    mismatch(r, f, "whole seconds");
    return false;
  }
  out = std::chrono::duration_cast<std::chrono::seconds>(*value);
  return true;
}

bool read_size(reading& r, const field& f, std::size_t& out, std::string_view least, std::string_view most) {
  if (!is_scalar(r, f, "a size")) return false;
  const auto value = parse_size(f.value->text);
  if (!value) {
    mismatch(r, f, "a size with its unit, such as 512B, 8KiB, 1MiB or 1GiB");
    return false;
  }
  if (*value < *parse_size(least) || *value > *parse_size(most)) {
    mismatch(r, f, "a size from " + std::string(least) + " to " + std::string(most));
    return false;
  }
  out = static_cast<std::size_t>(*value);
  return true;
}

bool read_choice(reading& r, const field& f, std::span<const std::string_view> words, std::size_t& index) {
  if (!is_scalar(r, f, either(words))) return false;
  const auto it = std::find(words.begin(), words.end(), std::string_view(f.value->text));
  if (it == words.end()) {
    const std::string near = f.value->expanded ? std::string{} : did_you_mean(f.value->text, words);
    r.error(f.at, std::string(f.name) + ": expected " + either(words) + ", found " + found(*f.value) + near);
    return false;
  }
  index = static_cast<std::size_t>(it - words.begin());
  return true;
}

bool check_name(reading& r, position at, std::string_view what, std::string_view name) {
  bool good = !name.empty() && name.size() <= 63 && name.front() != '-' && name.front() != '_';
  for (const char c : name) good = good && (is_digit(c) || (c >= 'a' && c <= 'z') || c == '_' || c == '-');
  if (!good)
    r.error(at, std::string(what) + " " + in_quotes(name) +
                    ": a name has 1 to 63 characters of a-z, 0-9, \"_\" and \"-\", and begins with a letter or digit");
  return good;
}

void read_networks(reading& r, const field& f, const std::function<void(const field& one, const network& n)>& take) {
  for (const field& one : elements(r, f)) {
    std::string text;
    if (!read_text(r, one, text, 63)) continue;
    if (const auto n = parse_network(text)) {
      take(one, *n);
    } else {
      r.error(one.at, std::string(f.name) + ": expected a network such as 10.0.0.0/8 or fd00::/8, with zeros behind its prefix");
    }
  }
}

bool read_http_url(reading& r, const field& f, std::string& out, http_url* parts) {
  std::string text;
  if (!read_text(r, f, text, 2048)) return false;
  auto parsed = parse_http_url(text);
  if (!parsed.url) {
    r.error(f.at, std::string(f.name) + ": not a URL that can be used: " + parsed.why);
    return false;
  }
  out = std::move(text);
  if (parts != nullptr) *parts = std::move(*parsed.url);
  return true;
}

}  // namespace recibo::config
