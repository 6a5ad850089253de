// recibo openapi: the OpenAPI document of the API, as GET /openapi.json answers it.
#include "commands.hpp"

#include "recibo/api/endpoint.hpp"

#include <CLI/CLI.hpp>

#include <ostream>

namespace recibo::commands {

void add_openapi(CLI::App& app, context& ctx) {
  app.add_subcommand("openapi", "Print the OpenAPI document of the API")->callback([&ctx] {
    *ctx.out << api::openapi_json() << '\n';
  });
}

}  // namespace recibo::commands
