#include "drain_guard.hpp"

#include <cstdio>
#include <cstdlib>

namespace recibo::app {

drain_guard::~drain_guard() {
  {
    const std::lock_guard held(lock_);
    over_ = true;
  }
  changed_.notify_all();
  if (watching_.joinable()) watching_.join();
}

void drain_guard::arm(std::chrono::steady_clock::time_point until) {
  watching_ = std::thread([this, until] {
    std::unique_lock held(lock_);
    if (changed_.wait_until(held, until, [this] { return over_; })) return;
    // Not by the log, which the other thread may hold.
    std::fprintf(stderr, "{\"level\":\"error\",\"msg\":\"the drain does not end\",\"step\":\"%s\"}\n", step_.load());
    std::fflush(stderr);
    std::_Exit(1);
  });
}

}  // namespace recibo::app
