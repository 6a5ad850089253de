// What a callback says of the items of its operation (R7). Pure.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/json_value.hpp"
#include "recibo/record/work.hpp"

#include <vector>

namespace recibo::receive {

// The elements that the provider's `items` finds in `body`, each read by itself: one that cannot be understood says so and
// leaves the others alone. Empty: the body speaks of no item.
// permanent::malformed_field   where a list is wanted stands something else, or there are too many elements
result<std::vector<record::item_news>> extract_items(const config::provider& how, const json_value& body);

}  // namespace recibo::receive
