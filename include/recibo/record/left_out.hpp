// What is left of a failed callback of which something was understood: events of its request, and elements of its list of items
// (failed_callbacks.left_out).
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/ids.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::record {

struct left_part {
  // Place of the event among those of its request; nullopt: the request is one event.
  std::optional<std::size_t> part{};
  // The delivery of this event, where it has one of its own already.
  std::optional<delivery_id> delivery{};
  // Places of the elements of its list of items; empty: the whole event.
  std::vector<std::size_t> items{};
  // Where the lists stood that the places are of (place_of); empty: not known.
  std::string place{};

  friend bool operator==(const left_part&, const left_part&) = default;
};

// Where the provider's requests have their lists of events and of items: with another configuration the same places mean others.
std::string place_of(const config::provider& from);

struct replay;
// What is left of a request, event by event, as extraction reads it now: `stored` as it is in the row; where that is empty, or
// says that all others are left, with every one of its `events`. nullopt: the request is one event.
std::vector<left_part> left_of(std::string_view stored, std::optional<std::size_t> events);
std::vector<left_part> left_of(std::string_view stored, const replay& by);
// The one that `by` replays, of the lists that stand at `place`; `left.end()`: it is decided already.
std::vector<left_part>::iterator replayed_part(std::vector<left_part>& left, const replay& by, std::string_view place);

// Whether elements of a list of items are left, as it is stored.
bool speaks_of_items(std::string_view stored);

// `and_others`: events that are not listed are left too, whole.
std::string write_left_out(const std::vector<left_part>& left, bool and_others = false);
bool leaves_others(std::string_view stored);
// Of what write_left_out() wrote; empty for anything else.
std::vector<left_part> read_left_out(std::string_view text);

}  // namespace recibo::record
