#include "workflow_migrate.hpp"

#include "wait.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/record/recorder.hpp"
#include "recibo/storage/reads.hpp"

#include <map>
#include <ostream>
#include <set>

namespace recibo::commands {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds look_patience{30}, record_patience{20};
constexpr int members_per_page = 200;

struct left_behind {
  std::string version, state, why;
  friend auto operator<=>(const left_behind&, const left_behind&) = default;
};

struct progress {
  std::int64_t moved = 0;
  std::map<left_behind, std::int64_t> left;
};

class migration {
 public:
  migration(boost::asio::any_io_executor executor, std::shared_ptr<const config::settings> settings,
            std::shared_ptr<const transition::workflow> to, const workflow_migration& asked,
            std::map<std::string, std::string, std::less<>> states)
      : settings_(std::move(settings)),
        to_(std::move(to)),
        asked_(asked),
        states_(std::move(states)),
        pool_(executor, settings_->database.url, 1),
        recorder_(executor, {.database_url = settings_->database.url, .writers = 1}) {}

  awaitable<result<progress>> run() {
    recorder_.start();
    auto done = co_await all_versions();
    co_await recorder_.drain(steady_clock::now() + record_patience);
    pool_.close();
    if (!done) co_return done.error();
    co_return std::move(progress_);
  }

 private:
  awaitable<result<void>> all_versions() {
    auto versions = co_await storage::list_workflow_versions(pool_, steady_clock::now() + look_patience);
    if (!versions) co_return versions.error();
    for (const auto& version : *versions) {
      if (version.name != to_->name() || version.version_key == to_->version_key()) continue;
      const auto table = transition::workflow::parse(version.definition);
      if (!table) co_return error(transient::our_fault, "a stored version of the workflow cannot be read");
      std::vector<std::string> states;
      for (const auto& s : table->states())
        if (asked_.ended || !s.terminal) states.push_back(s.name);
      auto done = co_await one_version(version.version_key, std::move(states));
      if (!done) co_return done.error();
    }
    co_return result<void>();
  }

  awaitable<result<void>> one_version(std::int64_t version_key, std::vector<std::string> states) {
    operation_id after;
    std::vector<std::string> known;
    for (const auto& s : to_->states()) known.push_back(s.name);
    for (const auto& [from, to] : states_) known.push_back(from);
    for (;;) {
      auto page = co_await storage::list_version_members(pool_, version_key, states, known, after, members_per_page,
                                                         steady_clock::now() + look_patience);
      if (!page) co_return page.error();
      for (const auto& member : *page) {
        after = member.id;
        auto done = co_await one_operation(version_key, member);
        if (!done) co_return done.error();
      }
      if (page->size() < static_cast<std::size_t>(members_per_page)) co_return result<void>();
    }
  }

  awaitable<result<void>> one_operation(std::int64_t version_key, const storage::version_member& member) {
    const auto mapped = states_.find(member.state);
    const std::string& target = mapped == states_.end() ? member.state : mapped->second;
    const auto version = std::to_string(version_key);
    if (!to_->find_state(target)) {
      ++progress_.left[{version, member.state, "no such state; name another with --map " + member.state + "=..."}];
      co_return result<void>();
    }
    if (const auto& lost = member.unknown_item_state; !lost.empty()) {
      ++progress_.left[{version, member.state, "an item is in state " + lost + "; name another with --map " + lost + "=..."}];
      co_return result<void>();
    }
    if (asked_.dry_run) {
      ++progress_.moved;
      co_return result<void>();
    }
    record::workflow_change change;
    change.settings = settings_;
    change.request_id = member.request_id;
    change.to = to_;
    change.states = states_;
    change.actor = asked_.actor;
    change.reason = asked_.reason;
    record::work work(std::move(change));
    const auto recorded = co_await recorder_.record(std::move(work), steady_clock::now() + record_patience);
    if (recorded) {
      ++progress_.moved;
    } else if (recorded.error().is_permanent()) {
      ++progress_.left[{version, member.state, recorded.error().detail}];
    } else {
      co_return recorded.error();
    }
    co_return result<void>();
  }

  std::shared_ptr<const config::settings> settings_;
  std::shared_ptr<const transition::workflow> to_;
  const workflow_migration& asked_;
  std::map<std::string, std::string, std::less<>> states_;
  postgres::pool pool_;
  record::recorder recorder_;
  progress progress_;
};

// nullopt: one of them is no "old=new", or leads to nowhere.
std::optional<std::map<std::string, std::string, std::less<>>> read_map(const workflow_migration& asked,
                                                                        const transition::workflow& to, context& ctx) {
  std::map<std::string, std::string, std::less<>> out;
  for (const auto& one : asked.map) {
    const auto equals = one.find('=');
    const bool good = equals != std::string::npos && equals > 0 && to.find_state(one.substr(equals + 1)) &&
                      out.emplace(one.substr(0, equals), one.substr(equals + 1)).second;
    if (good) continue;
    *ctx.err << "recibo workflow migrate: --map wants OLD=NEW, each OLD once, and NEW a state of " << to.name() << '\n';
    return std::nullopt;
  }
  return out;
}

}  // namespace

int migrate_workflow(const workflow_migration& asked, context& ctx) {
  const auto settings = load_settings(ctx, true);
  if (!settings) return ctx.exit_code;
  const auto to = settings->workflows.find(asked.name);
  if (to == settings->workflows.end()) {
    *ctx.err << "recibo workflow migrate: no workflow " << asked.name << " in " << ctx.config << '\n';
    return exit_wrong;
  }
  if (!asked.dry_run && asked.reason.empty()) {
    *ctx.err << "recibo workflow migrate: --reason is needed: it goes on record with each operation\n";
    return exit_wrong;
  }
  auto states = read_map(asked, *to->second, ctx);
  if (!states) return exit_wrong;
  boost::asio::io_context context;
  migration all(context.get_executor(), settings, to->second, asked, std::move(*states));
  const auto done = wait_for(context, all.run());
  if (!done) {
    *ctx.err << "recibo workflow migrate: " << code_word(done.error().code) << ": " << done.error().detail << '\n';
    return exit_away;
  }
  *ctx.out << done->moved << (done->moved == 1 ? " operation" : " operations")
           << (asked.dry_run ? " would go on under this version of " : " go on under this version of ") << asked.name << '\n';
  for (const auto& [what, count] : done->left)
    *ctx.out << count << " stay under version " << what.version << " in state " << what.state << ": " << what.why << '\n';
  return done->left.empty() ? exit_fine : exit_not_so;
}

}  // namespace recibo::commands
