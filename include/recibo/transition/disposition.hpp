// What was decided about a verified callback: the words of contract section 4, and the hint's.
#pragma once

#include <optional>
#include <span>
#include <string_view>

namespace recibo::transition {

enum class disposition {
  applied,            // recorded; a legal transition happened
  redundant,          // recorded; says again what is already so
  partial,            // recorded; some items or events of one request were applied
  duplicate,          // same key, same content: the first answer's result again
  stale,              // recorded as evidence; older than what is known; changed nothing
  parked,             // recorded; its operation is not known yet
  review,             // recorded; contradicts the state; a person will decide
  conflict,           // same key, other content; recorded for review
  unmapped,           // authentic and well-formed, its event is not in the provider's map
  unprocessable,      // authentic but not understandable; kept with its raw body
  unknown_operation,  // only with `unmatched: reject`; a count only
  ignored,            // by rule; a count only
  hint,               // recorded; says nothing itself: what it is about is looked up
};

std::string_view to_string(disposition d) noexcept;
std::optional<disposition> parse_disposition(std::string_view word) noexcept;

// Whether the idempotency key is taken by a callback with this disposition (the matrix of contract section 4).
// `parked` is kept once by its park row instead, and `duplicate` finds the key taken already: both false.
bool claims_key(disposition d) noexcept;

// What the elements of one request come to: the one word that all of them have; `applied` where each was applied or said
// nothing new; `stale` where none was applied and none of them needs anybody; else `partial`. Elements that are ignored by
// rule count only where all are. Of nothing: ignored.
disposition combined(std::span<const disposition> elements) noexcept;

}  // namespace recibo::transition
