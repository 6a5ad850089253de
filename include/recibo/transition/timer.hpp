// When something runs out that was set to (R22), and what an outage does to it (R44). Pure: every time is an argument, all of
// them by one clock, the database's; so no zone and no step of a clock here changes what comes of it.
#pragma once

#include "recibo/core/clock.hpp"

#include <chrono>
#include <optional>
#include <span>
#include <string_view>

namespace recibo::transition {

enum class timer_kind {
  limit,     // how long the present state may last, by the workflow or the provider's own limits
  deadline,  // when the client wants it done
};

std::string_view to_string(timer_kind k) noexcept;  // "limit", "deadline"
std::optional<timer_kind> parse_timer_kind(std::string_view word) noexcept;

// What a deadline raises; a limit names its event itself.
inline constexpr std::string_view deadline_event = "overdue";

// When no replica was ready to take callbacks, or a provider was out.
struct downtime {
  sys_micros began{}, ended{};
  bool goes_on = false;  // it has not ended: `ended` is now
};

// While an outage goes on, what runs out is looked at again after so long.
inline constexpr std::chrono::seconds outage_look_every{30};

// When a timer runs out that was set at `set` and is due at `due`, after these downtimes, in the order of their beginnings.
// After each, what was missed is still being sent for `resend_gap`.
// A limit stands still meanwhile: it is put off by as long as it ran within [began, ended + gap]. A deadline is a point in
// time: where it falls within, it waits for the end. One that goes on has no gap behind it yet: what falls within is put off by
// what has passed of it, and looked at again. Downtimes that ended before `set` are over and change nothing. One that was put
// off before is reckoned from its first `due` again: downtimes that follow each other within the gap are one pause.
sys_micros put_off(timer_kind what, sys_micros set, sys_micros due, std::span<const downtime> downtimes,
                   std::chrono::seconds resend_gap) noexcept;

}  // namespace recibo::transition
