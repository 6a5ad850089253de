#include "recibo/api/schema.hpp"

#include "recibo/core/clock.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/core/money.hpp"
#include "recibo/core/utf8.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace recibo::api {
namespace {

using form = schema::form;

error malformed(std::string_view where, std::string_view rule) {
  std::string detail(where);
  detail += where.empty() ? "" : ": ";
  detail += rule;
  return {permanent::malformed_field, std::move(detail)};
}

std::string list_of(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& w : words) out += (out.empty() ? "" : ", ") + w;
  return out;
}

bool holds_control(std::string_view text, bool breaks_allowed) noexcept {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (breaks_allowed && (c == '\n' || c == '\r' || c == '\t')) return false;
    return byte < 0x20 || byte == 0x7f;
  });
}

// As a pattern's \s has it (ECMA-262, WhiteSpace and LineTerminator).
bool is_blank_text(std::string_view text) noexcept {
  constexpr std::u32string_view blanks = U" \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff";
  while (!text.empty()) {
    char32_t c = 0;
    const auto size = utf8_character(text, c);
    const bool blank = (c >= 0x09 && c <= 0x0d) || (c >= 0x2000 && c <= 0x200a) || blanks.find(c) != blanks.npos;
    if (size == 0 || !blank) return false;
    text.remove_prefix(size);
  }
  return true;
}

result<void> check_rule(text_rule rule, std::string_view value, std::string_view where) {
  const auto in_place = [&](const auto& checked) -> result<void> {
    if (!checked) return malformed(where, checked.error().detail);
    return {};
  };
  switch (rule) {
    case text_rule::line:
      if (holds_control(value, false)) return malformed(where, "holds a control character");
      return {};
    case text_rule::prose:
      if (holds_control(value, true)) return malformed(where, "holds a control character");
      return {};
    case text_rule::request_id: return in_place(check_request_id(value));
    case text_rule::alias: {
      const auto last = where.substr(where.rfind('/') + 1);
      return in_place(check_alias(value, last));
    }
    case text_rule::decimal: return in_place(parse_decimal(value));
    case text_rule::currency: {
      const bool capitals =
          value.size() == 3 && std::all_of(value.begin(), value.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
      if (!capitals) return malformed(where, "is a currency code of three capital letters (ISO 4217)");
      return {};
    }
    case text_rule::time: return in_place(parse_rfc3339(value));
    case text_rule::uuid:
    case text_rule::free: return {};
  }
  return {};
}

result<void> check_text(const schema& by, std::string_view value, std::string_view where) {
  if (!is_utf8(value)) return malformed(where, "is not valid UTF-8");
  const auto size = static_cast<std::int64_t>(value.size());
  // The rule names itself where it bounds the length, too.
  if (by.rule == text_rule::line || by.rule == text_rule::prose) {
    if (by.least && size < *by.least) return malformed(where, "is empty");
    if (by.most && size > *by.most) return malformed(where, "has at most " + std::to_string(*by.most) + " bytes");
  }
  if (by.says_something && is_blank_text(value)) return malformed(where, "says nothing");
  if (!by.words.empty() && std::find(by.words.begin(), by.words.end(), value) == by.words.end()) {
    return malformed(where, "is one of " + list_of(by.words));
  }
  return check_rule(by.rule, value, where);
}

result<void> check_integer(const schema& by, std::string_view digits, std::string_view where) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool whole = failed == std::errc() && end == digits.data() + digits.size();
  if (!whole || (by.least && value < *by.least) || (by.most && value > *by.most)) {
    std::string rule = "is an integer";
    if (by.least && by.most) rule += " from " + std::to_string(*by.least) + " to " + std::to_string(*by.most);
    return malformed(where, rule);
  }
  return {};
}

result<void> check_object(const schema& by, const json_value& value, const std::string& pointer) {
  for (const auto& [name, inner] : value.members) {
    const auto found =
        std::find_if(by.members.begin(), by.members.end(), [&, &key = name](const member& m) { return m.name == key; });
    const auto where = pointer + "/" + json_pointer_token(name);
    if (found == by.members.end()) {
      if (by.closed) return error(permanent::unknown_field, where.substr(0, 200) + ": no such field");
      continue;
    }
    if (inner.is(json_value::kind::null) && !found->required) continue;
    if (auto checked = validate(found->value, inner, where); !checked) return checked;
  }
  for (const auto& m : by.members) {
    if (m.required && value.find(m.name) == nullptr)
      return error(permanent::missing_field, pointer + "/" + m.name + ": is required");
  }
  const auto there = [&](const std::string& name) { return value.find(name) != nullptr; };
  if (std::any_of(by.together.begin(), by.together.end(), there)) {
    for (const auto& name : by.together) {
      if (!there(name))
        return error(permanent::missing_field,
                     pointer + "/" + name + ": " + list_of(by.together) + " stand together or not at all");
    }
  }
  return {};
}

result<void> check_list(const schema& by, const json_value& value, const std::string& pointer) {
  if (by.most && static_cast<std::int64_t>(value.elements.size()) > *by.most) {
    return malformed(pointer, "has at most " + std::to_string(*by.most) + " elements");
  }
  for (std::size_t i = 0; i < value.elements.size(); ++i) {
    if (auto checked = validate(by.element.front(), value.elements[i], pointer + "/" + std::to_string(i)); !checked)
      return checked;
  }
  return {};
}

json_value::kind kind_of(form what) noexcept {
  switch (what) {
    case form::text: return json_value::kind::string;
    case form::integer: return json_value::kind::number;
    case form::boolean: return json_value::kind::boolean;
    case form::list: return json_value::kind::array;
    case form::object:
    case form::any:
    case form::reference: return json_value::kind::object;
  }
  return json_value::kind::object;
}

}  // namespace

result<void> validate(const schema& by, const json_value& value, const std::string& pointer) {
  if (by.what == form::any || by.what == form::reference) return {};
  if (value.is(json_value::kind::null) && by.nullable) return {};
  if (!value.is(kind_of(by.what))) {
    const bool money = by.rule == text_rule::decimal && value.is(json_value::kind::number);
    return malformed(pointer, money ? std::string("is a decimal in a string, never a float")
                                    : "is " + std::string(json_type_name(kind_of(by.what))) + ", not " +
                                          std::string(json_type_name(value.type)));
  }
  switch (by.what) {
    case form::text: return check_text(by, value.text, pointer);
    case form::integer: return check_integer(by, value.text, pointer);
    case form::object: return check_object(by, value, pointer);
    case form::list: return check_list(by, value, pointer);
    case form::boolean:
    case form::any:
    case form::reference: return {};
  }
  return {};
}

result<void> validate_text(const schema& by, std::string_view value, std::string_view name) {
  switch (by.what) {
    case form::integer: return check_integer(by, value, name);
    case form::boolean:
      if (value != "true" && value != "false") return malformed(name, "is true or false");
      return {};
    case form::text: return check_text(by, value, name);
    case form::any:
    case form::object:
    case form::list:
    case form::reference: return {};
  }
  return {};
}

const json_value* present(const json_value& body, std::string_view name) {
  const auto* found = body.find(name);
  return found != nullptr && !found->is(json_value::kind::null) ? found : nullptr;
}

std::optional<std::string> text_of(const json_value& body, std::string_view name) {
  const auto* found = present(body, name);
  return found != nullptr ? std::optional(found->text) : std::nullopt;
}

}  // namespace recibo::api
