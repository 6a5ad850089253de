#include "recibo/reconcile/status_checks.hpp"

#include "check_lane.hpp"

#include <map>
#include <string>
#include <utility>

namespace recibo::reconcile {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::chrono::seconds check_lanes_every{1};

}  // namespace

struct status_checks::impl {
  impl(boost::asio::any_io_executor e, parts p)
      : executor(e),
        with(std::move(p)),
        by(make_id<storage::look_up_holder>(now())),
        watching(e, "providers to ask", check_lanes_every, [this] { return look(); }) {}

  // One lane for each provider that can be asked; one that has gone finishes what it holds.
  awaitable<bool> look() {
    if (!with.ready()) co_return false;
    const auto settings = with.settings.get();
    for (const auto& [name, of] : settings->providers) {
      if (!of.status) continue;
      auto& one = lanes[name];
      if (one) continue;
      one = std::make_unique<check_lane>(executor, with, by, name);
      one->start();
    }
    for (auto it = lanes.begin(); it != lanes.end();) {
      const auto of = settings->providers.find(it->first);
      if (of != settings->providers.end() && of->second.status) {
        ++it;
        continue;
      }
      co_await it->second->stop(steady_clock::now() + check_lanes_every);
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
  storage::look_up_holder by;
  std::map<std::string, std::unique_ptr<check_lane>, std::less<>> lanes;
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
