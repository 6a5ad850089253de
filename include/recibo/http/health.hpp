// What /livez and /readyz answer, and whether this replica trusts its own clock (contract section 3, decision 11).
// Both listeners show it; the application knows the truth behind it.
#pragma once

#include "recibo/http/message.hpp"

namespace recibo::http {

// Called on the listener's thread; must not block.
class health {
 public:
  virtual ~health() = default;
  // 200 while the process runs.
  virtual response livez() = 0;
  // 200 only when a callback could be recorded now; else 503 with the reasons.
  virtual response readyz() = 0;
  // Our clock and the database's disagree by more than a quarter of a tolerance: time stamps cannot be judged, and the
  // sender is not to blame for them.
  virtual bool clock_in_doubt() const noexcept { return false; }
};

}  // namespace recibo::http
