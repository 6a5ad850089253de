#include "recibo/http/preconditions.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>

namespace recibo::http {
namespace {

void skip_ows(std::string_view& text) noexcept { text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size())); }

// etagc: visible characters but the quote, and bytes beyond ASCII.
bool is_tag_char(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0x21 || (byte >= 0x23 && byte != 0x7f);
}

// [ W/ ] DQUOTE *etagc DQUOTE at the front of the text.
bool read_tag(std::string_view& text, std::vector<std::string>& strong) {
  const bool weak = text.starts_with("W/");
  if (weak) text.remove_prefix(2);
  if (!text.starts_with('"')) return false;
  const auto end = text.find('"', 1);
  if (end == std::string_view::npos) return false;
  const std::string_view tag = text.substr(1, end - 1);
  if (!std::all_of(tag.begin(), tag.end(), is_tag_char)) return false;
  if (!weak) strong.emplace_back(tag);
  text.remove_prefix(end + 1);
  return true;
}

// Tags between commas; empty elements are allowed (RFC 9110 section 5.6.1).
bool read_tags(std::string_view text, std::vector<std::string>& strong, bool& some) {
  for (;;) {
    skip_ows(text);
    if (text.empty()) return true;
    if (!text.starts_with(',')) {
      if (!read_tag(text, strong)) return false;
      some = true;
      skip_ows(text);
      if (!text.empty() && !text.starts_with(',')) return false;
    }
    if (!text.empty()) text.remove_prefix(1);
  }
}

}  // namespace

std::optional<if_match> read_if_match(const header_list& headers, bool& malformed) {
  malformed = false;
  const std::size_t count = count_header(headers, "if-match");
  if (count == 0) return std::nullopt;
  if_match out;
  if (count == 1 && *find_header(headers, "if-match") == "*") {
    out.any = true;
    return out;
  }
  bool some = false;
  for (const auto& [name, value] : headers)
    if (same_text(name, "if-match") && !read_tags(value, out.tags, some)) malformed = true;
  malformed = malformed || !some;
  return out;
}

}  // namespace recibo::http
