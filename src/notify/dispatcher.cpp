#include "recibo/notify/dispatcher.hpp"

#include "lane.hpp"

#include <map>
#include <string>
#include <utility>

namespace recibo::notify {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds lanes_every{1};

}  // namespace

struct dispatcher::impl {
  impl(boost::asio::any_io_executor e, parts p)
      : executor(e),
        with(std::move(p)),
        by(make_id<storage::dispatcher_id>(now())),
        watching(e, "destinations", lanes_every, [this] { return look(); }) {}

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
    co_await watching.stop(until);
    for (const auto& entry : lanes) co_await entry.second->stop(until);
    lanes.clear();
  }

  boost::asio::any_io_executor executor;
  parts with;
  storage::dispatcher_id by;
  std::map<std::string, std::unique_ptr<lane>, std::less<>> lanes;
  async::worker watching;
};

dispatcher::dispatcher(boost::asio::any_io_executor executor, parts p)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(p))) {}
dispatcher::~dispatcher() = default;

void dispatcher::start() { impl_->watching.start(); }

awaitable<void> dispatcher::stop(steady_clock::time_point until) {
  const auto self = impl_;
  co_await self->stop(until);
}

}  // namespace recibo::notify
