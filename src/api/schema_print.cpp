// The other half of schema.hpp: making schemas, and printing them as JSON Schema 2020-12.
#include "recibo/api/schema.hpp"

#include <utility>

namespace recibo::api {
namespace {

// What words() want beside the pattern of their rule; what is blank to a pattern is blank to is_blank_text() of schema.cpp.
constexpr const char* says_something_pattern = R"(\S)";

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

std::string_view type_word(schema::form what) noexcept {
  switch (what) {
    case schema::form::text: return "string";
    case schema::form::integer: return "integer";
    case schema::form::boolean: return "boolean";
    case schema::form::object: return "object";
    case schema::form::list: return "array";
    case schema::form::any:
    case schema::form::reference: return "";
  }
  return "";
}

schema make(schema::form what) {
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
  if (what.says_something)
    out.key("allOf").begin_array().begin_object().text("pattern", says_something_pattern).end_object().end_array();
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
  auto s = make(schema::form::text);
  s.most = most;
  s.rule = rule;
  return s;
}

schema text(text_rule rule) {
  auto s = make(schema::form::text);
  s.rule = rule;
  if (rule == text_rule::alias) s.most = 255;
  return s;
}

schema words(std::int64_t most, text_rule rule) {
  auto s = text(most, rule);
  s.says_something = true;
  return s;
}

schema string() { return text(text_rule::free); }

schema one_of(std::vector<std::string> words) {
  auto s = make(schema::form::text);
  s.words = std::move(words);
  return s;
}

schema integer(std::int64_t least, std::int64_t most) {
  auto s = make(schema::form::integer);
  s.least = least;
  s.most = most;
  return s;
}

schema integer() { return make(schema::form::integer); }
schema boolean() { return make(schema::form::boolean); }
schema instant() { return text(text_rule::time); }
schema any() { return {}; }
schema map() { return make(schema::form::object); }

schema object(std::vector<member> members) {
  auto s = make(schema::form::object);
  s.members = std::move(members);
  return s;
}

schema closed_object(std::vector<member> members) {
  auto s = object(std::move(members));
  s.closed = true;
  return s;
}

schema list(schema element, std::optional<std::int64_t> most) {
  auto s = make(schema::form::list);
  s.element.push_back(std::move(element));
  s.most = most;
  return s;
}

schema component(std::string name) {
  auto s = make(schema::form::reference);
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

void write_schema(json_writer& out, const schema& what) {
  out.begin_object();
  if (what.what == schema::form::reference) {
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
  if (what.what == schema::form::text) write_text(out, what);
  if (what.what == schema::form::integer) {
    if (what.least) out.number("minimum", *what.least);
    if (what.most) out.number("maximum", *what.most);
  }
  if (what.what == schema::form::object) write_object(out, what);
  if (what.what == schema::form::list) {
    write_schema(out.key("items"), what.element.front());
    if (what.most) out.number("maxItems", *what.most);
  }
  out.end_object();
}

}  // namespace recibo::api
