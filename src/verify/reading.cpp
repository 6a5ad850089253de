#include "reading.hpp"

#include "recibo/core/ascii.hpp"

#include "items.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

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

occurrence find_field(const std::optional<fields>& in, std::span<const std::string> names) noexcept {
  if (!in) return {};
  for (const std::string& wanted : names) {
    occurrence out;
    for (const auto& [name, value] : *in) {
      if (name != wanted) continue;
      if (out.times++ == 0) out.value = value;
    }
    if (out.times > 0) return out;
  }
  return {};
}

}  // namespace

std::optional<fields> decode_fields(std::string_view text) {
  fields out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.empty()) continue;
    // A field costs more memory than its bytes, and nobody has proved yet who sent them.
    if (out.size() == fields_max) return std::nullopt;
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) {
      out.emplace_back(decode(one), std::string());
    } else {
      out.emplace_back(decode(one.substr(0, equals)), decode(one.substr(equals + 1)));
    }
  }
  return out;
}

std::string_view query_of(std::string_view url) noexcept {
  url = url.substr(0, url.find('#'));
  const std::size_t at = url.find('?');
  return at == std::string_view::npos ? std::string_view() : url.substr(at + 1);
}

occurrence reading::header(std::string_view wanted) const noexcept {
  occurrence out;
  for (const auto& [name, value] : message_.headers) {
    if (!same_text(name, wanted)) continue;
    if (out.times++ == 0) out.value = trim(value);
  }
  return out;
}

occurrence reading::header(std::span<const std::string> names) const noexcept {
  for (const std::string& wanted : names) {
    if (const occurrence out = header(wanted); out.times > 0) return out;
  }
  return {};
}

std::vector<std::string_view> reading::every_header(std::span<const std::string> names) const {
  std::vector<std::string_view> out;
  for (const std::string& wanted : names) {
    for (const auto& [name, value] : message_.headers) {
      if (same_text(name, wanted)) out.push_back(trim(value));
    }
    if (!out.empty()) break;
  }
  return out;
}

occurrence reading::query(std::span<const std::string> names) {
  if (!query_) query_ = decode_fields(message_.query);
  return find_field(*query_, names);
}

occurrence reading::url_query(std::string_view name) {
  if (!url_query_) url_query_ = decode_fields(query_of(message_.url));
  const std::string wanted(name);
  return find_field(*url_query_, {&wanted, 1});
}

occurrence reading::form(std::span<const std::string> names) {
  if (!form_) form_ = decode_fields(message_.body);
  return find_field(*form_, names);
}

const fields* reading::form_fields() {
  if (!form_) form_ = decode_fields(message_.body);
  return *form_ ? &**form_ : nullptr;
}

bool reading::is_form() const noexcept {
  const occurrence type = header("content-type");
  return type.times == 1 && same_text(trim(type.value.substr(0, type.value.find(';'))), "application/x-www-form-urlencoded");
}

std::size_t reading::items() {
  if (how_.for_each.empty()) return 1;
  if (!items_) {
    const auto split = split_at_star(how_.for_each);
    items_ = split ? count_elements(message_.body, split->first, items_max).value_or(0) : 0;
  }
  return *items_;
}

void reading::read_body_as_json() {
  const auto want = [&](const std::vector<std::string>& names) { wanted_.insert(wanted_.end(), names.begin(), names.end()); };
  if (how_.signature.from == place::json) want(how_.signature.names);
  if (how_.timestamp && how_.timestamp->from == place::json) want(how_.timestamp->names);
  for (const content_part& part : how_.content) {
    if (part.what == content_part::source::json) want(part.names);
  }
  if (how_.for_each.empty()) {
    pointers_ = wanted_;
  } else if (const auto split = split_at_star(how_.for_each); split && items() <= items_max) {
    for (std::size_t i = 0; i < items(); ++i) {
      const std::string item = std::string(split->first) + '/' + std::to_string(i) + std::string(split->second);
      for (const std::string_view pointer : wanted_) pointers_.push_back(full_.emplace_back(item + std::string(pointer)));
    }
  }
  json_ = read_json(message_.body, pointers_);
  // Nothing is believed of a text in which anything is ambiguous (R13).
  if (json_->broken) std::fill(json_->values.begin(), json_->values.end(), std::nullopt);
}

occurrence reading::json(std::span<const std::string> names) {
  if (!json_) read_body_as_json();
  for (const std::string& wanted : names) {
    for (std::size_t i = 0; i < wanted_.size(); ++i) {
      const std::size_t at = item_ * wanted_.size() + i;
      if (wanted_[i] != wanted || at >= json_->values.size() || !json_->values[at]) continue;
      switch (json_->values[at]->kind) {
        case json_value::kind::string:
        case json_value::kind::number:
        case json_value::kind::boolean: return {1, json_->values[at]->text};
        case json_value::kind::null:
        case json_value::kind::object:
        case json_value::kind::array: break;
      }
    }
  }
  return {};
}

}  // namespace recibo::verify
