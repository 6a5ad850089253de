#include "waiter.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace recibo::postgres {

namespace asio = boost::asio;
using descriptor_base = asio::posix::descriptor_base;

struct waiter::shared {
  explicit shared(const asio::any_io_executor& executor) : descriptor(executor), timer(executor) {}
  void stop_waiting() {
    boost::system::error_code ignored;
    descriptor.cancel(ignored);
  }

  asio::posix::stream_descriptor descriptor;
  asio::steady_timer timer;
  // Which arming a timer handler belongs to: one that was queued when we disarmed must not end the next run.
  unsigned generation = 0;
  bool expired = false;
};

waiter::waiter(const asio::any_io_executor& executor) : shared_(std::make_shared<shared>(executor)) {}

waiter::~waiter() {
  disarm();
  unwatch();
}

void waiter::watch(int fd) {
  unwatch();
  if (fd >= 0) shared_->descriptor.assign(fd);
}

void waiter::unwatch() {
  if (shared_->descriptor.is_open()) shared_->descriptor.release();
}

void waiter::arm(deadline until) {
  auto& s = *shared_;
  ++s.generation;
  s.expired = until <= std::chrono::steady_clock::now();
  if (s.expired) return;
  s.timer.expires_at(until);
  s.timer.async_wait([lent = shared_, mine = s.generation](boost::system::error_code ec) {
    if (ec || lent->generation != mine) return;
    lent->expired = true;
    lent->stop_waiting();
  });
}

void waiter::disarm() {
  ++shared_->generation;
  shared_->expired = false;
  shared_->timer.cancel();
}

asio::awaitable<wake> waiter::wait(descriptor_base::wait_type what) {
  const bool cancelled = (co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none;
  if (cancelled) co_return wake::cancelled;
  if (shared_->expired) co_return wake::expired;
  const auto [ec] = co_await shared_->descriptor.async_wait(what, asio::as_tuple(asio::use_awaitable));
  if (!ec) co_return wake::ready;
  const bool cancelled_now = (co_await asio::this_coro::cancellation_state).cancelled() != asio::cancellation_type::none;
  if (cancelled_now) co_return wake::cancelled;
  // Any other end of the wait (the other half of readable_or_writable, a broken socket) is libpq's to judge.
  co_return shared_->expired ? wake::expired : wake::ready;
}

asio::awaitable<wake> waiter::readable() { return wait(descriptor_base::wait_read); }

asio::awaitable<wake> waiter::writable() { return wait(descriptor_base::wait_write); }

asio::awaitable<wake> waiter::readable_or_writable() {
  // Whichever comes first ends the wait for the other.
  shared_->descriptor.async_wait(descriptor_base::wait_write, [lent = shared_](boost::system::error_code ec) {
    if (!ec) lent->stop_waiting();
  });
  const auto woken = co_await wait(descriptor_base::wait_read);
  shared_->stop_waiting();
  co_return woken;
}

}  // namespace recibo::postgres
