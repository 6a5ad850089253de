// Tables that the tests of this folder share.
#pragma once

#include "recibo/transition/workflow.hpp"

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace recibo::transition::tables {

inline const auto provider = actor_kind::provider;
inline const auto client = actor_kind::client;
inline const auto operator_ = actor_kind::operator_;
inline const auto clock = actor_kind::clock;

inline state open(std::string name, std::string label = "") {
  state s;
  s.name = std::move(name);
  s.label = std::move(label);
  return s;
}

inline state limited(std::string name, std::string label, std::chrono::seconds after, std::string event, std::string owner) {
  state s = open(std::move(name), std::move(label));
  s.limit = limit{after, std::move(event)};
  s.owner = std::move(owner);
  return s;
}

inline state closed(std::string name, std::string label = "", bool done = false) {
  state s = open(std::move(name), std::move(label));
  s.terminal = true;
  s.done = done;
  return s;
}

inline void add(std::vector<move>& to, std::initializer_list<const char*> from, const char* event, const char* target,
                std::vector<actor_kind> by, const char* evidence = "") {
  for (const char* f : from) to.push_back(move{f, event, target, by, evidence});
}

inline workflow made(const char* name, const char* initial, std::vector<state> states, std::vector<move> moves) {
  std::optional<workflow> out;
  const auto problems = workflow::make(name, initial, std::move(states), std::move(moves), out);
  if (!out) throw std::logic_error(problems.front().where + ": " + problems.front().message);
  return std::move(*out);
}

// The table of the example configuration, with a state that only an operator leads out of its end.
inline workflow payment() {
  using namespace std::chrono_literals;
  std::vector<move> moves;
  add(moves, {"accepted"}, "submitted", "processing", {client});
  add(moves, {"accepted"}, "progress", "processing", {provider});
  add(moves, {"accepted", "processing", "unknown", "requires_review"}, "complete", "completed", {provider});
  add(moves, {"accepted", "processing", "unknown", "requires_review"}, "fail", "failed", {provider});
  add(moves, {"accepted", "processing"}, "overdue", "unknown", {clock});
  add(moves, {"unknown"}, "escalate", "requires_review", {clock});
  add(moves, {"unknown", "requires_review"}, "expire", "expired", {operator_});
  add(moves, {"accepted"}, "cancel", "cancelled", {client});
  add(moves, {"unknown", "requires_review"}, "resolve_completed", "completed", {operator_}, "statement");
  add(moves, {"failed"}, "reopen", "requires_review", {operator_}, "statement");
  return made("payment", "accepted",
              {limited("accepted", "Accepted, waiting to be sent", 15min, "overdue", "checkout"),
               limited("processing", "In progress at the provider", 30min, "overdue", "payments-ops"),
               closed("completed", "Completed", true), closed("failed", "Rejected by the provider"),
               limited("unknown", "Being checked with the provider", 24h, "escalate", "payments-ops"),
               open("requires_review", "Being reviewed"), closed("cancelled", "Cancelled"), closed("expired", "Expired")},
              std::move(moves));
}

}  // namespace recibo::transition::tables
