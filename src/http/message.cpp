#include "recibo/http/message.hpp"

#include "recibo/core/ascii.hpp"

namespace recibo::http {
std::optional<std::string_view> find_header(const header_list& headers, std::string_view name) noexcept {
  for (const auto& [key, value] : headers) {
    if (same_text(key, name)) return std::string_view(value);
  }
  return std::nullopt;
}

std::size_t count_header(const header_list& headers, std::string_view name) noexcept {
  std::size_t count = 0;
  for (const auto& [key, value] : headers) count += same_text(key, name) ? 1 : 0;
  return count;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_blank) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += plus_is_blank && text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

std::optional<std::vector<std::pair<std::string, std::string>>> parse_form(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> fields;
  while (!text.empty()) {
    const auto end = text.find('&');
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.empty()) continue;
    const auto equals = one.find('=');
    auto name = percent_decode(one.substr(0, equals), true);
    auto value = equals == std::string_view::npos ? std::optional<std::string>("") : percent_decode(one.substr(equals + 1), true);
    if (!name || !value) return std::nullopt;
    fields.emplace_back(std::move(*name), std::move(*value));
  }
  return fields;
}

}  // namespace recibo::http
