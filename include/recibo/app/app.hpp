// The composition root: the only place where concrete types meet. Starts, serves, reloads, drains.
#pragma once

#include "recibo/config/settings.hpp"

#include <filesystem>
#include <memory>

namespace recibo::app {

// Serves until SIGTERM or SIGINT, then drains (contract section 3). SIGHUP reloads the configuration from `file`, all or
// nothing. Blocks; call it once, from the main thread. Returns the exit code of the process: 0 after a drain, 2 when a
// listener cannot be bound.
int serve(std::shared_ptr<const config::settings> settings, const std::filesystem::path& file);

}  // namespace recibo::app
