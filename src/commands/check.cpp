// recibo check: everything that is wrong with a configuration, at once (R32).
#include "commands.hpp"

#include "wait.hpp"

#include "recibo/config/load.hpp"
#include "recibo/config/settings.hpp"
#include "recibo/core/embedded.hpp"
#include "recibo/postgres/connection.hpp"
#include "recibo/postgres/sqlstate.hpp"
#include "recibo/storage/reads.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <ostream>
#include <span>

namespace recibo {
// Made at build time from config/recibo.schema.json.
std::span<const embedded_file> embedded_configuration();
}  // namespace recibo

namespace recibo::commands {
namespace {

std::string counted(std::size_t n, const char* one, const char* many) { return std::to_string(n) + " " + (n == 1 ? one : many); }

// What the database holds that this configuration could not go on with: states that are in use and would be gone.
boost::asio::awaitable<result<std::vector<std::string>>> against_database(boost::asio::any_io_executor executor,
                                                                          std::shared_ptr<const config::settings> settings) {
  postgres::session_options how;
  how.statement_timeout = std::chrono::milliseconds(0);
  how.by_index = false;
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  auto opened = co_await postgres::connection::open(executor, settings->database.url, until, how);
  if (!opened) co_return opened.error();
  postgres::pipeline both;
  both.add(storage::count_states_in_use).add(storage::select_versions);
  auto came = co_await (*opened)->run(both, std::chrono::steady_clock::now() + std::chrono::minutes(30));
  if (!came.ok()) co_return postgres::to_error(came);

  std::map<std::int64_t, transition::workflow> versions;
  const auto& stored = came.answers[1];
  for (int i = 0; i < stored.size(); ++i)
    if (auto table = transition::workflow::parse(stored.text(i, 2))) versions.emplace(stored.int8(i, 0), std::move(*table));
  std::vector<std::string> problems;
  for (const auto& use : storage::read_states_in_use(came.answers[0])) {
    const auto version = versions.find(use.version_key);
    const auto* before = version == versions.end() ? nullptr : version->second.find_state(use.state);
    // What has ended needs nothing more of any table.
    if (before != nullptr && before->terminal) continue;
    const auto now_in_file = settings->workflows.find(use.workflow);
    const std::string who = counted(static_cast<std::size_t>(use.operations), "operation is", "operations are");
    if (now_in_file == settings->workflows.end()) {
      problems.push_back("workflow " + use.workflow + " is gone, and " + who + " in its state " + use.state);
    } else if (!now_in_file->second->find_state(use.state)) {
      problems.push_back("workflow " + use.workflow + ": the state " + use.state + " is gone, and " + who +
                         " in it; keep it, or give it another with `recibo workflow migrate " + use.workflow + " --map " +
                         use.state + "=...`");
    }
  }
  co_return problems;
}

int check_against_database(const std::shared_ptr<const config::settings>& settings, context& ctx) {
  if (settings->database.url.empty()) {
    *ctx.err << "recibo check: --against-database needs database.url\n";
    return exit_wrong;
  }
  boost::asio::io_context context;
  const auto problems = wait_for(context, against_database(context.get_executor(), settings));
  if (!problems) {
    *ctx.err << "recibo check: " << code_word(problems.error().code) << ": " << problems.error().detail << '\n';
    return exit_away;
  }
  for (const auto& problem : *problems) *ctx.out << ctx.config << ": error: " << problem << '\n';
  if (problems->empty()) *ctx.out << "it fits what is in the database\n";
  return problems->empty() ? exit_fine : exit_not_so;
}

int check(context& ctx, bool with_database) {
  const auto loaded = config::load_file(ctx.config);
  for (const auto& warning : loaded.warnings) *ctx.err << to_string(warning) << '\n';
  if (!loaded.settings) {
    for (const auto& problem : loaded.problems) *ctx.out << to_string(problem) << '\n';
    *ctx.err << counted(loaded.problems.size(), "problem", "problems") << " in " << ctx.config << '\n';
    return exit_wrong;
  }
  const config::settings& s = *loaded.settings;
  *ctx.out << "configuration is fine: " << counted(s.providers.size(), "provider", "providers") << ", "
           << counted(s.workflows.size(), "workflow", "workflows") << ", "
           << counted(s.destinations.size(), "destination", "destinations") << ", " << counted(s.tokens.size(), "token", "tokens")
           << '\n';
  return with_database ? check_against_database(loaded.settings, ctx) : exit_fine;
}

}  // namespace

void add_check(CLI::App& app, context& ctx) {
  CLI::App* const command = app.add_subcommand(
      "check", "Validate the configuration; print every problem with file:line:column. Needs no database unless asked");
  auto schema = std::make_shared<bool>(false);
  auto with_database = std::make_shared<bool>(false);
  command->add_flag("--against-database", *with_database,
                    "Also refuse what the operations in the database could not go on with: states in use that are gone");
  command->add_flag("--schema", *schema, "Print the JSON Schema of the configuration instead, for editors");
  command->callback([schema, with_database, &ctx] {
    if (*schema) {
      for (const auto& file : embedded_configuration()) *ctx.out << file.content;
    } else {
      ctx.exit_code = check(ctx, *with_database);
    }
  });
}

}  // namespace recibo::commands
