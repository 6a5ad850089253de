// recibo check: everything that is wrong with a configuration, at once (R32).
#include "commands.hpp"

#include "recibo/config/load.hpp"
#include "recibo/core/embedded.hpp"

#include <CLI/CLI.hpp>

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
  auto schema = std::make_shared<bool>(false);
  command->add_flag("--schema", *schema, "Print the JSON Schema of the configuration instead, for editors");
  command->callback([schema, &ctx] {
    if (*schema) {
      for (const auto& file : embedded_configuration()) *ctx.out << file.content;
    } else {
      ctx.exit_code = check(ctx);
    }
  });
}

}  // namespace recibo::commands
