#include "sources.hpp"

#include <algorithm>

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

}  // namespace

source_reader::source_reader(const config::extract& how, const http::request& from) : request_(from) {
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
  if ((*outer)->kind != json_value::kind::string) return malformed(what, "a text that holds JSON is wanted here");
  const std::string_view pointers[] = {*from.then};
  const auto inner = verify::read_json((*outer)->text, pointers);
  if (inner.broken) return error(permanent::malformed_json, std::string(what) + ": the text within: " + inner.broken->detail);
  return present(inner.values.front());
}

}  // namespace recibo::receive
