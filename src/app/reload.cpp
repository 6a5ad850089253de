#include "reload.hpp"

#include "recibo/observe/log.hpp"

namespace recibo::app {
namespace {

bool same_listener(const config::listener& a, const config::listener& b) { return a.address == b.address && a.port == b.port; }

bool needs_restart(const config::settings& now, const config::settings& next) {
  return !same_listener(now.callbacks, next.callbacks) || !same_listener(now.api, next.api) ||
         now.database.url.reveal() != next.database.url.reveal() || now.database.pool != next.database.pool ||
         now.record.writers != next.record.writers || now.record.batch != next.record.batch ||
         now.record.queue != next.record.queue || now.outbound.ca != next.outbound.ca ||
         now.outbound.connect_to != next.outbound.connect_to;
}

}  // namespace

api::reloaded reloader::reload(const std::string& actor) {
  // Looked at before it is read: what changes in between is noticed at the next look.
  if (origin_) read_ = seen_ = config::look_of(origin_->watched);
  return take(config::load_file(file_, config::process_environment(), config::file_kinds::regular), actor);
}

void reloader::look_at_secrets() {
  // Who started us read the file, and kept the settings alone. What changed since then is taken here.
  if (!origin_) {
    take_if_changed(config::load_file(file_, config::process_environment(), config::file_kinds::regular));
    // What is refused now is refused once; the next reload brings an origin.
    if (!origin_) origin_ = std::make_shared<const config::origin>();
    return;
  }
  if (origin_->watched.empty()) return;
  auto now_seen = config::look_of(origin_->watched);
  const bool settled = now_seen == seen_;
  seen_ = std::move(now_seen);
  if (!settled || seen_ == read_) return;
  read_ = seen_;
  // Files that are named now and were not before look different by that alone: they are read once more, in silence.
  take_if_changed(config::load_again(file_.string(), *origin_));
}

void reloader::take_if_changed(config::loaded read) {
  const bool same = read.settings && read.settings->digest == settings_.get()->digest;
  // What was refused and went back to what is in force is mended: it must not stand there as refused for ever.
  const bool mended = last_ && !last_->what.taken;
  if (same && !mended)
    origin_ = std::move(read.origin);
  else
    take(std::move(read), "a changed secret");
}

api::reloaded reloader::take(config::loaded read, const std::string& actor) {
  const auto in_force = settings_.get();
  api::reloaded out;
  out.problems = std::move(read.problems);
  out.warnings = std::move(read.warnings);
  if (read.settings && read.settings->database.url.empty())
    out.problems.push_back({file_.string(), 0, 0, "database.url is needed to serve", config::severity::error});
  out.taken = out.problems.empty();
  out.digest = out.taken ? read.settings->digest : in_force->digest;
  metrics_.reload(out.taken, now());
  if (!out.taken) {
    for (const auto& p : out.problems) log::error("configuration refused", {{"at", config::to_string(p)}, {"actor", actor}});
    last_ = api::reload_record{now(), actor, out};
    return out;
  }
  if (needs_restart(*in_force, *read.settings))
    out.warnings.push_back({file_.string(), 0, 0,
                            "address and port of listeners, database, record and outbound take effect at the next start",
                            config::severity::warning});
  for (const auto& w : out.warnings) log::warn("configuration", {{"at", config::to_string(w)}});
  settings_.set(read.settings);
  origin_ = std::move(read.origin);
  taken_(*read.settings);
  log::init(read.settings->log_level, read.settings->log_format, log::stream::standard_output);
  log::info("configuration taken", {{"digest", out.digest}, {"before", in_force->digest}, {"actor", actor}});
  last_ = api::reload_record{now(), actor, out};
  return out;
}

}  // namespace recibo::app
