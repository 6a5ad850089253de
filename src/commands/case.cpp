// recibo case REQUEST_ID: one case for a terminal, read from the database directly, so that it works while nothing serves.
#include "commands.hpp"

#include "wait.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/evidence/case_view.hpp"
#include "recibo/postgres/pool.hpp"

#include <CLI/CLI.hpp>

#include <ostream>

namespace recibo::commands {
namespace {

// As many facts as fit a terminal's memory; the API pages through the rest.
constexpr int facts_max = 1000;
constexpr std::chrono::seconds patience{10};

struct case_wishes {
  std::string request_id;
  bool json = false;
};

struct found {
  std::optional<evidence::found_case> one;
  storage::case_facts facts;
};

boost::asio::awaitable<result<found>> read(postgres::pool& pool, std::shared_ptr<const config::settings> settings,
                                           std::string request_id) {
  const auto until = std::chrono::steady_clock::now() + patience;
  found out;
  if (!check_request_id(request_id)) co_return out;
  evidence::workflow_library library;
  auto view = co_await evidence::read_case_view(pool, library, std::move(settings), std::move(request_id), until);
  if (!view) co_return view.error();
  if (!*view) co_return out;
  out.one = std::move(*view);
  auto facts = co_await storage::read_case(pool, out.one->operation.id, 0, facts_max, until);
  if (!facts) co_return facts.error();
  out.facts = std::move(*facts);
  co_return out;
}

std::string as_json(const found& f, const evidence::judged_by& by, const std::vector<evidence::timeline_entry>& timeline) {
  json_writer out;
  out.begin_object().key("operation");
  evidence::write_operation(out, f.one->operation, by, evidence::audience::operators);
  out.key("timeline").begin_array();
  for (const auto& e : timeline) evidence::write_timeline_entry(out, e);
  out.end_array().flag("complete", !f.facts.more).end_object();
  return out.take();
}

int show(context& ctx, const case_wishes& w) {
  const auto settings = load_settings(ctx, true);
  if (!settings) return ctx.exit_code;
  boost::asio::io_context context;
  postgres::pool pool(context.get_executor(), settings->database.url, 1);
  const auto came = wait_for(context, read(pool, settings, w.request_id));
  pool.close();
  if (!came) {
    *ctx.err << "recibo case: " << code_word(came.error().code) << ": " << came.error().detail << '\n';
    return came.error().is_permanent() ? exit_wrong : exit_away;
  }
  if (!came->one) {
    *ctx.err << "recibo case: there is no such operation\n";
    return exit_not_so;
  }
  const evidence::judged_by by{*came->one->table, *settings};
  const auto timeline = evidence::make_timeline(came->one->operation, came->facts, true);
  if (w.json) {
    *ctx.out << as_json(*came, by, timeline) << '\n';
  } else {
    *ctx.out << evidence::draw_case(came->one->operation, by, timeline, !came->facts.more);
  }
  return exit_fine;
}

}  // namespace

void add_case(CLI::App& app, context& ctx) {
  const auto w = std::make_shared<case_wishes>();
  CLI::App* const command = app.add_subcommand("case", "Show one case: what is true now, what happened, what may be done");
  command->add_option("request_id", w->request_id, "Request ID of the operation (put -- before one that begins with a dash)")
      ->required();
  command->add_flag("--json", w->json, "As JSON, for programs");
  command->callback([&ctx, w] { ctx.exit_code = show(ctx, *w); });
}

}  // namespace recibo::commands
