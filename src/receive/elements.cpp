#include "elements.hpp"

#include "recibo/config/each.hpp"

#include "sources.hpp"

namespace recibo::receive {

bool collect_elements(const json_value& within, std::string_view each, std::vector<const json_value*>& out) {
  const std::size_t every = config::find_every(each);
  const auto* list = find_pointer(within, each.substr(0, every));
  const bool one = list != nullptr && list->is(json_value::kind::object);
  if (list == nullptr || (!one && !list->is(json_value::kind::array))) return false;
  std::vector<const json_value*> found;
  if (one) found.push_back(list);
  for (const json_value& element : list->elements) found.push_back(&element);
  if (every == std::string_view::npos) {
    out.insert(out.end(), found.begin(), found.end());
    return true;
  }
  // An empty list on the way is a list all the same, without an event.
  bool any = found.empty();
  for (const json_value* element : found) any = collect_elements(*element, each.substr(every + config::every.size()), out) || any;
  return any;
}

}  // namespace recibo::receive
