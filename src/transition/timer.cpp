#include "recibo/transition/timer.hpp"

#include <algorithm>

namespace recibo::transition {

std::string_view to_string(timer_kind k) noexcept {
  switch (k) {
    case timer_kind::limit: return "limit";
    case timer_kind::deadline: return "deadline";
  }
  return "";
}

std::optional<timer_kind> parse_timer_kind(std::string_view word) noexcept {
  if (word == "limit") return timer_kind::limit;
  if (word == "deadline") return timer_kind::deadline;
  return std::nullopt;
}

sys_micros put_off(timer_kind what, sys_micros set, sys_micros due, std::span<const downtime> downtimes,
                   std::chrono::seconds resend_gap) noexcept {
  // Up to here every pause is counted: two outages close to each other are one pause, not two.
  auto counted = set;
  for (const auto& one : downtimes) {
    if (one.ended <= set) continue;
    const auto end = one.goes_on ? one.ended : one.ended + resend_gap;
    const auto begin = std::max(one.began, counted);
    if (begin >= due || end <= begin) continue;
    due = what == timer_kind::limit ? due + (end - begin) : std::max(due, end);
    if (one.goes_on) due = std::max(due, end + outage_look_every);
    counted = end;
  }
  return due;
}

}  // namespace recibo::transition
