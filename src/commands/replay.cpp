// recibo replay failed: takes failed callbacks through the pipeline again, with this configuration (R17, R37). It works on the
// database itself, by the same code as the API, whether an instance serves or not.
#include "commands.hpp"

#include "replay_dead.hpp"
#include "wait.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/receive/replay.hpp"
#include "recibo/record/recorder.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <ostream>

namespace recibo::commands {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds step_time{30};
constexpr int step_size = 200;

struct replay_wishes {
  std::vector<std::string> filters;
  std::string reason, actor;
  bool dry_run = false;
};

// key=value → the filter; a sentence about what is wrong with one, else empty.
std::string read_filters(const std::vector<std::string>& given, storage::failed_filter& out) {
  for (const auto& one : given) {
    const auto equals = one.find('=');
    if (equals == std::string::npos || equals + 1 == one.size()) return "--filter: \"" + one + "\" is not KEY=VALUE";
    const auto key = one.substr(0, equals), value = one.substr(equals + 1);
    if (key == "provider") {
      out.provider = value;
    } else if (key == "disposition") {
      if (value != "unmapped" && value != "unprocessable") return "--filter: disposition is unmapped or unprocessable";
      out.disposition = value;
    } else if (key == "reason") {
      out.reason = value;
    } else if (key == "event") {
      out.event = value;
    } else if (key == "request_id") {
      out.request_id = value;
    } else if (key == "first_seen_after" || key == "first_seen_before") {
      const auto at = parse_rfc3339(value);
      if (!at) return "--filter: " + key + ": " + at.error().detail;
      (key == "first_seen_after" ? out.first_seen_after : out.first_seen_before) = *at;
    } else {
      return "--filter: \"" + key +
             "\" is none of provider, disposition, reason, event, request_id, first_seen_after, first_seen_before";
    }
  }
  return {};
}

struct totals {
  std::int64_t matched = 0, taken = 0, closed = 0;
  std::map<std::string, std::int64_t> by_word;
};

awaitable<result<totals>> run_all(boost::asio::io_context& context, std::shared_ptr<const config::settings> settings,
                                  storage::failed_filter which, receive::replay_order order) {
  postgres::pool pool(context.get_executor(), settings->database.url, 1);
  record::recorder::options how;
  how.database_url = settings->database.url;
  how.writers = 1;
  record::recorder recorder(context.get_executor(), std::move(how));
  recorder.start();
  const receive::replay_record record = [&](record::work what, steady_clock::time_point until) {
    return recorder.record(std::move(what), until);
  };
  const receive::replay_parts with{pool, settings, record};
  result<totals> out = totals();
  std::optional<failed_callback_id> after;
  for (bool first = true; first || after; first = false) {
    auto step = co_await receive::replay_many(with, which, after, step_size, order, steady_clock::now() + step_time);
    if (!step) {
      out = step.error();
      break;
    }
    if (first) out->matched = step->matched;
    out->taken += step->taken;
    out->closed += step->closed;
    for (const auto& [word, count] : step->by_word) out->by_word[word] += count;
    after = step->next;
  }
  co_await recorder.drain(steady_clock::now() + std::chrono::seconds(5));
  pool.close();
  co_return out;
}

int run_failed(context& ctx, const replay_wishes& w) {
  storage::failed_filter which;
  if (const auto wrong = read_filters(w.filters, which); !wrong.empty()) {
    *ctx.err << "recibo replay failed: " << wrong << '\n';
    return exit_wrong;
  }
  const auto settings = load_settings(ctx, true);
  if (!settings) return ctx.exit_code;
  receive::replay_order order;
  order.reason = w.reason;
  order.dry_run = w.dry_run;
  order.actor = w.actor;
  // Its own records would stand between the lines of the answer.
  log::init("error", settings->log_format, log::stream::standard_error);
  boost::asio::io_context context(1);
  const auto done = wait_for(context, run_all(context, settings, std::move(which), std::move(order)));
  if (!done) {
    *ctx.err << "recibo replay failed: " << code_word(done.error().code) << ": " << done.error().detail << '\n';
    return done.error().is_permanent() ? exit_wrong : exit_away;
  }
  *ctx.out << done->matched << " failed callbacks match\n";
  for (const auto& [word, count] : done->by_word) *ctx.out << "  " << count << ' ' << word << '\n';
  if (w.dry_run) {
    *ctx.out << "a dry run: nothing was changed\n";
    return exit_fine;
  }
  *ctx.out << done->closed << " are done, " << done->taken - done->closed << " stay\n";
  return done->taken == done->closed ? exit_fine : exit_not_so;
}

}  // namespace

void add_replay(CLI::App& app, context& ctx) {
  CLI::App* const family =
      app.add_subcommand("replay", "Take kept callbacks through the pipeline, or send dead notifications, again");
  family->require_subcommand(1);
  const auto w = std::make_shared<replay_wishes>();
  if (const char* user = std::getenv("USER"); user != nullptr && *user != '\0') {
    w->actor = user;
  } else {
    w->actor = "recibo replay";
  }
  CLI::App* const failed = family->add_subcommand("failed", "Callbacks that could not be understood when they came");
  failed
      ->add_option("--filter", w->filters,
                   "KEY=VALUE, repeatable: provider, disposition, reason, event, request_id, first_seen_after, first_seen_before")
      ->type_name("KEY=VALUE");
  failed->add_option("--reason", w->reason, "Why; on record")->required();
  failed->add_option("--actor", w->actor, "Who; on record (default: $USER)");
  failed->add_flag("--dry-run", w->dry_run, "Say what would happen; nothing of it stays");
  failed->callback([&ctx, w] { ctx.exit_code = run_failed(ctx, *w); });
  add_replay_dead(*family, ctx);
}

}  // namespace recibo::commands
