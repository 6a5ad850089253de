#include "reading.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

constexpr char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

bool same_name(std::string_view any_case, std::string_view lower_case) noexcept {
  return any_case.size() == lower_case.size() &&
         std::equal(any_case.begin(), any_case.end(), lower_case.begin(), [](char a, char b) { return lower(a) == b; });
}

// application/x-www-form-urlencoded. An escape that is none stays as it is, as in the URL standard's parser.
std::string decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 && hex_value(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> decode_fields(std::string_view text) {
  std::vector<std::pair<std::string, std::string>> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty()) continue;
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) {
      out.emplace_back(decode(one), std::string());
    } else {
      out.emplace_back(decode(one.substr(0, equals)), decode(one.substr(equals + 1)));
    }
  }
  return out;
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

occurrence reading::header(const std::vector<std::string>& names) const noexcept {
  for (const std::string& wanted : names) {
    occurrence out;
    for (const auto& [name, value] : message_.headers) {
      if (!same_name(name, wanted)) continue;
      if (out.times++ == 0) out.value = trim(value);
    }
    if (out.times > 0) return out;
  }
  return {};
}

std::vector<std::string_view> reading::every_header(const std::vector<std::string>& names) const {
  std::vector<std::string_view> out;
  for (const std::string& wanted : names) {
    for (const auto& [name, value] : message_.headers) {
      if (same_name(name, wanted)) out.push_back(trim(value));
    }
    if (!out.empty()) break;
  }
  return out;
}

occurrence reading::find(const fields& in, const std::vector<std::string>& names) noexcept {
  for (const std::string& wanted : names) {
    occurrence out;
    for (const auto& [name, value] : in) {
      if (name != wanted) continue;
      if (out.times++ == 0) out.value = value;
    }
    if (out.times > 0) return out;
  }
  return {};
}

occurrence reading::query(const std::vector<std::string>& names) {
  if (!query_) query_ = decode_fields(message_.query);
  return find(*query_, names);
}

occurrence reading::form(const std::vector<std::string>& names) {
  if (!form_) form_ = decode_fields(message_.body);
  return find(*form_, names);
}

void reading::read_body_as_json() {
  const auto want = [&](const std::vector<std::string>& names) { pointers_.insert(pointers_.end(), names.begin(), names.end()); };
  if (how_.signature.from == place::json) want(how_.signature.names);
  if (how_.timestamp && how_.timestamp->from == place::json) want(how_.timestamp->names);
  for (const content_part& part : how_.content) {
    if (part.what == content_part::source::json) want(part.names);
  }
  json_ = read_json(message_.body, pointers_);
  // Nothing is believed of a text in which anything is ambiguous (R13).
  if (json_->broken) std::fill(json_->values.begin(), json_->values.end(), std::nullopt);
}

occurrence reading::json(const std::vector<std::string>& names) {
  if (!json_) read_body_as_json();
  for (const std::string& wanted : names) {
    for (std::size_t i = 0; i < pointers_.size(); ++i) {
      if (pointers_[i] != wanted || !json_->values[i]) continue;
      switch (json_->values[i]->kind) {
        case json_value::kind::string:
        case json_value::kind::number:
        case json_value::kind::boolean: return {1, json_->values[i]->text};
        case json_value::kind::null:
        case json_value::kind::object:
        case json_value::kind::array: break;
      }
    }
  }
  return {};
}

}  // namespace recibo::verify
