// The canonical JSON of a workflow. Private to transition: the rest of the service sees workflow::definition().
#pragma once

#include "recibo/transition/workflow.hpp"

#include <string>
#include <vector>

namespace recibo::transition {

// Keys sorted, no blanks, states, moves and rules in their order: the same table gives the same bytes on every machine.
// A table without rules of items has the bytes that it had before there were any.
// All text must be valid UTF-8, which make() has checked.
std::string write_definition(const std::string& name, const std::string& initial, const std::vector<state>& states,
                             const std::vector<move>& moves, const std::vector<items_rule>& items);

}  // namespace recibo::transition
