// The events of one request (`extract.each`). Pure.
#pragma once

#include "recibo/core/json_value.hpp"

#include <string_view>
#include <vector>

namespace recibo::receive {

// Adds the elements that `each` names within a value, in order: a JSON Pointer, with `*` for every element of a list on the way.
// An object stands for a list of itself. They live as long as `within`. False: there is no list of them anywhere.
bool collect_elements(const json_value& within, std::string_view each, std::vector<const json_value*>& out);

}  // namespace recibo::receive
