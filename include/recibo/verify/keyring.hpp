// The named secrets of one provider, as an immutable snapshot (R13, R38).
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/secret.hpp"

#include <optional>
#include <string>
#include <vector>

namespace recibo::verify {

struct named_secret {
  std::string name;                 // on record with every delivery it verified; never the value
  secret text;                      // as configured, trailing newline of a file already trimmed
  std::optional<sys_micros> from;   // valid from, inclusive
  std::optional<sys_micros> until;  // valid until, exclusive
  // The key bytes after the scheme's key_rule; filled by the loader, so that bad text is found by `check`.
  secret key;

  bool valid_at(sys_micros at) const noexcept { return (!from || *from <= at) && (!until || at < *until); }
};

struct keyring {
  std::vector<named_secret> secrets;  // in the order of the configuration: current first
};

}  // namespace recibo::verify
