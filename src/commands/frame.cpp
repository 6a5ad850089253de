// What the commands share: the configuration, `--config` on each of them, and the map of CLI11's exit codes to ours.
#include "commands.hpp"

#include "recibo/config/load.hpp"
#include "recibo/observe/log.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <ostream>

namespace recibo::commands {
namespace {

// On every command, so that it may stand behind the command's name and shows in its help.
void add_config_option(CLI::App& app, context& ctx) {
  app.add_option("--config", ctx.config, "Configuration file (default: $RECIBO_CONFIG, else config/recibo.yaml)")
      ->type_name("FILE");
  for (CLI::App* command : app.get_subcommands({})) add_config_option(*command, ctx);
}

}  // namespace

std::shared_ptr<const config::settings> load_settings(context& ctx, bool needs_database, warnings how) {
  const auto loaded = config::load_file(ctx.config);
  if (how == warnings::as_log_records && loaded.settings) {
    log::init(loaded.settings->log_level, loaded.settings->log_format, log::stream::standard_output);
    for (const auto& warning : loaded.warnings) log::warn("configuration", {{"at", to_string(warning)}});
  } else {
    for (const auto& warning : loaded.warnings) *ctx.err << to_string(warning) << '\n';
  }
  for (const auto& problem : loaded.problems) *ctx.err << to_string(problem) << '\n';
  if (loaded.settings && needs_database && loaded.settings->database.url.empty()) {
    *ctx.err << ctx.config << ": error: database.url is required for this command\n";
    ctx.exit_code = exit_wrong;
    return nullptr;
  }
  if (!loaded.settings) ctx.exit_code = exit_wrong;
  return loaded.settings;
}

int run_app(CLI::App& app, context& ctx, int argc, const char* const* argv) {
  add_config_option(app, ctx);
  // CLI11 would only say that a command is missing.
  const auto commands = app.get_subcommands({});
  const auto is_named = [&](const CLI::App* one) { return one->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && std::none_of(commands.begin(), commands.end(), is_named)) {
    *ctx.err << "recibo: no command is called \"" << argv[1] << "\"; see recibo --help\n";
    return exit_wrong;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    // Help and version are errors to CLI11, with code 0; its own codes mean nothing to anybody else.
    return app.exit(e, *ctx.out, *ctx.err) == 0 ? exit_fine : exit_wrong;
  } catch (const std::exception& e) {
    *ctx.err << "recibo: " << e.what() << '\n';
    return exit_not_so;
  }
  return ctx.exit_code;
}

}  // namespace recibo::commands
