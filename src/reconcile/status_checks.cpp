#include "recibo/reconcile/status_checks.hpp"

#include "check_lane.hpp"
#include "list_lane.hpp"
#include "recibo/async/task_group.hpp"
#include "recibo/observe/log.hpp"

#include <map>
#include <string>
#include <utility>

namespace recibo::reconcile {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds check_lanes_every{1}, tidy_every{10}, tidy_limit{5};
// So long a configuration may be on its way to all replicas.
constexpr std::chrono::minutes unaskable_for{10};

}  // namespace

struct status_checks::impl {
  impl(boost::asio::any_io_executor e, parts p)
      : executor(e),
        with(std::move(p)),
        by(make_id<storage::look_up_holder>(now())),
        watching(e, "providers to ask", check_lanes_every, [this] { return look(); }) {}

  awaitable<bool> look() {
    if (!with.ready()) co_return false;
    const auto settings = with.settings.get();
    co_await arrange(lanes, [&](const config::provider& of) { return of.status.has_value(); });
    co_await arrange(lists, [&](const config::provider& of) { return of.list.has_value(); });
    const auto at = steady_clock::now();
    if (at >= tidied + tidy_every) {
      const bool more = co_await tidy(*settings);
      if (!more) tidied = at;
    }
    co_return false;
  }

  // One lane for each provider that can be asked; one that has gone finishes what it holds.
  template <class Lane, class Wanted>
  awaitable<void> arrange(std::map<std::string, std::unique_ptr<Lane>, std::less<>>& all, Wanted wanted) {
    const auto settings = with.settings.get();
    for (const auto& [name, of] : settings->providers) {
      if (!wanted(of)) continue;
      auto& one = all[name];
      if (one) continue;
      one = std::make_unique<Lane>(executor, with, by, name);
      one->start();
    }
    for (auto it = all.begin(); it != all.end();) {
      const auto of = settings->providers.find(it->first);
      if (of != settings->providers.end() && wanted(of->second)) {
        ++it;
        continue;
      }
      co_await it->second->stop(steady_clock::now() + check_lanes_every);
      it = all.erase(it);
    }
  }

  // What nobody can ask any more, and what is old. Whether there is more of that.
  awaitable<bool> tidy(const config::settings& settings) {
    std::vector<std::string> askable, listed_by;
    for (const auto& [name, of] : settings.providers) {
      if (of.status) askable.push_back(name);
      if (of.list) listed_by.push_back(name);
    }
    auto ending = storage::end_unaskable_look_ups(with.pool, std::move(askable), std::move(listed_by), unaskable_for,
                                                  steady_clock::now() + tidy_limit);
    const auto ended = co_await std::move(ending);
    if (!ended) co_return false;
    for (const auto& [provider, count] : *ended)
      log::warn("look-ups are ended: the configuration does not say any more how the provider is asked",
                {{"provider", provider}, {"count", count}});
    const auto gone = co_await storage::sweep_look_ups(with.pool, settings.retain_attempts, steady_clock::now() + tidy_limit);
    if (gone && *gone > 0) log::info("old look-ups and attempts deleted", {{"count", *gone}});
    co_return gone&&* gone >= 5'000;
  }

  awaitable<void> stop(steady_clock::time_point until) {
    co_await watching.stop(until);
    // Side by side: what one waits for is not added to what the others do.
    async::task_group stopping(executor);
    for (const auto& entry : lists) stopping.spawn("event list stops", entry.second->stop(until));
    for (const auto& entry : lanes) stopping.spawn("look-ups stop", entry.second->stop(until));
    while (!co_await stopping.wait_empty(steady_clock::now() + tidy_limit)) {
    }
    lists.clear();
    lanes.clear();
  }

  boost::asio::any_io_executor executor;
  parts with;
  storage::look_up_holder by;
  std::map<std::string, std::unique_ptr<check_lane>, std::less<>> lanes;
  std::map<std::string, std::unique_ptr<list_lane>, std::less<>> lists;
  steady_clock::time_point tidied{};
  async::worker watching;
};

status_checks::status_checks(boost::asio::any_io_executor executor, parts p)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(p))) {}
status_checks::~status_checks() = default;

void status_checks::start() { impl_->watching.start(); }

awaitable<void> status_checks::stop(steady_clock::time_point until) {
  const auto self = impl_;
  co_await self->stop(until);
}

}  // namespace recibo::reconcile
