#include "definition.hpp"

#include <nlohmann/json.hpp>

#include <initializer_list>

namespace recibo::transition {
namespace {

using nlohmann::json;  // sorts its keys

// The form of the JSON below. It is part of the digest, so a new form never passes for an old one.
constexpr int form = 1;

json to_json(const state& s) {
  json out{{"name", s.name}, {"label", s.label}, {"terminal", s.terminal},
           {"done", s.done}, {"owner", s.owner}, {"limit", nullptr}};
  if (s.limit) out["limit"] = json{{"after_s", s.limit->after.count()}, {"event", s.limit->event}};
  return out;
}

json to_json(const move& m) {
  json by = json::array();
  for (const actor_kind who : m.by) by.push_back(to_string(who));
  return json{{"from", m.from}, {"event", m.event}, {"to", m.to}, {"by", std::move(by)}, {"evidence", m.evidence}};
}

json to_json(const items_rule& rule) {
  return json{{"which", to_string(rule.which)}, {"states", rule.states}, {"event", rule.event}};
}

// Thrown and caught in this file alone: reading a definition has one outcome for everything that is wrong with it.
struct not_a_definition {
  std::string why;
};

// The members of an object, which must be exactly those named.
const json& object(const json& value, std::initializer_list<const char*> keys) {
  if (!value.is_object()) throw not_a_definition{"an object is missing"};
  for (const char* key : keys) {
    if (!value.contains(key)) throw not_a_definition{std::string(key) + " is missing"};
  }
  if (value.size() != keys.size()) throw not_a_definition{"a key is not of this form"};
  return value;
}

std::string text(const json& from, const char* key) {
  const json& value = from.at(key);
  if (!value.is_string()) throw not_a_definition{std::string(key) + " is no text"};
  return value.get<std::string>();
}

bool truth(const json& from, const char* key) {
  const json& value = from.at(key);
  if (!value.is_boolean()) throw not_a_definition{std::string(key) + " is neither true nor false"};
  return value.get<bool>();
}

const json& list(const json& from, const char* key) {
  const json& value = from.at(key);
  if (!value.is_array()) throw not_a_definition{std::string(key) + " is no list"};
  return value;
}

state read_state(const json& value) {
  object(value, {"name", "label", "terminal", "done", "owner", "limit"});
  state out;
  out.name = text(value, "name");
  out.label = text(value, "label");
  out.terminal = truth(value, "terminal");
  out.done = truth(value, "done");
  out.owner = text(value, "owner");
  if (const json& bound = value.at("limit"); !bound.is_null()) {
    object(bound, {"after_s", "event"});
    const json& after = bound.at("after_s");
    if (!after.is_number_integer()) throw not_a_definition{"after_s is no whole number"};
    out.limit = limit{std::chrono::seconds(after.get<std::int64_t>()), text(bound, "event")};
  }
  return out;
}

move read_move(const json& value) {
  object(value, {"from", "event", "to", "by", "evidence"});
  move out;
  out.from = text(value, "from");
  out.event = text(value, "event");
  out.to = text(value, "to");
  out.evidence = text(value, "evidence");
  for (const json& who : list(value, "by")) {
    const auto actor = who.is_string() ? parse_actor_kind(who.get_ref<const std::string&>()) : std::nullopt;
    if (!actor) throw not_a_definition{"by names nobody known"};
    out.by.push_back(*actor);
  }
  return out;
}

items_rule read_items_rule(const json& value) {
  object(value, {"which", "states", "event"});
  items_rule out;
  const std::string which = text(value, "which");
  if (which != "all" && which != "any") throw not_a_definition{"which is neither all nor any"};
  out.which = which == "all" ? items_rule::quantifier::all : items_rule::quantifier::any;
  out.event = text(value, "event");
  for (const json& name : list(value, "states")) {
    if (!name.is_string()) throw not_a_definition{"a state is no text"};
    out.states.push_back(name.get<std::string>());
  }
  return out;
}

}  // namespace

std::string write_definition(const std::string& name, const std::string& initial, const std::vector<state>& states,
                             const std::vector<move>& moves, const std::vector<items_rule>& items) {
  json all_states = json::array(), all_moves = json::array();
  for (const state& s : states) all_states.push_back(to_json(s));
  for (const move& m : moves) all_moves.push_back(to_json(m));
  json out{{"form", form},
           {"name", name},
           {"initial", initial},
           {"states", std::move(all_states)},
           {"transitions", std::move(all_moves)}};
  for (const items_rule& rule : items) out["items"].push_back(to_json(rule));
  return out.dump();
}

result<workflow> workflow::parse(std::string_view definition) {
  const json document = json::parse(definition, nullptr, false);
  if (document.is_discarded()) return error(permanent::invalid_configuration, "a workflow definition is not JSON");
  try {
    const bool with_items = document.is_object() && document.contains("items");
    if (with_items) {
      object(document, {"form", "name", "initial", "states", "transitions", "items"});
    } else {
      object(document, {"form", "name", "initial", "states", "transitions"});
    }
    if (document.at("form") != form) throw not_a_definition{"its form is another than this binary reads"};
    std::vector<state> states;
    for (const json& value : list(document, "states")) states.push_back(read_state(value));
    std::vector<move> moves;
    for (const json& value : list(document, "transitions")) moves.push_back(read_move(value));
    std::vector<items_rule> items;
    if (with_items)
      for (const json& value : list(document, "items")) items.push_back(read_items_rule(value));
    std::optional<workflow> out;
    const auto problems =
        make(text(document, "name"), text(document, "initial"), std::move(states), std::move(moves), out, std::move(items));
    if (!out) throw not_a_definition{problems.front().where + ": " + problems.front().message};
    return std::move(*out);
  } catch (const not_a_definition& broken) {
    return error(permanent::invalid_configuration, "a workflow definition is broken: " + broken.why);
  }
}

}  // namespace recibo::transition
