#include "crew.hpp"

#include <system_error>
#include <thread>
#include <utility>

namespace recibo::notify {

struct crew::state {
  std::size_t most = 0;
  void (*leaving)() = nullptr;
  mutable std::mutex lock;
  std::condition_variable changed;
  std::deque<task> tasks;
  std::size_t idle = 0, live = 0;
  bool ending = false;
};

crew::crew(std::size_t most, void (*leaving)()) : state_(std::make_shared<state>()) {
  state_->most = most;
  state_->leaving = leaving;
}

void crew::add(task one) {
  const std::lock_guard held(state_->lock);
  state_->tasks.push_back(std::move(one));
  if (state_->idle < state_->tasks.size() && state_->live < state_->most) start();
  state_->changed.notify_one();
}

void crew::add_apart(task one) {
  const std::lock_guard held(state_->lock);
  state_->tasks.push_front(std::move(one));
  start();
}

void crew::end() {
  const std::lock_guard held(state_->lock);
  state_->ending = true;
  state_->changed.notify_all();
}

std::size_t crew::live() const {
  const std::lock_guard held(state_->lock);
  return state_->live;
}

void crew::start() {
  try {
    std::thread([of = state_] { work(of); }).detach();
    ++state_->live;
  } catch (const std::system_error&) {
    // No thread is to be had now: the next task tries again, and whoever waits has a time-out.
  }
}

void crew::work(const std::shared_ptr<state>& of) {
  std::unique_lock held(of->lock);
  while (of->live <= of->most || !of->tasks.empty()) {
    ++of->idle;
    of->changed.wait(held, [&] { return of->ending || !of->tasks.empty(); });
    --of->idle;
    if (of->tasks.empty()) break;
    task one = std::move(of->tasks.front());
    of->tasks.pop_front();
    held.unlock();
    // What a task throws ends that task: whoever waits for it has a time-out.
    try {
      one();
    } catch (...) {
    }
    one = nullptr;  // what it holds goes here, too
    held.lock();
  }
  held.unlock();
  of->leaving();
  held.lock();
  --of->live;
}

}  // namespace recibo::notify
