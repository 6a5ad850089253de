// recibo check: everything that is wrong with a configuration, at once (R32).
#include "commands.hpp"

#include "recibo/config/load.hpp"

#include <CLI/CLI.hpp>

#include <ostream>

namespace recibo::commands {
namespace {

std::string counted(std::size_t n, const char* one, const char* many) { return std::to_string(n) + " " + (n == 1 ? one : many); }

int check(context& ctx) {
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
  return exit_fine;
}

}  // namespace

void add_check(CLI::App& app, context& ctx) {
  CLI::App* const command =
      app.add_subcommand("check", "Validate the configuration; print every problem with file:line:column. Needs no database");
  command->callback([&ctx] { ctx.exit_code = check(ctx); });
}

}  // namespace recibo::commands
