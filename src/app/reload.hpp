// New settings, all or nothing (R38): SIGHUP, POST /v1/config/reload, and secrets whose files changed.
#pragma once

#include "recibo/api/service.hpp"
#include "recibo/config/snapshot.hpp"
#include "recibo/observe/rotation.hpp"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

namespace recibo::app {

// Lives on one thread; everything it is given outlives it.
class reloader {
 public:
  // `taken` is told of settings that are now in force.
  reloader(config::snapshot& settings, std::filesystem::path file, observe::rotation_metrics& metrics,
           std::function<void(const config::settings&)> taken)
      : settings_(settings), file_(std::move(file)), metrics_(metrics), taken_(std::move(taken)) {}

  // Reads the file and everything it includes. On any problem the settings in force stay whole. What cannot change while
  // the process runs (listeners, database, recorder) is kept as it is, with a warning.
  api::reloaded reload(const std::string& actor);

  // Looks whether files or folders of secrets changed, and takes the secrets anew once two looks agree, so that files that
  // are just being written are left in peace. Edits of the configuration itself wait for reload().
  void look_at_secrets();

  const std::optional<api::reload_record>& last() const noexcept { return last_; }

 private:
  api::reloaded take(config::loaded read, const std::string& actor);
  void take_if_changed(config::loaded read);

  config::snapshot& settings_;
  std::filesystem::path file_;
  observe::rotation_metrics& metrics_;
  std::function<void(const config::settings&)> taken_;
  std::optional<api::reload_record> last_;
  // Of the settings in force; null until the first look, which reads them once more.
  std::shared_ptr<const config::origin> origin_;
  // How the secrets' files looked before the settings in force (or what was refused instead) were read, and at the last look.
  std::string read_, seen_;
};

}  // namespace recibo::app
