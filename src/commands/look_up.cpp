// recibo look-up: has every open operation of a provider looked up, or its list of events read, after an outage (R44). It writes
// what is wanted; the instances that serve do it, at the provider's rate.
#include "commands.hpp"

#include "wait.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/storage/event_lists.hpp"
#include "recibo/storage/look_ups.hpp"

#include <CLI/CLI.hpp>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <cstdlib>
#include <ostream>

namespace recibo::commands {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds query_limit{10}, poll_every{1};

struct wanted {
  std::string provider, accepted_after, since, actor;
  bool list = false;
  int wait_s = 0;
};

bool is_done(const storage::catch_up_report& r) { return r.done(); }
bool is_done(const storage::event_list_report& r) { return r.ended_at.has_value(); }

// Starts it and reads how far it has come, until it is done, or `until`.
template <class Report, class Start, class Read>
awaitable<result<Report>> follow(boost::asio::io_context& context, secret url, Start start, Read read,
                                 steady_clock::time_point until) {
  postgres::pool pool(context.get_executor(), url, 1);
  const auto id = co_await start(pool);
  result<Report> out = error(transient::database_away);
  if (!id) {
    out = id.error();
  } else {
    boost::asio::steady_timer timer(context);
    for (;;) {
      auto report = co_await read(pool, *id, steady_clock::now() + query_limit);
      if (!report) {
        out = report.error();
        break;
      }
      if (!*report) {
        out = error(permanent::not_found, "it is gone");
        break;
      }
      out = std::move(**report);
      if (is_done(*out) || steady_clock::now() >= until) break;
      timer.expires_after(poll_every);
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
  }
  pool.close();
  co_return out;
}

std::optional<sys_micros> read_since(context& ctx, const std::string& text, const char* option, std::chrono::hours span) {
  if (text.empty()) return now() - span;
  const auto at = parse_rfc3339(text);
  if (at) return *at;
  *ctx.err << "recibo look-up: " << option << ": " << at.error().detail << '\n';
  return std::nullopt;
}

int not_read(context& ctx, const error& why) {
  *ctx.err << "recibo look-up: " << code_word(why.code) << ": " << why.detail << '\n';
  return why.is_permanent() ? exit_wrong : exit_away;
}

int run_catch_up(context& ctx, const wanted& w, const secret& url, sys_micros since) {
  boost::asio::io_context io(1);
  const auto until = steady_clock::now() + std::chrono::seconds(w.wait_s);
  const auto start = [&](postgres::pool& pool) {
    return storage::start_catch_up(pool, w.provider, w.actor, since, steady_clock::now() + query_limit);
  };
  const auto done = wait_for(io, follow<storage::catch_up_report>(io, url, start, storage::read_catch_up, until));
  if (!done) return not_read(ctx, done.error());
  *ctx.out << "catch-up " << to_string(done->id) << " of " << done->provider << ": " << done->asked
           << " operations are looked up\n"
           << "  " << done->answered << " answered, " << done->healed << " healed, " << done->review << " for review, "
           << done->failed << " given up, " << done->open << " open\n";
  if (done->done()) return exit_fine;
  *ctx.out << "not done yet: GET /v1/catch-ups/" << to_string(done->id) << " tells how far it has come\n";
  return w.wait_s > 0 ? exit_not_so : exit_fine;
}

int run_event_list(context& ctx, const wanted& w, const secret& url, sys_micros since) {
  boost::asio::io_context io(1);
  const auto until = steady_clock::now() + std::chrono::seconds(w.wait_s);
  const auto start = [&](postgres::pool& pool) {
    return storage::start_event_list(pool, w.provider, w.actor, since, steady_clock::now() + query_limit);
  };
  const auto done = wait_for(io, follow<storage::event_list_report>(io, url, start, storage::read_event_list, until));
  if (!done) return not_read(ctx, done.error());
  *ctx.out << "event list " << to_string(done->id) << " of " << done->provider << ": " << done->events << " events in "
           << done->pages << " pages\n"
           << "  " << done->healed << " healed, " << done->known << " known, " << done->parked << " parked, " << done->review
           << " for review, " << done->failed << " not understood\n";
  if (done->ended_at && !done->reason) return exit_fine;
  if (done->ended_at) {
    *ctx.out << "given up: " << *done->reason << '\n';
    return exit_not_so;
  }
  *ctx.out << "not done yet: GET /v1/event-lists/" << to_string(done->id) << " tells how far it has come\n";
  return w.wait_s > 0 ? exit_not_so : exit_fine;
}

int run_look_up(context& ctx, const wanted& w) {
  if (w.list ? !w.accepted_after.empty() : !w.since.empty()) {
    *ctx.err << "recibo look-up: --since belongs to --list, --accepted-after to looking up operations\n";
    return exit_wrong;
  }
  const auto since = w.list ? read_since(ctx, w.since, "--since", std::chrono::hours(24))
                            : read_since(ctx, w.accepted_after, "--accepted-after", std::chrono::hours(30 * 24));
  if (!since) return exit_wrong;
  const auto settings = load_settings(ctx, true);
  if (!settings) return ctx.exit_code;
  const auto of = settings->providers.find(w.provider);
  if (of == settings->providers.end()) {
    *ctx.err << "recibo look-up: " << w.provider << " is no provider of this configuration\n";
    return exit_wrong;
  }
  if (w.list ? !of->second.list : !of->second.status) {
    *ctx.err << "recibo look-up: " << w.provider
             << (w.list ? " has no catch_up: its events are not listed\n" : " has no status: it cannot be asked\n");
    return exit_wrong;
  }
  log::init("error", settings->log_format, log::stream::standard_error);
  return w.list ? run_event_list(ctx, w, settings->database.url, *since) : run_catch_up(ctx, w, settings->database.url, *since);
}

}  // namespace

void add_look_up(CLI::App& app, context& ctx) {
  CLI::App* const command = app.add_subcommand(
      "look-up", "Have every open operation of a provider looked up, or its list of events read, after an outage");
  const auto w = std::make_shared<wanted>();
  if (const char* user = std::getenv("USER"); user != nullptr && *user != '\0') {
    w->actor = user;
  } else {
    w->actor = "recibo look-up";
  }
  command->add_option("provider", w->provider, "A provider with `status`, or with `catch_up`")->required()->type_name("PROVIDER");
  command->add_flag("--list", w->list, "Read the provider's list of events, instead of asking about each operation");
  command->add_option("--since", w->since, "With --list: events since then (RFC 3339; default: a day)");
  command->add_option("--accepted-after", w->accepted_after, "Only operations accepted since then (RFC 3339; default: 30 days)");
  command->add_option("--wait", w->wait_s, "Wait so many seconds until it is done, and say what it healed")
      ->check(CLI::Range(0, 86400));
  command->add_option("--actor", w->actor, "Who; on record (default: $USER)");
  command->callback([&ctx, w] { ctx.exit_code = run_look_up(ctx, *w); });
}

}  // namespace recibo::commands
