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

// The pattern that says the same as the rule, as far as a pattern can; nullptr: none.
const char* pattern_of(text_rule rule) noexcept {
  switch (rule) {
    case text_rule::line: return R"(^[^\u0000-\u001f\u007f]*$)";
    case text_rule::prose: return R"(^[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]*$)";
    case text_rule::request_id: return R"(^(?!\.{1,2}$)[!"$&'()*+,\-.0-9:;<=>@A-Z\[\\\]^_`a-z{|}~]{1,255}$)";
    case text_rule::alias: return R"(^[^\u0000-\u001f\u007f-\u009f]+$)";
    case text_rule::decimal: return R"(^-?[0-9]{1,30}(\.[0-9]{1,12})?$)";
    case text_rule::currency: return "^[A-Z]{3}$";
    case text_rule::time:
    case text_rule::uuid:
    case text_rule::free: return nullptr;
  }
  return nullptr;
}

bool holds_control(std::string_view text, bool breaks_allowed) noexcept {
  return std::any_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    if (breaks_allowed && (c == '\n' || c == '\r' || c == '\t')) return false;
    return byte < 0x20 || byte == 0x7f;
  });
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

std::string_view type_word(form what) noexcept {
  switch (what) {
    case form::text: return "string";
    case form::integer: return "integer";
    case form::boolean: return "boolean";
    case form::object: return "object";
    case form::list: return "array";
    case form::any:
    case form::reference: return "";
  }
  return "";
}

schema make(form what) {
  schema s;
  s.what = what;
  return s;
}

void write_text(json_writer& out, const schema& what) {
  if (what.rule == text_rule::time) out.text("format", "date-time");
  if (what.rule == text_rule::uuid) out.text("format", "uuid");
  // A bound in bytes is one in characters, too; the other way it is only the description's.
  if (what.least) out.number("minLength", *what.least);
  if (what.most) out.number("maxLength", *what.most);
  if (const auto* pattern = pattern_of(what.rule); pattern != nullptr && what.words.empty()) out.text("pattern", pattern);
}

void write_object(json_writer& out, const schema& what) {
  if (what.members.empty()) return;
  out.key("properties").begin_object();
  for (const auto& m : what.members) {
    auto value = m.value;
    // Of requests: null is the same as absent.
    value.nullable = value.nullable || (what.closed && !m.required);
    write_schema(out.key(m.name), value);
  }
  out.end_object();
  out.key("required").begin_array();
  for (const auto& m : what.members) {
    if (m.required) out.text(m.name);
  }
  out.end_array();
  if (what.closed) out.flag("additionalProperties", false);
  if (what.together.empty()) return;
  out.key("dependentRequired").begin_object();
  for (const auto& name : what.together) {
    out.key(name).begin_array();
    for (const auto& other : what.together) {
      if (other != name) out.text(other);
    }
    out.end_array();
  }
  out.end_object();
}

}  // namespace

schema text(std::int64_t most, text_rule rule) {
  auto s = make(form::text);
  s.most = most;
  s.rule = rule;
  return s;
}

schema text(text_rule rule) {
  auto s = make(form::text);
  s.rule = rule;
  if (rule == text_rule::alias) s.most = 255;
  return s;
}

schema string() { return text(text_rule::free); }

schema one_of(std::vector<std::string> words) {
  auto s = make(form::text);
  s.words = std::move(words);
  return s;
}

schema integer(std::int64_t least, std::int64_t most) {
  auto s = make(form::integer);
  s.least = least;
  s.most = most;
  return s;
}

schema integer() { return make(form::integer); }
schema boolean() { return make(form::boolean); }
schema instant() { return text(text_rule::time); }
schema any() { return {}; }
schema map() { return make(form::object); }

schema object(std::vector<member> members) {
  auto s = make(form::object);
  s.members = std::move(members);
  return s;
}

schema closed_object(std::vector<member> members) {
  auto s = object(std::move(members));
  s.closed = true;
  return s;
}

schema list(schema element, std::optional<std::int64_t> most) {
  auto s = make(form::list);
  s.element.push_back(std::move(element));
  s.most = most;
  return s;
}

schema component(std::string name) {
  auto s = make(form::reference);
  s.name = std::move(name);
  return s;
}

schema nullable(schema of) {
  of.nullable = true;
  return of;
}

schema about(schema of, std::string text) {
  of.about = std::move(text);
  return of;
}

member required(std::string name, schema value) { return {std::move(name), std::move(value), true}; }
member optional(std::string name, schema value) { return {std::move(name), std::move(value), false}; }
member or_null(std::string name, schema value) { return {std::move(name), nullable(std::move(value)), true}; }

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

void write_schema(json_writer& out, const schema& what) {
  out.begin_object();
  if (what.what == form::reference) {
    const auto target = "#/components/schemas/" + what.name;
    if (what.nullable) {
      out.key("anyOf").begin_array().begin_object().text("$ref", target).end_object();
      out.begin_object().text("type", "null").end_object().end_array();
    } else {
      out.text("$ref", target);
    }
  }
  if (const auto type = type_word(what.what); !type.empty()) {
    if (what.nullable) {
      out.key("type").begin_array().text(type).text("null").end_array();
    } else {
      out.text("type", type);
    }
  }
  if (!what.about.empty()) out.text("description", what.about);
  if (!what.words.empty()) {
    out.key("enum").begin_array();
    for (const auto& w : what.words) out.text(w);
    if (what.nullable) out.null();
    out.end_array();
  }
  if (what.what == form::text) write_text(out, what);
  if (what.what == form::integer) {
    if (what.least) out.number("minimum", *what.least);
    if (what.most) out.number("maximum", *what.most);
  }
  if (what.what == form::object) write_object(out, what);
  if (what.what == form::list) {
    write_schema(out.key("items"), what.element.front());
    if (what.most) out.number("maxItems", *what.most);
  }
  out.end_object();
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
