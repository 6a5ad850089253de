// recibo migrate: brings the database schema to what this binary needs, as the owner (decision 14).
#include "commands.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/storage/migrator.hpp"

#include <CLI/CLI.hpp>

#include <ostream>

namespace recibo::commands {
namespace {

struct migrate_wishes {
  bool dry_run = false;
  bool yes = false;
  int down_to = -1;  // negative: up
};

int code_of(const error& e) {
  if (e.code == permanent::invalid_configuration) return exit_wrong;
  return e.is_permanent() ? exit_not_so : exit_away;
}

int migrate(context& ctx, const migrate_wishes& w) {
  const bool down = w.down_to >= 0;
  if (down && !w.dry_run && !w.yes) {
    *ctx.err
        << "undoing migrations drops their tables with all that is recorded in them: say --yes, or look first with --dry-run\n";
    return exit_wrong;
  }
  const auto settings = load_settings(ctx);
  if (!settings) return ctx.exit_code;
  const auto& database = settings->database;
  storage::migrate_options how;
  how.dry_run = w.dry_run;
  if (down) how.down_to = w.down_to;
  const auto report = storage::migrate(database.owner_url.empty() ? database.url : database.owner_url, how);
  if (!report) {
    *ctx.err << code_word(report.error().code) << ": " << report.error().detail << '\n';
    return code_of(report.error());
  }
  const char* verb = down ? (w.dry_run ? "would undo " : "undid ") : (w.dry_run ? "would apply " : "applied ");
  for (const auto& name : report->done) *ctx.out << verb << name << '\n';
  if (report->done.empty()) {
    *ctx.out << "nothing to do: the schema is at version " << report->to << '\n';
  } else {
    *ctx.out << (w.dry_run ? "the schema would go from version " : "the schema went from version ") << report->from << " to "
             << report->to << '\n';
  }
  return exit_fine;
}

}  // namespace

void add_migrate(CLI::App& app, context& ctx) {
  const auto w = std::make_shared<migrate_wishes>();
  CLI::App* const command = app.add_subcommand("migrate", "Bring the database schema to what this binary needs");
  command->add_flag("--dry-run", w->dry_run, "Only print what would be done");
  command->add_option("--down-to", w->down_to, "Undo all migrations above this version, with their data; 0 undoes all")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--yes", w->yes, "Undo without asking");
  command->callback([&ctx, w] { ctx.exit_code = migrate(ctx, *w); });
}

}  // namespace recibo::commands
