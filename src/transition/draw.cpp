#include "recibo/transition/draw.hpp"

#include "recibo/core/utf8.hpp"

#include <algorithm>
#include <array>
#include <set>

namespace recibo::transition {
namespace {

std::size_t width(std::string_view text) noexcept {
  std::size_t count = 0;
  char32_t ignored = 0;
  while (!text.empty()) {
    text.remove_prefix(std::max<std::size_t>(utf8_character(text, ignored), 1));
    ++count;
  }
  return count;
}

template <std::size_t Columns>
void append_columns(std::string& out, const std::vector<std::array<std::string, Columns>>& rows) {
  std::array<std::size_t, Columns> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < Columns; ++i) widths[i] = std::max(widths[i], width(row[i]));
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < Columns; ++i) {
      line += row[i];
      line.append(widths[i] - width(row[i]) + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line;
    out += '\n';
  }
}

std::string kind_text(const state& s) {
  if (s.terminal) return s.done ? "terminal, done" : "terminal";
  return s.done ? "done" : "";
}

// Mermaid's grammar ends a name at a hyphen and has words of its own; a name of ours that it would misread gets another.
class mermaid_names {
 public:
  explicit mermaid_names(const workflow& table) {
    for (const state& s : table.states()) {
      if (is_plain(s.name)) taken_.insert(s.name);
    }
    for (const state& s : table.states()) names_.push_back(is_plain(s.name) ? s.name : invent(s.name));
  }
  const std::string& operator[](std::size_t i) const { return names_[i]; }

 private:
  static bool is_plain(std::string_view name) {
    for (const std::string_view word :
         {"as", "class", "classdef", "click", "default", "direction", "end", "note", "state", "style"}) {
      if (name == word) return false;
    }
    return name.find('-') == std::string_view::npos;
  }
  std::string invent(std::string name) {
    std::replace(name.begin(), name.end(), '-', '_');
    name.insert(0, "s_");
    while (!taken_.insert(name).second) name += '_';
    return name;
  }

  std::set<std::string, std::less<>> taken_;
  std::vector<std::string> names_;
};

std::string mermaid_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '"': out += "#quot;"; break;
      case '#': out += "#35;"; break;
      case ';': out += "#59;"; break;
      case '<': out += "#lt;"; break;
      case '>': out += "#gt;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace

std::string duration_text(std::chrono::seconds duration) {
  if (duration <= std::chrono::seconds::zero()) return "0s";
  std::string out;
  auto left = duration.count();
  for (const auto& [length, unit] : {std::pair{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}}) {
    if (left >= length) out += std::to_string(left / length) + unit;
    left %= length;
  }
  return out;
}

std::string actors_text(const move& row) {
  std::string out;
  for (const actor_kind who : row.by) {
    if (!out.empty()) out += ", ";
    out += to_string(who);
  }
  return out;
}

std::string draw_table(const workflow& table) {
  std::string out = "workflow " + table.name() + ", starts in " + table.initial() + "\n\n";
  std::vector<std::array<std::string, 5>> states{{"STATE", "LABEL", "KIND", "LIMIT", "OWNER"}};
  for (const state& s : table.states()) {
    const std::string bound = s.limit ? duration_text(s.limit->after) + ", then " + s.limit->event : "";
    states.push_back({s.name, s.label, kind_text(s), bound, s.owner});
  }
  append_columns(out, states);
  out += '\n';
  std::vector<std::array<std::string, 5>> moves{{"FROM", "EVENT", "TO", "BY", "EVIDENCE"}};
  for (const move& m : table.moves()) moves.push_back({m.from, m.event, m.to, actors_text(m), m.evidence});
  append_columns(out, moves);
  return out;
}

std::string draw_mermaid(const workflow& table) {
  const mermaid_names names(table);
  std::string out = "stateDiagram-v2\n";
  for (std::size_t i = 0; i < table.states().size(); ++i) {
    const state& s = table.states()[i];
    std::string shown = s.name;
    if (!s.label.empty()) shown += ": " + mermaid_text(s.label);
    out += "  state \"" + shown + "\" as " + names[i] + "\n";
  }
  out += "  [*] --> " + names[table.index_of(table.initial())] + "\n";
  for (const move& m : table.moves()) {
    out += "  " + names[table.index_of(m.from)] + " --> " + names[table.index_of(m.to)] + " : " + m.event + " (" +
           actors_text(m) + ")\n";
  }
  for (std::size_t i = 0; i < table.states().size(); ++i) {
    if (table.states()[i].terminal) out += "  " + names[i] + " --> [*]\n";
  }
  return out;
}

}  // namespace recibo::transition
