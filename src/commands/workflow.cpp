// recibo workflow NAME: draws a transition table of the configuration.
#include "commands.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/transition/draw.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

namespace recibo::commands {
namespace {

struct options {
  std::string name;
  std::string format = "table";
};

int draw(const options& asked, context& ctx) {
  const auto settings = load_settings(ctx);
  if (!settings) return ctx.exit_code;
  const auto it = settings->workflows.find(asked.name);
  if (it == settings->workflows.end()) {
    *ctx.err << "recibo workflow: no workflow " << asked.name << " in " << ctx.config << "; there are:";
    for (const auto& [name, unused] : settings->workflows) *ctx.err << ' ' << name;
    *ctx.err << '\n';
    return exit_wrong;
  }
  const transition::workflow& table = *it->second;
  if (asked.format == "mermaid") {
    *ctx.out << transition::draw_mermaid(table);
  } else if (asked.format == "svg") {
    *ctx.out << transition::draw_svg(table);
  } else {
    *ctx.out << transition::draw_table(table);
  }
  return exit_fine;
}

}  // namespace

void add_workflow(CLI::App& app, context& ctx) {
  auto asked = std::make_shared<options>();
  CLI::App* const command = app.add_subcommand("workflow", "Draw the transition table of a workflow");
  command->add_option("name", asked->name, "Name of the workflow in the configuration")->required();
  command->add_option("--format", asked->format, "table, mermaid or svg (default: table)")
      ->check(CLI::IsMember({"table", "mermaid", "svg"}));
  command->callback([asked, &ctx] { ctx.exit_code = draw(*asked, ctx); });
}

}  // namespace recibo::commands
