#include "recibo/transition/disposition.hpp"

#include <array>

namespace recibo::transition {
namespace {

constexpr auto all = std::to_array<disposition>({
    disposition::applied,
    disposition::redundant,
    disposition::partial,
    disposition::duplicate,
    disposition::stale,
    disposition::parked,
    disposition::review,
    disposition::conflict,
    disposition::unmapped,
    disposition::unprocessable,
    disposition::unknown_operation,
    disposition::ignored,
    disposition::hint,
});

}  // namespace

std::string_view to_string(disposition d) noexcept {
  switch (d) {
    case disposition::applied: return "applied";
    case disposition::redundant: return "redundant";
    case disposition::partial: return "partial";
    case disposition::duplicate: return "duplicate";
    case disposition::stale: return "stale";
    case disposition::parked: return "parked";
    case disposition::review: return "review";
    case disposition::conflict: return "conflict";
    case disposition::unmapped: return "unmapped";
    case disposition::unprocessable: return "unprocessable";
    case disposition::unknown_operation: return "unknown_operation";
    case disposition::ignored: return "ignored";
    case disposition::hint: return "hint";
  }
  return "";
}

std::optional<disposition> parse_disposition(std::string_view word) noexcept {
  for (const disposition d : all) {
    if (to_string(d) == word) return d;
  }
  return std::nullopt;
}

bool claims_key(disposition d) noexcept {
  switch (d) {
    case disposition::applied:
    case disposition::partial:
    case disposition::redundant:
    case disposition::stale:
    case disposition::review:
    case disposition::hint: return true;
    case disposition::duplicate:
    case disposition::parked:
    case disposition::conflict:
    case disposition::unmapped:
    case disposition::unprocessable:
    case disposition::unknown_operation:
    case disposition::ignored: return false;
  }
  return false;
}

disposition combined(std::span<const disposition> elements) noexcept {
  bool any = false, same = true, applied = false, needs_nobody = true;
  disposition first = disposition::ignored;
  for (const disposition d : elements) {
    if (d == disposition::ignored) continue;
    if (!any) first = d;
    any = true;
    same = same && d == first;
    applied = applied || d == disposition::applied;
    needs_nobody = needs_nobody && (d == disposition::applied || d == disposition::redundant || d == disposition::stale);
  }
  if (!any || same) return first;
  if (!needs_nobody) return disposition::partial;
  return applied ? disposition::applied : disposition::stale;
}

}  // namespace recibo::transition
