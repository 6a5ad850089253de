#include "sources.hpp"

#include <algorithm>
#include <charconv>

namespace recibo::receive {
namespace {

using verify::pointed_value;
using value = result<std::optional<pointed_value>>;

error malformed(std::string_view what, std::string_view why) {
  return {permanent::malformed_field, std::string(what) + ": " + std::string(why)};
}

std::optional<pointed_value> present(std::optional<pointed_value> found) {
  if (found && found->kind == json_value::kind::null) return std::nullopt;
  return found;
}

value field_of(const std::optional<std::vector<std::pair<std::string, std::string>>>& fields, const std::string& name,
               std::string_view what, std::string_view where) {
  if (!fields) return malformed(what, std::string(where) + " is not well-formed application/x-www-form-urlencoded");
  const std::string* found = nullptr;
  for (const auto& [key, text] : *fields) {
    if (key != name) continue;
    if (found) return malformed(what, std::string(where) + " has the field more than once");
    found = &text;
  }
  if (!found) return std::optional<pointed_value>();
  return std::optional(pointed_value{json_value::kind::string, *found});
}

// What `then` looks for in a text that is JSON itself.
value look_within(const pointed_value& outer, const std::string& pointer, std::string_view what) {
  if (outer.kind != json_value::kind::string) return malformed(what, "a text that holds JSON is wanted here");
  const std::string_view pointers[] = {pointer};
  const auto inner = verify::read_json(outer.text, pointers);
  if (inner.broken) return error(permanent::malformed_json, std::string(what) + ": the text within: " + inner.broken->detail);
  return present(inner.values.front());
}

// As verify::read_json keeps values.
pointed_value pointed(const json_value& found) {
  switch (found.type) {
    case json_value::kind::null: return {found.type, "null"};
    case json_value::kind::boolean: return {found.type, found.boolean ? "true" : "false"};
    case json_value::kind::number:
    case json_value::kind::string: return {found.type, found.text};
    case json_value::kind::array:
    case json_value::kind::object: break;
  }
  auto text = canonical_json(found);
  if (!text || text->size() > verify::json_container_max) return {found.type, {}};
  return {found.type, std::move(*text)};
}

}  // namespace

const json_value* find_pointer(const json_value& within, std::string_view pointer) noexcept {
  const json_value* at = &within;
  while (at != nullptr && !pointer.empty()) {
    pointer.remove_prefix(1);
    const auto token = pointer.substr(0, pointer.find('/'));
    pointer.remove_prefix(token.size());
    if (at->is(json_value::kind::array)) {
      std::size_t index = 0;
      const auto read = std::from_chars(token.data(), token.data() + token.size(), index);
      const bool canonical =
          read.ec == std::errc() && read.ptr == token.data() + token.size() && (token.size() == 1 || token[0] != '0');
      at = canonical && index < at->elements.size() ? &at->elements[index] : nullptr;
      continue;
    }
    const auto member = std::find_if(at->members.begin(), at->members.end(),
                                     [&](const json_member& m) { return json_pointer_token(m.name) == token; });
    at = member == at->members.end() ? nullptr : &member->value;
  }
  return at;
}

value read_element(const json_value& element, const config::source& from, std::string_view what) {
  const auto* found = find_pointer(element, from.name);
  if (found == nullptr || found->is(json_value::kind::null)) return std::optional<pointed_value>();
  if (from.then) return look_within(pointed(*found), *from.then, what);
  return std::optional(pointed(*found));
}

source_reader::source_reader(const config::extract& how, const http::request& from, const json_value* element)
    : request_(from), element_(element) {
  if (element_ != nullptr) return;
  const auto want = [&](const config::source& one) {
    if (one.from == config::source::place::json) pointers_.push_back(one.name);
  };
  for (const config::sources* list : {&how.request_id, &how.idempotency_key, &how.event, &how.sequence, &how.occurred_at,
                                      &how.reference, &how.amount, &how.currency, &how.account}) {
    std::for_each(list->begin(), list->end(), want);
  }
  for (const auto& [name, one] : how.result) want(one);
  if (!pointers_.empty()) json_ = verify::read_json(from.body, pointers_);
}

value source_reader::read_header(const std::string& name, std::string_view what) const {
  switch (http::count_header(request_.headers, name)) {
    case 0: return std::optional<pointed_value>();
    case 1:
      return std::optional(pointed_value{json_value::kind::string, std::string(*http::find_header(request_.headers, name))});
    default: return malformed(what, "the header stands more than once");
  }
}

value source_reader::read_place(const config::source& from, std::string_view what) {
  switch (from.from) {
    case config::source::place::json: {
      if (element_ != nullptr) {
        const auto* found = find_pointer(*element_, from.name);
        return found ? present(pointed(*found)) : std::optional<pointed_value>();
      }
      const auto at = std::find(pointers_.begin(), pointers_.end(), std::string_view(from.name));
      if (at == pointers_.end()) return std::optional<pointed_value>();
      return present(json_.values[static_cast<std::size_t>(at - pointers_.begin())]);
    }
    case config::source::place::header: return read_header(from.name, what);
    case config::source::place::query:
      if (!query_) query_ = http::parse_form(request_.query);
      return field_of(*query_, from.name, what, "the query");
    case config::source::place::form:
      if (!form_) form_ = http::parse_form(request_.body);
      return field_of(*form_, from.name, what, "the body");
  }
  return std::optional<pointed_value>();
}

value source_reader::read(const config::source& from, std::string_view what) {
  value outer = read_place(from, what);
  if (!outer || !*outer || !from.then) return outer;
  return look_within(**outer, *from.then, what);
}

}  // namespace recibo::receive
