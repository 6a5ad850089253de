#include "recibo/notify/dispatcher.hpp"

#include "doorbell.hpp"
#include "lane.hpp"
#include "recibo/observe/log.hpp"

#include <map>
#include <string>
#include <utility>

namespace recibo::notify {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds lanes_every{1}, sweep_limit{5};
constexpr std::chrono::minutes attempts_swept_every{1};

}  // namespace

struct dispatcher::impl {
  impl(boost::asio::any_io_executor e, parts p)
      : executor(e),
        with(std::move(p)),
        by(make_id<storage::dispatcher_id>(now())),
        bell(e, with.database_url, with.pool, by, with.ready, [this](std::string_view name) { heard(name); }),
        watching(e, "destinations", lanes_every, [this] { return look(); }),
        sweeping(e, "sweep attempts", attempts_swept_every, [this] { return sweep(); }) {}

  void heard(std::string_view name) {
    if (name == "*") {
      for (const auto& entry : lanes) entry.second->wake();
    } else if (const auto it = lanes.find(name); it != lanes.end()) {
      it->second->wake();
    }
  }

  awaitable<bool> sweep() {
    if (!with.ready()) co_return false;
    const auto keep = with.settings.get()->retain_attempts;
    const auto gone = co_await storage::sweep_attempts(with.pool, keep, steady_clock::now() + sweep_limit);
    if (gone && *gone > 0) log::info("old attempts are gone", {{"count", *gone}});
    co_return gone&&* gone > 0;  // what is much comes in pieces
  }

  // One lane for each destination that the configuration names; one that has gone finishes what it holds.
  awaitable<bool> look() {
    if (!with.ready()) co_return false;
    const auto settings = with.settings.get();
    for (const auto& [name, to] : settings->destinations) {
      auto& one = lanes[name];
      if (one) continue;
      one = std::make_unique<lane>(executor, with, by, name);
      one->start();
    }
    for (auto it = lanes.begin(); it != lanes.end();) {
      if (settings->destinations.contains(it->first)) {
        ++it;
        continue;
      }
      co_await it->second->stop(steady_clock::now() + lanes_every);
      it = lanes.erase(it);
    }
    co_return false;
  }

  awaitable<void> stop(steady_clock::time_point until) {
    co_await sweeping.stop(until);
    co_await bell.stop(until);
    co_await watching.stop(until);
    // All at once: one that hangs takes no time from the others.
    for (const auto& entry : lanes) entry.second->begin_stop();
    async::task_group ending(executor);
    for (const auto& entry : lanes) ending.spawn("stop a destination", entry.second->stop(until));
    while (!co_await ending.wait_empty(steady_clock::now() + sweep_limit)) {
    }
    lanes.clear();
  }

  boost::asio::any_io_executor executor;
  parts with;
  storage::dispatcher_id by;
  std::map<std::string, std::unique_ptr<lane>, std::less<>> lanes;
  doorbell bell;
  async::worker watching, sweeping;
};

dispatcher::dispatcher(boost::asio::any_io_executor executor, parts p)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(p))) {}
dispatcher::~dispatcher() = default;

void dispatcher::start() {
  impl_->watching.start();
  impl_->sweeping.start();
  impl_->bell.start();
}

void dispatcher::told(const std::set<std::string, std::less<>>& destinations) { impl_->bell.ring(destinations); }

awaitable<void> dispatcher::stop(steady_clock::time_point until) {
  const auto self = impl_;
  co_await self->stop(until);
}

}  // namespace recibo::notify
