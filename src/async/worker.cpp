#include "recibo/async/worker.hpp"

#include "recibo/async/deadline.hpp"
#include "recibo/async/task_group.hpp"
#include "recibo/observe/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <random>

namespace recibo::async {

struct worker::impl {
  impl(boost::asio::any_io_executor executor, std::string_view n, std::chrono::milliseconds i, round r)
      : name(n), interval(i), run_once(std::move(r)), tasks(executor), sleep(executor) {}

  std::string_view name;
  std::chrono::milliseconds interval;
  round run_once;
  task_group tasks;
  boost::asio::steady_timer sleep;
  bool woken = false;
  bool stopping = false;
  std::minstd_rand random{std::random_device{}()};

  std::chrono::microseconds jittered() {
    const auto middle = std::chrono::duration_cast<std::chrono::microseconds>(interval);
    return std::chrono::microseconds(
        std::uniform_int_distribution<std::int64_t>(middle.count() * 4 / 5, middle.count() * 6 / 5)(random));
  }

  // The last catch of a round. A cancellation passes: it ends the loop.
  static boost::asio::awaitable<bool> guarded(std::shared_ptr<impl> self) {
    std::exception_ptr failure;
    try {
      co_return co_await self->run_once();
    } catch (...) {
      failure = std::current_exception();
    }
    if (detail::is_cancellation(failure)) std::rethrow_exception(failure);
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& e) {
      log::error("a round of a worker failed", {{"worker", self->name}, {"what", e.what()}});
    } catch (...) {
      log::error("a round of a worker failed", {{"worker", self->name}});
    }
    co_return false;
  }

  static boost::asio::awaitable<void> loop(std::shared_ptr<impl> self) {
    while (!self->stopping) {
      // A wake-up before this round has been heard; one during it is not lost.
      self->woken = false;
      const bool more = co_await guarded(self);
      if (more || self->woken || self->stopping) continue;
      self->sleep.expires_after(self->jittered());
      co_await self->sleep.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
  }
};

worker::worker(boost::asio::any_io_executor executor, std::string_view name, std::chrono::milliseconds interval, round run_once)
    : impl_(std::make_shared<impl>(std::move(executor), name, interval, std::move(run_once))) {}

worker::~worker() {
  impl_->stopping = true;
  impl_->sleep.cancel();
  impl_->tasks.emit(boost::asio::cancellation_type::terminal);
}

void worker::start() { impl_->tasks.spawn(impl_->name, impl::loop(impl_)); }

void worker::wake() {
  impl_->woken = true;
  impl_->sleep.cancel();
}

boost::asio::awaitable<void> worker::stop(std::chrono::steady_clock::time_point until) {
  // A copy, should the worker be destroyed meanwhile.
  const std::shared_ptr<impl> self = impl_;
  self->stopping = true;
  self->sleep.cancel();
  if (co_await self->tasks.wait_empty(until)) co_return;
  log::warn("a round of a worker is cut off", {{"worker", self->name}});
  co_await self->tasks.end();
}

}  // namespace recibo::async
