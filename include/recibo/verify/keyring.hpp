// The named secrets of one provider, as an immutable snapshot (R13, R38).
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/core/secret.hpp"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace recibo::verify {

struct scheme;
struct prepared_key;

struct named_secret {
  std::string name;                 // on record with every delivery it verified; never the value
  secret text;                      // as configured, trailing newline of a file already trimmed
  std::optional<sys_micros> from;   // valid from, inclusive
  std::optional<sys_micros> until;  // valid until, exclusive
  // The key bytes after the scheme's key_rule; filled by prepare(), so that bad text is found by `check`.
  secret key;
  // The same made ready for one scheme: HMAC states, a parsed public key. Immutable, shared by copies and threads.
  std::shared_ptr<const prepared_key> ready;

  bool valid_at(sys_micros at) const noexcept { return (!from || *from <= at) && (!until || at < *until); }
};

struct keyring {
  std::vector<named_secret> secrets;  // in the order of the configuration: current first
};

// Fills `key` and `ready` of a secret for a scheme, from its text.
// permanent::invalid_configuration: empty, only blanks, or not in the form that the scheme asks for: not base64, no public
// key, a private key, a part that is not there. The detail never holds the secret.
result<void> prepare(const scheme& how, named_secret& one);

}  // namespace recibo::verify
