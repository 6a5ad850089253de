// recibo replay dead: sends dead notifications again, under the same event IDs (R20). It works on the database itself, as the API
// does; whichever instance serves then sends them. It counts first, and what it cannot do it says.
#include "replay_dead.hpp"

#include "commands.hpp"
#include "wait.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/storage/destinations.hpp"
#include "recibo/storage/reads_outbox.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>
#include <ostream>
#include <set>

namespace recibo::commands {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds dead_step_time{30};
constexpr int dead_step_size = 1'000;

struct dead_wishes {
  std::vector<std::string> filters;
  std::string id, reason, actor;
  bool dry_run = false;
};

// key=value → the filter; a sentence about what is wrong with one, else empty.
std::string read_dead_filters(const std::vector<std::string>& given, storage::outbox_filter& out) {
  const std::pair<const char*, std::optional<std::string>*> texts[] = {
      {"destination", &out.destination}, {"type", &out.type}, {"reason", &out.reason}, {"request_id", &out.request_id}};
  const std::pair<const char*, std::optional<sys_micros>*> times[] = {{"created_after", &out.created_after},
                                                                      {"created_before", &out.created_before},
                                                                      {"dead_after", &out.dead_after},
                                                                      {"dead_before", &out.dead_before}};
  for (const auto& one : given) {
    const auto equals = one.find('=');
    if (equals == std::string::npos || equals + 1 == one.size()) return "--filter: \"" + one + "\" is not KEY=VALUE";
    const auto key = one.substr(0, equals), value = one.substr(equals + 1);
    const auto named = [&](const auto& entry) { return key == entry.first; };
    const auto text = std::find_if(std::begin(texts), std::end(texts), named);
    const auto time = std::find_if(std::begin(times), std::end(times), named);
    if (text != std::end(texts)) {
      *text->second = value;
    } else if (time != std::end(times)) {
      const auto at = parse_rfc3339(value);
      if (!at) return "--filter: " + key + ": " + at.error().detail;
      *time->second = *at;
    } else if (key == "class") {
      if (value != "theirs" && value != "ours") return "--filter: class is theirs or ours";
      out.reason_class = value;
    } else {
      return "--filter: \"" + key +
             "\" is none of destination, type, reason, class, request_id, created_after, created_before, dead_after, dead_before";
    }
  }
  return {};
}

struct dead_report {
  std::int64_t matched = 0, replayed = 0, unconfigured = 0;
  std::vector<storage::dead_group> groups;
  std::string action;
  // With --id: the status of one that is there and not dead; empty: it is dead, or there is none.
  std::string other_status;
  // Where nothing is sent for now, and why.
  std::vector<std::pair<std::string, std::string>> stopped;
};

// Which of the destinations do not send what is made pending.
awaitable<result<void>> look_for_stops(postgres::pool& pool, const config::settings& settings, dead_report& out) {
  std::set<std::string> names;
  for (const auto& group : out.groups) names.insert(group.destination);
  for (const auto& name : names) {
    const auto row = co_await storage::read_destination(pool, name, steady_clock::now() + dead_step_time);
    if (!row) co_return row.error();
    if (!settings.destinations.contains(name)) {
      out.stopped.emplace_back(name, "is not in this configuration: nobody sends to it, and they stay dead");
    } else if (row->paused_at) {
      out.stopped.emplace_back(name, "is paused (" + row->paused_reason + "): they wait until it is resumed");
    } else if (row->breaker != "closed") {
      out.stopped.emplace_back(name, "has an open breaker: they wait until it answers again");
    }
  }
  co_return result<void>();
}

// One by its ID. A replay of what is not dead does nothing, and says what it is instead.
awaitable<result<void>> replay_by_id(postgres::pool& pool, const config::settings& settings, notification_id id, bool dry_run,
                                     storage::outbox_action why, dead_report& out) {
  const auto until = steady_clock::now() + dead_step_time;
  auto found = co_await storage::find_notification(pool, id, until);
  if (!found) co_return found.error();
  if (!*found) co_return result<void>();
  const auto& n = (*found)->notification;
  if (n.status != "dead") {
    out.other_status = n.status;
    co_return result<void>();
  }
  out.matched = 1;
  out.groups.push_back({n.destination, n.reason.value_or(""), n.reason_class.value_or(""), 1});
  if (!settings.destinations.contains(n.destination)) out.unconfigured = 1;
  if (dry_run || out.unconfigured > 0) co_return result<void>();
  const auto moved = co_await storage::replay_notification(pool, id, std::move(why), until);
  if (!moved) co_return moved.error();
  out.replayed = *moved ? 1 : 0;
  co_return result<void>();
}

awaitable<result<void>> replay_by_filter(postgres::pool& pool, const config::settings& settings, storage::outbox_filter which,
                                         bool dry_run, storage::outbox_action why, dead_report& out) {
  auto groups = co_await storage::group_dead(pool, which, steady_clock::now() + dead_step_time);
  if (!groups) co_return groups.error();
  out.groups = std::move(*groups);
  std::set<std::string> names;
  for (const auto& group : out.groups) {
    out.matched += group.count;
    if (settings.destinations.contains(group.destination)) {
      names.insert(group.destination);
    } else {
      out.unconfigured += group.count;
    }
  }
  for (const auto& name : names) {
    which.destination = name;
    // Until a step finds no more: each is replayed once by one action, so that this ends.
    for (bool more = !dry_run; more;) {
      const auto moved = co_await storage::replay_dead(pool, which, why, dead_step_size, steady_clock::now() + dead_step_time);
      if (!moved) co_return moved.error();
      out.replayed += *moved;
      more = *moved == dead_step_size;
    }
  }
  co_return result<void>();
}

awaitable<result<dead_report>> replay_all_dead(boost::asio::io_context& context, std::shared_ptr<const config::settings> settings,
                                               storage::outbox_filter which, std::optional<notification_id> id, dead_wishes w) {
  postgres::pool pool(context.get_executor(), settings->database.url, 1);
  dead_report out;
  storage::outbox_action why;
  why.id = make_id<storage::notification_action_id>(now());
  why.actor = w.actor;
  why.reason = w.reason;
  out.action = to_string(why.id);
  auto work = id ? replay_by_id(pool, *settings, *id, w.dry_run, std::move(why), out)
                 : replay_by_filter(pool, *settings, std::move(which), w.dry_run, std::move(why), out);
  const auto done = co_await std::move(work);
  result<void> looked;
  if (done) looked = co_await look_for_stops(pool, *settings, out);
  pool.close();
  if (!done) co_return done.error();
  if (!looked) co_return looked.error();
  co_return out;
}

int tell(context& ctx, const dead_wishes& w, const dead_report& done) {
  if (!done.other_status.empty()) {
    *ctx.err << "recibo replay dead: it is " << done.other_status << ", not dead: nothing was replayed\n";
    return exit_not_so;
  }
  *ctx.out << done.matched << " dead notifications match\n";
  for (const auto& group : done.groups) {
    *ctx.out << "  " << group.count << " to " << group.destination << ": " << (group.reason.empty() ? "unknown" : group.reason);
    if (!group.reason_class.empty()) *ctx.out << " (" << group.reason_class << ')';
    *ctx.out << '\n';
  }
  if (done.matched == 0 && done.replayed == 0) {
    *ctx.err << "recibo replay dead: nothing was replayed\n";
    return exit_not_so;
  }
  for (const auto& [name, why] : done.stopped) *ctx.out << name << ' ' << why << '\n';
  if (w.dry_run) {
    *ctx.out << "a dry run: nothing was changed\n";
    return exit_fine;
  }
  const auto left = std::max<std::int64_t>(0, done.matched - done.replayed - done.unconfigured);
  if (done.replayed > 0) *ctx.out << "replay " << done.action << '\n';
  *ctx.out << done.replayed << " are sent again, " << left << " are no longer dead\n";
  return done.replayed > 0 ? exit_fine : exit_not_so;
}

int run_dead(context& ctx, const dead_wishes& w) {
  const auto refuse = [&](std::string_view why) {
    *ctx.err << "recibo replay dead: " << why << '\n';
    return exit_wrong;
  };
  storage::outbox_filter which;
  if (const auto wrong = read_dead_filters(w.filters, which); !wrong.empty()) return refuse(wrong);
  std::optional<notification_id> id;
  if (!w.id.empty()) {
    if (!w.filters.empty()) return refuse("--id names one; a filter has no place beside it");
    const auto parsed = parse_id<notification_id>(w.id);
    if (!parsed) return refuse("--id: this is no ID of a notification");
    id = *parsed;
  }
  if (w.reason.find_first_not_of(" \t") == std::string::npos) return refuse("--reason is empty");
  const auto settings = load_settings(ctx, true);
  if (!settings) return ctx.exit_code;
  // Its own records would stand between the lines of the answer.
  log::init("error", settings->log_format, log::stream::standard_error);
  boost::asio::io_context context(1);
  const auto done = wait_for(context, replay_all_dead(context, settings, std::move(which), id, w));
  if (!done) {
    *ctx.err << "recibo replay dead: " << code_word(done.error().code) << ": " << done.error().detail << '\n';
    return done.error().is_permanent() ? exit_wrong : exit_away;
  }
  return tell(ctx, w, *done);
}

}  // namespace

void add_replay_dead(CLI::App& family, context& ctx) {
  const auto w = std::make_shared<dead_wishes>();
  const char* const user = std::getenv("USER");
  w->actor = user != nullptr && *user != '\0' ? user : "recibo replay";
  CLI::App* const dead =
      family.add_subcommand("dead", "Notifications that were given up: they are sent again, under the same IDs");
  dead->add_option("--filter", w->filters,
                   "KEY=VALUE, repeatable: destination, type, reason, class (theirs, ours), request_id, created_after, "
                   "created_before, dead_after, dead_before; without one, all")
      ->type_name("KEY=VALUE");
  dead->add_option("--id", w->id, "One notification, by its ID");
  dead->add_option("--reason", w->reason, "Why; on record")->required();
  dead->add_option("--actor", w->actor, "Who; on record (default: $USER)");
  dead->add_flag("--dry-run", w->dry_run, "Count only; nothing is changed");
  dead->callback([&ctx, w] { ctx.exit_code = run_dead(ctx, *w); });
}

}  // namespace recibo::commands
