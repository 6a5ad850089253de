// What workflow::make() asks of a table. Private to transition.
#pragma once

#include "recibo/transition/workflow.hpp"

#include <string>
#include <vector>

namespace recibo::transition {

// All problems, in the order of the definition; what depends on names is judged only where the names are known, so that
// one mistake is not reported twice.
std::vector<workflow::problem> check_table(const std::string& name, const std::string& initial, const std::vector<state>& states,
                                           const std::vector<move>& moves, const std::vector<items_rule>& items);

}  // namespace recibo::transition
