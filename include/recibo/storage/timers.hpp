// Named SQL and row mapping of timers: the write path's half, which sets, ends and fires them in the transaction of the move,
// and what is due. Every time that is compared is the database's own (decision 29).
#pragma once

#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"
#include "recibo/transition/timer.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

// Older than this, the sign of life of `intake` is none: no replica is ready, and nothing may run out (R44).
inline constexpr std::chrono::seconds intake_alive_for{10};

// A timer of an operation in hand; read after the lock.
struct timer_row {
  operation_id operation;
  transition::timer_kind kind = transition::timer_kind::limit;
  sys_micros due_at{}, set_at{};
  std::optional<sys_micros> was_due_at;  // but for outages; nullopt: none has put it off
  std::optional<std::string> event;      // nullopt: the configuration has to be asked
  std::int32_t version = 0;
  bool fired = false;
  bool due = false;      // it has run out, and intake is up
  sys_micros read_at{};  // the transaction's time
};
void append_find_timers(checked_pipeline& to, const std::vector<operation_id>& operations);
std::vector<timer_row> read_timers(const postgres::rows& from);
// Those that ended since the oldest of these operations' timers was set, or go on, in the order of their beginnings: ours, and
// those of these operations' providers.
struct downtime_row {
  transition::downtime when;
  std::string provider;  // whose it is; empty: ours, so that it counts for all
};
void append_find_downtimes(checked_pipeline& to, const std::vector<operation_id>& operations);
std::vector<downtime_row> read_downtimes(const postgres::rows& from);

// Sets timers, in place of those of the same kind: `after` from the transaction's time on, or due at `at`. `since`: what it
// counts from, where that is not now, so that outages since then put it off. `was_due_at`: see timer_row.
struct set_timers {
  bulk rows;
  set_timers();
  void add(const operation_id& id, transition::timer_kind kind, std::optional<sys_micros> at,
           std::optional<std::chrono::seconds> after, std::string_view event, std::int32_t version,
           std::optional<sys_micros> since = std::nullopt, std::optional<sys_micros> was_due_at = std::nullopt);
};
// There need be none.
struct ended_timers {
  bulk rows;
  ended_timers();
  void add(const operation_id& id, transition::timer_kind kind);
};
// Acted on, and over only when the state or the operation is.
struct fired_timers {
  bulk rows;
  fired_timers();
  void add(const operation_id& id, transition::timer_kind kind);
};
// The deadlines of operations that have ended and go on after all. One that has passed by then is over: it is not raised, again
// or late, for whoever reopened it has looked.
struct resumed_deadlines {
  bulk rows;
  resumed_deadlines();
  void add(const operation_id& id, const std::optional<std::int32_t>& corrected, std::int32_t version);
};

// For the clock's rounds: what has run out, the oldest first; reviews that nobody was reminded of.
// $1 rows at most; request_id, kind. Without those whose operation somebody holds just now.
extern const postgres::statement select_due_timers;
// $1 rows at most; id, request_id (NULL: it has no operation), kind, owner. Without those that somebody acts on just now.
extern const postgres::statement select_due_reviews;
// A step of a pass over all operations: those that are open without a timer that they should have get it; a binary that knew no
// timers moved them, or their limit is the provider's alone. $1 operations to look at, $2 seconds between two passes, $3
// providers, $4 states and $5 their limits in seconds (NULL: none) where these are the providers' own; how many timers
// were set, whether there is more to see.
extern const postgres::statement repair_timers;
// $1 seconds, $2 providers that can be asked, $3 an ID for each, $4 providers whose events are listed, $5 an ID for each: a sign
// of life, and, where the last is older than that, the downtime between them, a catch-up for each of $2 (all open operations) and
// a reading of the list of each of $4 (from an hour before it); began_at, ended_at (NULL: none).
extern const postgres::statement beat_intake;

}  // namespace recibo::storage
