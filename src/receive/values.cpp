#include "values.hpp"

#include "recibo/core/json.hpp"
#include "recibo/core/utf8.hpp"
#include "recibo/receive/extract.hpp"

#include <algorithm>
#include <charconv>

namespace recibo::receive {

using verify::pointed_value;

bool is_blank(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); });
}

bool is_container(const pointed_value& found) noexcept {
  return found.kind == json_value::kind::object || found.kind == json_value::kind::array;
}

result<sys_micros> read_instant(const pointed_value& from, verify::timestamp_format format) {
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

result<std::int64_t> read_sequence(std::string_view text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  const auto read = std::from_chars(text.data(), end, number);
  if (!digits || read.ec != std::errc() || read.ptr != end)
    return error(permanent::malformed_field, "not an integer from 0 to 9223372036854775807");
  return number;
}

std::string join_word(const std::vector<std::string>& parts) {
  if (parts.size() == 1) return parts.front();
  std::string out;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) out += '/';
    for (const char c : part) {
      if (c == '~' || c == '/') {
        out += c == '~' ? "~0" : "~1";
      } else {
        out += c;
      }
    }
  }
  return out;
}

std::optional<std::vector<std::string>> split_word(std::string_view word, std::size_t count) {
  std::vector<std::string> out(1);
  if (count == 1) {
    out.front() = word;
    return out;
  }
  for (std::size_t i = 0; i < word.size(); ++i) {
    const bool escape = word[i] == '~' && i + 1 < word.size() && (word[i + 1] == '0' || word[i + 1] == '1');
    if (word[i] == '/') {
      out.emplace_back();
    } else {
      out.back() += !escape ? word[i] : word[i + 1] == '0' ? '~' : '/';
      if (escape) ++i;
    }
  }
  if (out.size() != count) return std::nullopt;
  return out;
}

bool result_text::add(std::string_view name, const pointed_value& found) {
  if (found.text.size() > result_max) return false;
  const bool text = found.kind == json_value::kind::string;
  // A header or form field may hold any bytes; a container beyond the bound of the reader has none.
  if (text && (!is_utf8(found.text) || found.text.find('\0') != std::string::npos)) return false;
  if (is_container(found) && found.text.empty()) return false;
  if (json_.size() > 1) json_ += ',';
  append_json_string(json_, name);
  json_ += ':';
  if (text) {
    append_json_string(json_, found.text);
  } else {
    json_ += found.text;
  }
  return true;
}

result<std::string> result_text::take() {
  auto one_text = canonical_json(json_ + '}');
  if (!one_text || one_text->size() > result_max)
    return error(permanent::malformed_field, "longer than 4096 bytes, or a number of too many digits");
  return std::move(*one_text);
}

}  // namespace recibo::receive
