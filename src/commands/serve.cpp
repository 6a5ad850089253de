// `recibo serve`: the service itself.
#include "commands.hpp"

#include "recibo/app/app.hpp"
#include "recibo/config/settings.hpp"

#include <CLI/CLI.hpp>

#include <ostream>

namespace recibo::commands {

void add_serve(CLI::App& app, context& ctx) {
  auto* command =
      app.add_subcommand("serve", "Receive callbacks and serve the API until SIGTERM; SIGHUP reloads the configuration");
  command->callback([&ctx] {
    const auto settings = load_settings(ctx);
    if (!settings) return;
    if (settings->database.url.empty()) {
      *ctx.err << ctx.config << ": error: database.url is needed to serve\n";
      ctx.exit_code = exit_wrong;
      return;
    }
    ctx.exit_code = app::serve(settings, ctx.config);
  });
}

}  // namespace recibo::commands
