// New settings, all or nothing (R38): SIGHUP and POST /v1/config/reload.
#pragma once

#include "recibo/api/service.hpp"
#include "recibo/config/snapshot.hpp"

#include <filesystem>
#include <functional>
#include <string>

namespace recibo::app {

class reloader {
 public:
  // `taken` is told of settings that are now in force.
  reloader(config::snapshot& settings, std::filesystem::path file, std::function<void(const config::settings&)> taken)
      : settings_(settings), file_(std::move(file)), taken_(std::move(taken)) {}

  // Reads the file and everything it includes. On any problem the settings in force stay whole. What cannot change while
  // the process runs (listeners, database, recorder) is kept as it is, with a warning.
  api::reloaded reload(const std::string& actor);

 private:
  config::snapshot& settings_;
  std::filesystem::path file_;
  std::function<void(const config::settings&)> taken_;
};

}  // namespace recibo::app
