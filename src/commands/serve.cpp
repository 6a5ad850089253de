// `recibo serve`: the service itself.
#include "commands.hpp"

#include "recibo/app/app.hpp"
#include "recibo/config/settings.hpp"

#include <CLI/CLI.hpp>

namespace recibo::commands {

void add_serve(CLI::App& app, context& ctx) {
  auto* command =
      app.add_subcommand("serve", "Receive callbacks and serve the API until SIGTERM; SIGHUP reloads the configuration");
  command->callback([&ctx] {
    const auto settings = load_settings(ctx, true, warnings::as_log_records);
    if (!settings) return;
    ctx.exit_code = app::serve(settings, ctx.config);
  });
}

}  // namespace recibo::commands
