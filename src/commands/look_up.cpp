// recibo look-up: has every open operation of a provider looked up, after an outage (R44). It writes what is wanted; the
// instances that serve do it, at the provider's rate.
#include "commands.hpp"

#include "wait.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/observe/log.hpp"
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
  std::string provider, since, actor;
  int wait_s = 0;
};

// Until it is done, or `until`: then as far as it has come.
awaitable<result<storage::catch_up_report>> run_catch_up(boost::asio::io_context& context, secret url, wanted w, sys_micros since,
                                                         steady_clock::time_point until) {
  postgres::pool pool(context.get_executor(), url, 1);
  const auto id = co_await storage::start_catch_up(pool, w.provider, w.actor, since, steady_clock::now() + query_limit);
  result<storage::catch_up_report> out = error(transient::database_away);
  if (!id) {
    out = id.error();
  } else {
    boost::asio::steady_timer timer(context);
    for (;;) {
      auto report = co_await storage::read_catch_up(pool, *id, steady_clock::now() + query_limit);
      if (!report) {
        out = report.error();
        break;
      }
      if (!*report) {
        out = error(permanent::not_found, "the catch-up is gone");
        break;
      }
      out = std::move(**report);
      if (out->done() || steady_clock::now() >= until) break;
      timer.expires_after(poll_every);
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
  }
  pool.close();
  co_return out;
}

int run_look_up(context& ctx, const wanted& w) {
  auto since = now() - std::chrono::hours(30 * 24);
  if (!w.since.empty()) {
    const auto at = parse_rfc3339(w.since);
    if (!at) {
      *ctx.err << "recibo look-up: --accepted-after: " << at.error().detail << '\n';
      return exit_wrong;
    }
    since = *at;
  }
  const auto settings = load_settings(ctx, true);
  if (!settings) return ctx.exit_code;
  const auto of = settings->providers.find(w.provider);
  if (of == settings->providers.end() || !of->second.status) {
    *ctx.err << "recibo look-up: " << w.provider
             << (of == settings->providers.end() ? " is no provider of this configuration\n"
                                                 : " has no status: it cannot be asked\n");
    return exit_wrong;
  }
  log::init("error", settings->log_format, log::stream::standard_error);
  boost::asio::io_context context(1);
  const auto until = steady_clock::now() + std::chrono::seconds(w.wait_s);
  const auto done = wait_for(context, run_catch_up(context, settings->database.url, w, since, until));
  if (!done) {
    *ctx.err << "recibo look-up: " << code_word(done.error().code) << ": " << done.error().detail << '\n';
    return done.error().is_permanent() ? exit_wrong : exit_away;
  }
  *ctx.out << "catch-up " << to_string(done->id) << " of " << done->provider << ": " << done->asked
           << " operations are looked up\n"
           << "  " << done->answered << " answered, " << done->healed << " healed, " << done->review << " for review, "
           << done->failed << " given up, " << done->open << " open\n";
  if (done->done()) return exit_fine;
  *ctx.out << "not done yet: GET /v1/catch-ups/" << to_string(done->id) << " tells how far it has come\n";
  return w.wait_s > 0 ? exit_not_so : exit_fine;
}

}  // namespace

void add_look_up(CLI::App& app, context& ctx) {
  CLI::App* const command = app.add_subcommand("look-up", "Have every open operation of a provider looked up, after an outage");
  const auto w = std::make_shared<wanted>();
  if (const char* user = std::getenv("USER"); user != nullptr && *user != '\0') {
    w->actor = user;
  } else {
    w->actor = "recibo look-up";
  }
  command->add_option("provider", w->provider, "A provider with `status`")->required()->type_name("PROVIDER");
  command->add_option("--accepted-after", w->since, "Only operations accepted since then (RFC 3339; default: 30 days)");
  command->add_option("--wait", w->wait_s, "Wait so many seconds until it is done, and say what it healed")
      ->check(CLI::Range(0, 86400));
  command->add_option("--actor", w->actor, "Who; on record (default: $USER)");
  command->callback([&ctx, w] { ctx.exit_code = run_look_up(ctx, *w); });
}

}  // namespace recibo::commands
