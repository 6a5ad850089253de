// What is left of a failed callback of which something was understood: events of its request, and elements of its list of items
// (failed_callbacks.left_out).
#pragma once

#include "recibo/core/ids.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::record {

struct left_part {
  // Place of the event among those of its request; nullopt: the request is one event.
  std::optional<std::size_t> part;
  // The delivery of this event, where it has one of its own already.
  std::optional<delivery_id> delivery;
  // Places of the elements of its list of items; empty: the whole event.
  std::vector<std::size_t> items;

  friend bool operator==(const left_part&, const left_part&) = default;
};

struct replay;
// What is left of a request: `stored` as it is in the row; where that is empty, every event that `by` says there are.
std::vector<left_part> left_of(std::string_view stored, const replay& by);
// The one that `by` replays; `left.end()`: it is decided already.
std::vector<left_part>::iterator replayed_part(std::vector<left_part>& left, const replay& by);

// Whether elements of a list of items are left, as it is stored.
bool speaks_of_items(std::string_view stored);

std::string write_left_out(const std::vector<left_part>& left);
// Of what write_left_out() wrote; empty for anything else.
std::vector<left_part> read_left_out(std::string_view text);

}  // namespace recibo::record
