// recibo workflow NAME: draws a transition table of the configuration; recibo workflow migrate NAME.
#include "commands.hpp"
#include "workflow_migrate.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/transition/draw.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

namespace recibo::commands {
namespace {

struct workflow_options {
  std::string name;
  std::string format = "table";
};

int draw(const workflow_options& asked, context& ctx) {
  if (asked.name.empty()) {
    *ctx.err << "recibo workflow: the name of a workflow is needed\n";
    return exit_wrong;
  }
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
  auto asked = std::make_shared<workflow_options>();
  CLI::App* const command = app.add_subcommand("workflow", "Draw the transition table of a workflow");
  command->add_option("name", asked->name, "Name of the workflow in the configuration");
  command->add_option("--format", asked->format, "table, mermaid or svg (default: table)")
      ->check(CLI::IsMember({"table", "mermaid", "svg"}));
  auto moving = std::make_shared<workflow_migration>();
  moving->actor = "operator";
  CLI::App* const migrate = command->add_subcommand(
      "migrate", "Put operations of older versions under the version of the configuration; each change is on record");
  migrate->add_option("workflow", moving->name, "Name of the workflow in the configuration")->required();
  migrate->add_option("--map", moving->map, "OLD=NEW: the state that stands for one that is gone; may be repeated");
  migrate->add_option("--reason", moving->reason, "Why; goes on record");
  migrate->add_option("--actor", moving->actor, "Who; goes on record (default: operator)");
  migrate->add_flag("--ended", moving->ended, "Operations that have ended, too");
  migrate->add_flag("--dry-run", moving->dry_run, "Count, and change nothing");
  migrate->callback([moving, &ctx] { ctx.exit_code = migrate_workflow(*moving, ctx); });
  command->callback([asked, migrate, &ctx] {
    if (!migrate->parsed()) ctx.exit_code = draw(*asked, ctx);
  });
}

}  // namespace recibo::commands
