// The `handshake` of one provider.
#pragma once

#include "reader.hpp"

#include "recibo/config/settings.hpp"

namespace recibo::config {

// Replaces what the preset brought. `scheme` is nullptr when `verify` could not be read; then nothing is said of secrets.
void read_handshake(reading& r, const field& f, const verify::scheme* scheme, provider& out);

}  // namespace recibo::config
