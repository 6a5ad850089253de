// recibo version: what this binary is.
#include "commands.hpp"

#include <CLI/CLI.hpp>

#include <ostream>

namespace recibo::commands {

void add_version(CLI::App& app, context& ctx) {
  app.add_subcommand("version", "Print the version of this binary")->callback([&ctx] {
    *ctx.out << "recibo " RECIBO_VERSION "\n";
  });
}

}  // namespace recibo::commands
