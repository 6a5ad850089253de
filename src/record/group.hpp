// Several events of one request as one piece of work (R41): which of them are still to be decided, and what all come to.
#pragma once

#include "recibo/record/work.hpp"

#include <cstddef>
#include <vector>

namespace recibo::record {

inline bool is_settled(const callback_group& g, std::size_t part) noexcept {
  return part < g.settled.size() && g.settled[part].has_value();
}

// Calls `f` with the callback of this work, or with each of a group that is not settled.
template <class F>
void for_each_callback(const work& w, F f) {
  if (const auto* c = std::get_if<callback>(&w)) f(*c);
  if (const auto* g = std::get_if<callback_group>(&w)) {
    for (std::size_t i = 0; i < g->parts.size(); ++i)
      if (!is_settled(*g, i)) f(g->parts[i]);
  }
}

// What the outcomes of all parts come to: the one answer. A replay where every part that claims its key was one.
outcome combine(const callback_group& g, std::vector<outcome> parts);

// What is answered to a part that a rule ignores.
outcome ignored_part(const callback& c);

}  // namespace recibo::record
