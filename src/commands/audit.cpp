// recibo audit verify [REQUEST_ID]: holds the database against what must always be true (contract section 7).
#include "commands.hpp"

#include "wait.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/core/json_writer.hpp"
#include "recibo/evidence/invariants.hpp"
#include "recibo/postgres/connection.hpp"

#include <CLI/CLI.hpp>

#include <ostream>

namespace recibo::commands {
namespace {

struct audit_wishes {
  std::string request_id;
  bool json = false;
};

// One line each, as they are found: a run over millions of rows shows at once what is wrong.
void print(std::ostream& to, bool json, const evidence::violation& v) {
  if (json) {
    json_writer line;
    line.begin_object().text_or_null("request_id", v.request_id).text("rule", v.rule).text("what", v.what).end_object();
    to << line.str() << std::endl;
  } else {
    to << (v.request_id.empty() ? "-" : v.request_id) << ": " << v.rule << ": " << v.what << std::endl;
  }
}

boost::asio::awaitable<result<evidence::verify_report>> verify(boost::asio::any_io_executor executor, secret url,
                                                               const audit_wishes& w, std::ostream& out) {
  postgres::session_options how;
  how.statement_timeout = std::chrono::milliseconds(0);
  how.by_index = false;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  auto opened = co_await postgres::connection::open(executor, std::move(url), until, how);
  if (!opened) co_return opened.error();
  evidence::verify_options options;
  if (!w.request_id.empty()) options.request_id = w.request_id;
  std::function<void(const evidence::violation&)> tell = [&](const evidence::violation& v) { print(out, w.json, v); };
  co_return co_await evidence::verify_evidence(**opened, std::move(options), std::move(tell));
}

int run_verify(context& ctx, const audit_wishes& w) {
  const auto settings = load_settings(ctx, true);
  if (!settings) return ctx.exit_code;
  const auto unknown = [&] {
    *ctx.err << "recibo audit verify: there is no such operation\n";
    return exit_not_so;
  };
  if (!w.request_id.empty() && !check_request_id(w.request_id)) return unknown();
  boost::asio::io_context context;
  const auto report = wait_for(context, verify(context.get_executor(), settings->database.url, w, *ctx.out));
  if (!report) {
    *ctx.err << "recibo audit verify: " << code_word(report.error().code) << ": " << report.error().detail << '\n';
    return report.error().is_permanent() ? exit_wrong : exit_away;
  }
  if (!report->found) return unknown();
  if (w.json) {
    json_writer line;
    line.begin_object()
        .number("operations", report->operations)
        .number("facts", report->facts)
        .number("retired", report->retired);
    line.number("violations", report->violations).flag("holds", report->violations == 0).end_object();
    *ctx.out << line.str() << '\n';
  } else {
    *ctx.out << report->operations << (report->operations == 1 ? " operation, " : " operations, ") << report->facts << " facts: ";
    if (report->violations == 0) {
      *ctx.out << "everything holds";
    } else {
      *ctx.out << report->violations << (report->violations == 1 ? " violation" : " violations");
    }
    if (report->retired > 0) *ctx.out << " (" << report->retired << " of retired deliveries: their place in the chain alone)";
    *ctx.out << '\n';
  }
  return report->violations == 0 ? exit_fine : exit_not_so;
}

}  // namespace

void add_audit(CLI::App& app, context& ctx) {
  const auto w = std::make_shared<audit_wishes>();
  CLI::App* const audit = app.add_subcommand("audit", "The tamper-evident audit trail");
  audit->require_subcommand(1);
  CLI::App* const verify = audit->add_subcommand("verify", "Verify the hash chains and everything that must always be true");
  verify->add_option("request_id", w->request_id, "Only this operation");
  verify->add_flag("--json", w->json, "One JSON object a line: violations, then the summary");
  verify->callback([&ctx, w] { ctx.exit_code = run_verify(ctx, *w); });
}

}  // namespace recibo::commands
