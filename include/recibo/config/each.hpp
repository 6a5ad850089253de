// Where the events of a request stand that carries many (`extract.each`). Pure.
#pragma once

#include <string>
#include <string_view>

namespace recibo::config {

// A token of `each` that stands for every element of a list on the way to the last one.
inline constexpr std::string_view every = "/*";

// Where in `each` the first such token begins; npos: there is none, it names one list.
inline std::size_t find_every(std::string_view each) noexcept {
  for (std::size_t at = each.find(every); at != std::string_view::npos; at = each.find(every, at + 1)) {
    if (at + every.size() == each.size() || each[at + every.size()] == '/') return at;
  }
  return std::string_view::npos;
}

// The JSON Pointer of the first event.
inline std::string first_event(std::string_view each) {
  std::string out(each);
  for (std::size_t at = find_every(out); at != std::string::npos; at = find_every(out)) out.replace(at, every.size(), "/0");
  return out + "/0";
}

}  // namespace recibo::config
