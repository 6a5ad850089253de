// The canonical JSON of a workflow. Private to transition: the rest of the service sees workflow::definition().
#pragma once

#include "recibo/transition/workflow.hpp"

#include <string>
#include <vector>

namespace recibo::transition {

// Keys sorted, no blanks, states and moves in their order: the same table gives the same bytes on every machine.
// All text must be valid UTF-8, which make() has checked.
std::string write_definition(const std::string& name, const std::string& initial, const std::vector<state>& states,
                             const std::vector<move>& moves);

}  // namespace recibo::transition
