#include "reload.hpp"

#include "recibo/observe/log.hpp"

namespace recibo::app {
namespace {

bool same_listener(const config::listener& a, const config::listener& b) { return a.address == b.address && a.port == b.port; }

bool needs_restart(const config::settings& now, const config::settings& next) {
  return !same_listener(now.callbacks, next.callbacks) || !same_listener(now.api, next.api) ||
         now.database.url.reveal() != next.database.url.reveal() || now.database.pool != next.database.pool ||
         now.record.writers != next.record.writers || now.record.batch != next.record.batch ||
         now.record.queue != next.record.queue || now.outbound.ca != next.outbound.ca;
}

}  // namespace

api::reloaded reloader::reload(const std::string& actor) {
  const auto in_force = settings_.get();
  auto read = config::load_file(file_);
  api::reloaded out;
  out.problems = std::move(read.problems);
  out.warnings = std::move(read.warnings);
  if (read.settings && read.settings->database.url.empty())
    out.problems.push_back({file_.string(), 0, 0, "database.url is needed to serve", config::severity::error});
  if (!out.problems.empty()) {
    for (const auto& p : out.problems) log::error("configuration refused", {{"at", config::to_string(p)}, {"actor", actor}});
    out.digest = in_force->digest;
    return out;
  }
  if (needs_restart(*in_force, *read.settings))
    out.warnings.push_back({file_.string(), 0, 0,
                            "address and port of listeners, database, record and outbound take effect at the next start",
                            config::severity::warning});
  for (const auto& w : out.warnings) log::warn("configuration", {{"at", config::to_string(w)}});
  settings_.set(read.settings);
  taken_(*read.settings);
  log::init(read.settings->log_level, read.settings->log_format, log::stream::standard_output);
  log::info("configuration taken", {{"digest", read.settings->digest}, {"before", in_force->digest}, {"actor", actor}});
  out.taken = true;
  out.digest = read.settings->digest;
  return out;
}

}  // namespace recibo::app
