// answers of a provider (contract section 4).
#pragma once

#include "reader.hpp"

#include "recibo/config/settings.hpp"

namespace recibo::config {

// Overrides what `out` already holds from the provider's preset.
void read_answers(reading& r, const field& f, answers& out);

}  // namespace recibo::config
