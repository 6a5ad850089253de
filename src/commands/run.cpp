#include "recibo/commands/run.hpp"

#include "commands.hpp"

#include <CLI/CLI.hpp>

#include <cstdlib>
#include <iostream>

namespace recibo::commands {

int run(int argc, char** argv) {
  context ctx;
  const char* named = std::getenv("RECIBO_CONFIG");
  ctx.config = named != nullptr && *named != '\0' ? named : "config/recibo.yaml";
  ctx.out = &std::cout;
  ctx.err = &std::cerr;

  CLI::App app("Recibo receives asynchronous callbacks: recorded once, never lost, never applied twice.", "recibo");
  app.require_subcommand(1);
  app.set_version_flag("--version", "recibo " RECIBO_VERSION);
  add_serve(app, ctx);
  add_look_up(app, ctx);
  add_migrate(app, ctx);
  add_check(app, ctx);
  add_send(app, ctx);
  add_verify(app, ctx);
  add_case(app, ctx);
  add_workflow(app, ctx);
  add_audit(app, ctx);
  add_replay(app, ctx);
  add_token(app, ctx);
  add_openapi(app, ctx);
  add_doctor(app, ctx);
  add_version(app, ctx);
  const int code = run_app(app, ctx, argc, argv);
  // What a full disk or a closed pipe swallowed was not said.
  std::cout.flush();
  return code == exit_fine && !std::cout ? exit_not_so : code;
}

}  // namespace recibo::commands
