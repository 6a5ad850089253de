// A workflow: states, events, and which event moves what, as a checked table (R8, R12). Pure.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/error.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::transition {

// Who may raise an event.
enum class actor_kind {
  provider,   // a callback or a look-up at the provider
  client,     // the team's own service, through the API
  operator_,  // a person with role operator or admin
  clock,      // a limit that ran out
};

std::string_view to_string(actor_kind who) noexcept;  // "provider", "client", "operator", "clock"
std::optional<actor_kind> parse_actor_kind(std::string_view word) noexcept;

// How long a state may last, and the event that is raised then (R22).
struct limit {
  std::chrono::seconds after{};
  std::string event;
};

struct state {
  std::string name;
  // Customer-safe words.
  std::string label;
  bool terminal = false;
  // Customer-facing completion (R12).
  bool done = false;
  std::optional<transition::limit> limit;
  // Who has to act when it lasts too long; empty when the provider alone moves it.
  std::string owner;
};

// One row of the table. `from` and `to` name states; `by` says who may raise `event` there.
struct move {
  std::string from;
  std::string event;
  std::string to;
  std::vector<actor_kind> by;
  // The kind of evidence that a person must give ("statement"); empty when none is asked for.
  std::string evidence;

  bool permits(actor_kind who) const noexcept;
};

// Moves the operation by what its items have become (R7): the rule itself is the permission, so the row that it takes may
// be anybody's.
struct items_rule {
  enum class quantifier {
    all,  // every item is in one of the states
    any,  // at least one is
  };
  quantifier which = quantifier::all;
  std::vector<std::string> states;
  std::string event;
};

std::string_view to_string(items_rule::quantifier which) noexcept;  // "all", "any"

// Immutable once made; safe to read from any thread. States and moves keep the order of the configuration.
class workflow {
 public:
  // What is wrong with a table that make() refused; `where` is a path within the definition, so that the loader can
  // name file:line:column: "name", "initial", "states", "states/<name>", "states/<name>/limit/event",
  // "transitions/<index of the move>/to", "items/<index of the rule>/states" and so on, with the names of the
  // configuration's keys.
  struct problem {
    std::string where;
    std::string message;
  };

  // Checks: the initial state exists; every name used exists; no (from, event) has two rows, because there would be two
  // targets or two opinions on who may; every row says who; no move leaves a terminal state except by an operator; every
  // state can be reached; every state that is not terminal has a way out to another; a limit is positive and its event
  // has a move by the clock from that state; rules of items name states and an event of the table; names are 1-63 characters of
  // [a-z0-9_-]; labels and owners are UTF-8. All problems at once; an empty answer means that `out` was set. `by` is sorted,
  // since its order means nothing.
  static std::vector<problem> make(std::string name, std::string initial, std::vector<state> states, std::vector<move> moves,
                                   std::optional<workflow>& out, std::vector<items_rule> items = {});

  const std::string& name() const noexcept { return name_; }
  const std::string& initial() const noexcept { return initial_; }
  const std::vector<state>& states() const noexcept { return states_; }
  const std::vector<move>& moves() const noexcept { return moves_; }
  // Asked in this order after an item has moved; empty: items never move their operation.
  const std::vector<items_rule>& items() const noexcept { return items_; }

  // nullptr: no such state / no move for this event there.
  const state* find_state(std::string_view name) const noexcept;
  const move* find_move(std::string_view from, std::string_view event) const noexcept;
  // Whether any move is named so.
  bool knows_event(std::string_view event) const noexcept;
  // Every state that `event` leads to from anywhere, without repeats, in the order of the states. Borrows.
  std::vector<std::string_view> targets(std::string_view event) const;
  // Whether `to` can be reached from `from` by one or more moves, whoever makes them, without leaving a terminal state:
  // that is an operator's correction, not the course of things, and says nothing about what is older.
  bool reaches(std::string_view from, std::string_view to) const noexcept;
  // The events that `who` may raise in `from`, in the order of the table.
  std::vector<std::string_view> allowed_events(std::string_view from, actor_kind who) const;

  // Canonical JSON of everything above: what workflow_versions stores, and what the digest is over.
  const std::string& definition() const noexcept { return definition_; }
  // SHA-256 of definition(), and its first eight bytes as the key that rows carry (decision 7).
  const sha256_digest& digest() const noexcept { return digest_; }
  std::int64_t version_key() const noexcept { return version_key_; }

  // The same by position in states(), without allocation, for decide(). `none`: no such state; an unknown event leads
  // nowhere.
  static constexpr std::size_t none = static_cast<std::size_t>(-1);
  std::size_t index_of(std::string_view state) const noexcept;
  std::span<const std::size_t> target_indices(std::string_view event) const noexcept;
  bool reaches_index(std::size_t from, std::size_t to) const noexcept { return reach_[from][to]; }

  // The inverse of definition(). permanent::invalid_configuration when it is not one.
  static result<workflow> parse(std::string_view definition);

 private:
  struct event_targets {
    std::string event;
    std::vector<std::size_t> states;  // ascending
  };

  workflow() = default;
  void build_index();

  std::string name_, initial_;
  std::vector<state> states_;
  std::vector<move> moves_;
  std::vector<items_rule> items_;
  // Tables have some ten states and some twenty moves: scanning a short vector beats a map here, and copies and moves
  // of a workflow stay plain because everything refers by position.
  std::vector<std::vector<std::size_t>> moves_from_;  // by state
  std::vector<event_targets> events_;
  std::vector<std::vector<bool>> reach_;
  std::string definition_;
  sha256_digest digest_{};
  std::int64_t version_key_ = 0;
};

}  // namespace recibo::transition
