#include "recibo/transition/workflow.hpp"

#include "checks.hpp"
#include "definition.hpp"

#include <algorithm>

namespace recibo::transition {

std::string_view to_string(actor_kind who) noexcept {
  switch (who) {
    case actor_kind::provider: return "provider";
    case actor_kind::client: return "client";
    case actor_kind::operator_: return "operator";
    case actor_kind::clock: return "clock";
  }
  return "";
}

std::optional<actor_kind> parse_actor_kind(std::string_view word) noexcept {
  for (const actor_kind who : {actor_kind::provider, actor_kind::client, actor_kind::operator_, actor_kind::clock}) {
    if (to_string(who) == word) return who;
  }
  return std::nullopt;
}

std::string_view to_string(items_rule::quantifier which) noexcept {
  switch (which) {
    case items_rule::quantifier::all: return "all";
    case items_rule::quantifier::any: return "any";
  }
  return "";
}

bool move::permits(actor_kind who) const noexcept { return std::find(by.begin(), by.end(), who) != by.end(); }

std::vector<workflow::problem> workflow::make(std::string name, std::string initial, std::vector<state> states,
                                              std::vector<move> moves, std::optional<workflow>& out,
                                              std::vector<items_rule> items) {
  out.reset();
  auto problems = check_table(name, initial, states, moves, items);
  if (!problems.empty()) return problems;

  workflow made;
  made.name_ = std::move(name);
  made.initial_ = std::move(initial);
  made.states_ = std::move(states);
  made.moves_ = std::move(moves);
  made.items_ = std::move(items);
  for (move& m : made.moves_) std::sort(m.by.begin(), m.by.end());
  made.build_index();
  made.definition_ = write_definition(made.name_, made.initial_, made.states_, made.moves_, made.items_);
  made.digest_ = sha256(made.definition_);
  std::uint64_t key = 0;
  for (std::size_t i = 0; i < 8; ++i) key = (key << 8) | made.digest_[i];
  made.version_key_ = static_cast<std::int64_t>(key);
  out = std::move(made);
  return problems;
}

void workflow::build_index() {
  moves_from_.assign(states_.size(), {});
  // reach_[a][b] first says that one move leads from a to b.
  reach_.assign(states_.size(), std::vector<bool>(states_.size(), false));
  for (std::size_t i = 0; i < moves_.size(); ++i) {
    const move& m = moves_[i];
    const std::size_t from = index_of(m.from), to = index_of(m.to);
    moves_from_[from].push_back(i);
    if (!states_[from].terminal) reach_[from][to] = true;
    auto entry = std::find_if(events_.begin(), events_.end(), [&](const event_targets& e) { return e.event == m.event; });
    if (entry == events_.end()) entry = events_.insert(entry, event_targets{m.event, {}});
    const auto at = std::lower_bound(entry->states.begin(), entry->states.end(), to);
    if (at == entry->states.end() || *at != to) entry->states.insert(at, to);
  }
  // Warshall: then that any number of moves does.
  for (std::size_t middle = 0; middle < states_.size(); ++middle) {
    for (std::size_t from = 0; from < states_.size(); ++from) {
      if (!reach_[from][middle]) continue;
      for (std::size_t to = 0; to < states_.size(); ++to) {
        if (reach_[middle][to]) reach_[from][to] = true;
      }
    }
  }
}

std::size_t workflow::index_of(std::string_view name) const noexcept {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    if (states_[i].name == name) return i;
  }
  return none;
}

const state* workflow::find_state(std::string_view name) const noexcept {
  const std::size_t i = index_of(name);
  return i == none ? nullptr : &states_[i];
}

const move* workflow::find_move(std::string_view from, std::string_view event) const noexcept {
  const std::size_t at = index_of(from);
  if (at == none) return nullptr;
  for (const std::size_t i : moves_from_[at]) {
    if (moves_[i].event == event) return &moves_[i];
  }
  return nullptr;
}

std::span<const std::size_t> workflow::target_indices(std::string_view event) const noexcept {
  for (const event_targets& e : events_) {
    if (e.event == event) return e.states;
  }
  return {};
}

bool workflow::knows_event(std::string_view event) const noexcept { return !target_indices(event).empty(); }

std::vector<std::string_view> workflow::targets(std::string_view event) const {
  std::vector<std::string_view> out;
  for (const std::size_t i : target_indices(event)) out.push_back(states_[i].name);
  return out;
}

bool workflow::reaches(std::string_view from, std::string_view to) const noexcept {
  const std::size_t a = index_of(from), b = index_of(to);
  return a != none && b != none && reach_[a][b];
}

std::vector<std::string_view> workflow::allowed_events(std::string_view from, actor_kind who) const {
  std::vector<std::string_view> out;
  const std::size_t at = index_of(from);
  if (at == none) return out;
  for (const std::size_t i : moves_from_[at]) {
    if (moves_[i].permits(who)) out.push_back(moves_[i].event);
  }
  return out;
}

}  // namespace recibo::transition
