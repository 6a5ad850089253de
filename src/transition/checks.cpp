#include "checks.hpp"

#include "recibo/core/utf8.hpp"

#include <algorithm>
#include <set>

namespace recibo::transition {
namespace {

constexpr std::size_t name_length_max = 63;

bool is_name(std::string_view text) noexcept {
  return !text.empty() && text.size() <= name_length_max && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

// Text for people: it goes into JSON, into terminals and onto pages, so it holds no control character of any kind.
bool is_line(std::string_view text) noexcept {
  while (!text.empty()) {
    char32_t c = 0;
    const std::size_t length = utf8_character(text, c);
    if (length == 0 || c < 0x20 || (c >= 0x7f && c <= 0x9f)) return false;
    text.remove_prefix(length);
  }
  return true;
}

class checker {
 public:
  checker(const std::vector<state>& states, const std::vector<move>& moves) : states_(states), moves_(moves) {}

  void named(std::string where, std::string_view text) {
    if (!is_name(text)) report(std::move(where), "a name is 1 to 63 characters of a-z, 0-9, _ and -");
  }

  void check_initial(const std::string& initial) {
    if (!find(initial)) report("initial", "there is no state named so");
  }

  void check_states() {
    if (states_.empty()) report("states", "a workflow has at least one state");
    std::set<std::string_view> seen;
    for (const state& s : states_) {
      const std::string where = "states/" + s.name;
      named(where, s.name);
      if (!seen.insert(s.name).second) report(where, "this state stands here twice");
      if (!is_line(s.label)) report(where + "/label", "a label is one line of valid UTF-8");
      if (!is_line(s.owner)) report(where + "/owner", "an owner is one line of valid UTF-8");
      if (s.limit) check_limit(s, where);
    }
  }

  void check_moves() {
    std::set<std::pair<std::string_view, std::string_view>> seen;
    for (std::size_t i = 0; i < moves_.size(); ++i) {
      const move& m = moves_[i];
      const std::string where = "transitions/" + std::to_string(i);
      const state* from = find(m.from);
      if (!from) report(where + "/from", "there is no state named so");
      if (!find(m.to)) report(where + "/to", "there is no state named so");
      named(where + "/event", m.event);
      if (!m.evidence.empty()) named(where + "/evidence", m.evidence);
      if (!seen.insert({m.from, m.event}).second) report(where + "/event", "this event has a row for this state already");
      if (m.by.empty()) report(where + "/by", "a transition says who may raise its event");
      if (std::set<actor_kind>(m.by.begin(), m.by.end()).size() != m.by.size()) report(where + "/by", "somebody is named twice");
      const bool others = std::any_of(m.by.begin(), m.by.end(), [](actor_kind who) { return who != actor_kind::operator_; });
      if (from && from->terminal && others) report(where + "/by", "only an operator may leave a terminal state");
    }
  }

  void check_items(const std::vector<items_rule>& rules) {
    for (std::size_t i = 0; i < rules.size(); ++i) {
      const items_rule& rule = rules[i];
      const std::string where = "items/" + std::to_string(i);
      if (rule.states.empty()) report(where + "/states", "a rule names at least one state");
      for (const std::string& name : rule.states)
        if (!find(name)) report(where + "/states", "there is no state named " + name);
      const bool known = std::any_of(moves_.begin(), moves_.end(), [&](const move& m) { return m.event == rule.event; });
      if (!known) report(where + "/event", "no transition has this event");
    }
  }

  // Whether the table hangs together. Asked only of a table whose names are right.
  void check_shape(const std::string& initial) {
    if (!problems_.empty()) return;
    std::set<std::string_view> reached{initial};
    std::vector<std::string_view> open{initial};
    while (!open.empty()) {
      const std::string_view at = open.back();
      open.pop_back();
      for (const move& m : moves_) {
        if (m.from == at && reached.insert(m.to).second) open.push_back(m.to);
      }
    }
    for (const state& s : states_) {
      if (!reached.contains(s.name)) report("states/" + s.name, "no transition leads to this state");
      const bool way_out =
          std::any_of(moves_.begin(), moves_.end(), [&](const move& m) { return m.from == s.name && m.to != s.name; });
      if (!s.terminal && !way_out) report("states/" + s.name, "no transition leaves this state, and it is not terminal");
    }
  }

  std::vector<workflow::problem> take() { return std::move(problems_); }

 private:
  void check_limit(const state& s, const std::string& where) {
    if (s.limit->after <= std::chrono::seconds::zero()) report(where + "/limit/after", "a limit is longer than nothing");
    const bool known = std::any_of(moves_.begin(), moves_.end(), [&](const move& m) {
      return m.from == s.name && m.event == s.limit->event && m.permits(actor_kind::clock);
    });
    if (!known) report(where + "/limit/event", "the clock has no transition for this event in this state");
  }

  const state* find(std::string_view name) const noexcept {
    const auto at = std::find_if(states_.begin(), states_.end(), [&](const state& s) { return s.name == name; });
    return at == states_.end() ? nullptr : &*at;
  }

  void report(std::string where, std::string message) { problems_.push_back({std::move(where), std::move(message)}); }

  const std::vector<state>& states_;
  const std::vector<move>& moves_;
  std::vector<workflow::problem> problems_;
};

}  // namespace

std::vector<workflow::problem> check_table(const std::string& name, const std::string& initial, const std::vector<state>& states,
                                           const std::vector<move>& moves, const std::vector<items_rule>& items) {
  checker check(states, moves);
  check.named("name", name);
  check.check_initial(initial);
  check.check_states();
  check.check_moves();
  check.check_items(items);
  check.check_shape(initial);
  return check.take();
}

}  // namespace recibo::transition
