// The frame of the command line: one function per command, each in a file of its own, and what they share.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>

namespace CLI {
class App;
}

namespace recibo::config {
struct settings;
}

namespace recibo::commands {

// Exit codes of the binary (contract section 2).
inline constexpr int exit_fine = 0;
inline constexpr int exit_not_so = 1;  // the thing asked for is not so
inline constexpr int exit_wrong = 2;   // wrong use or wrong configuration
inline constexpr int exit_away = 3;    // a dependency (the database) is away

// What a command gets and gives. Lives until the process ends its command; commands keep a reference to it.
struct context {
  // --config FILE, else $RECIBO_CONFIG, else config/recibo.yaml. Final when a command's callback runs.
  std::string config;
  // What the process ends with; a command's callback sets it.
  int exit_code = exit_fine;
  // Never std::cout directly, so that tests can read what was said. Results go to `out`, complaints to `err`.
  std::ostream* out = nullptr;
  std::ostream* err = nullptr;
};

// How a command says its warnings: as text on ctx.err, or as records of the log, which `init`s it as the configuration says.
enum class warnings {
  as_text,
  as_log_records,
};

// Loads ctx.config for a command. Prints problems, and warnings, to ctx.err as `file:line:column: error: message`; when
// there is a problem it returns nullptr with ctx.exit_code = exit_wrong. So does a configuration without database.url when
// the command `needs_database`.
std::shared_ptr<const config::settings> load_settings(context& ctx, bool needs_database = false,
                                                      warnings how = warnings::as_text);

// Each adds its subcommand (or family of them) to `app`. The work happens in the subcommand's callback, which sets
// ctx.exit_code and does not throw. `--config` is added to each of them afterwards: do not declare it.
void add_serve(CLI::App& app, context& ctx);
void add_look_up(CLI::App& app, context& ctx);
void add_migrate(CLI::App& app, context& ctx);
void add_check(CLI::App& app, context& ctx);
void add_send(CLI::App& app, context& ctx);
void add_verify(CLI::App& app, context& ctx);
void add_case(CLI::App& app, context& ctx);
void add_workflow(CLI::App& app, context& ctx);
void add_audit(CLI::App& app, context& ctx);
void add_token(CLI::App& app, context& ctx);
void add_openapi(CLI::App& app, context& ctx);
void add_doctor(CLI::App& app, context& ctx);
void add_replay(CLI::App& app, context& ctx);
void add_version(CLI::App& app, context& ctx);

// Parses and runs with the commands that `app` already has, maps CLI11's own codes to ours, and returns the exit code.
// For run() and for tests.
int run_app(CLI::App& app, context& ctx, int argc, const char* const* argv);

}  // namespace recibo::commands
