#include "recibo/async/task_group.hpp"

#include "recibo/async/deadline.hpp"
#include "recibo/observe/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <list>

namespace recibo::async {
namespace {

constexpr std::chrono::milliseconds asked_again_after{100};
// Who has not ended by then is told of, once.
constexpr std::chrono::seconds overdue_after{2};

void log_failure(std::string_view name, const std::exception_ptr& failure) noexcept {
  if (detail::is_cancellation(failure)) return;
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    log::error("a coroutine ended with an exception", {{"task", name}, {"what", e.what()}});
  } catch (...) {
    log::error("a coroutine ended with an exception", {{"task", name}});
  }
}

}  // namespace

// A timer among those that wait until a group is empty, as long as its frame stands, however that ends.
class waiting_place {
 public:
  waiting_place(std::list<boost::asio::steady_timer*>& all, boost::asio::steady_timer& one)
      : all_(all), place_(all.insert(all.end(), &one)) {}
  ~waiting_place() { all_.erase(place_); }
  waiting_place(const waiting_place&) = delete;
  waiting_place& operator=(const waiting_place&) = delete;

 private:
  std::list<boost::asio::steady_timer*>& all_;
  std::list<boost::asio::steady_timer*>::iterator place_;
};

struct task_group::impl {
  explicit impl(boost::asio::any_io_executor e) : executor(std::move(e)) {}

  boost::asio::any_io_executor executor;
  // One for each live coroutine. Shared, so that a signal outlives its own emit().
  struct live_one {
    std::string_view name;
    std::shared_ptr<boost::asio::cancellation_signal> signal;
  };
  std::list<live_one> live;
  // Of those who wait until `live` is empty; each stands in its waiter's frame.
  std::list<boost::asio::steady_timer*> waiting;
};

task_group::task_group(boost::asio::any_io_executor executor) : impl_(std::make_shared<impl>(std::move(executor))) {}

task_group::~task_group() = default;

void task_group::spawn(std::string_view name, boost::asio::awaitable<void> task) {
  impl::live_one made{name, std::make_shared<boost::asio::cancellation_signal>()};
  const auto place = impl_->live.insert(impl_->live.end(), std::move(made));
  auto ended = [group = impl_, place, name](const std::exception_ptr& failure) {
    if (failure) log_failure(name, failure);
    group->live.erase(place);
    if (!group->live.empty()) return;
    for (auto* timer : group->waiting) timer->cancel();
  };
  boost::asio::co_spawn(impl_->executor, std::move(task),
                        boost::asio::bind_cancellation_slot(place->signal->slot(), std::move(ended)));
}

void task_group::emit(boost::asio::cancellation_type type) {
  // A copy, because an operation may complete while it is told to stop, and its coroutine then leaves the list.
  const auto now_live = impl_->live;
  for (const auto& one : now_live) one.signal->emit(type);
}

boost::asio::awaitable<bool> task_group::wait_empty(std::chrono::steady_clock::time_point until) {
  // A copy of the pointer, should the group go away meanwhile.
  const std::shared_ptr<impl> group = impl_;
  if (group->live.empty()) co_return true;
  boost::asio::steady_timer timer(group->executor, until);
  const waiting_place place(group->waiting, timer);
  co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  co_return group->live.empty();
}

boost::asio::awaitable<void> task_group::end() {
  // A copy of the pointer, should the group go away meanwhile.
  const std::shared_ptr<impl> group = impl_;
  const auto overdue = std::chrono::steady_clock::now() + overdue_after;
  bool told = false;
  while (!group->live.empty()) {
    const auto now_live = group->live;
    for (const auto& one : now_live) one.signal->emit(boost::asio::cancellation_type::terminal);
    if (!told && std::chrono::steady_clock::now() > overdue) {
      told = true;
      for (const auto& one : group->live) log::warn("a coroutine does not end although it was asked to", {{"task", one.name}});
    }
    boost::asio::steady_timer timer(group->executor, asked_again_after);
    const waiting_place place(group->waiting, timer);
    if (!group->live.empty()) co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
}

std::size_t task_group::size() const noexcept { return impl_->live.size(); }

}  // namespace recibo::async
