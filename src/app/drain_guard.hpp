// Ends the process when a drain does not: from a thread of its own, because what hangs may be the one that drains. What was
// answered is committed by then, and everything else is somebody else's to do again.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace recibo::app {

// Destroyed when the drain, and all that is to end with it, is over.
class drain_guard {
 public:
  drain_guard() = default;
  ~drain_guard();
  drain_guard(const drain_guard&) = delete;
  drain_guard& operator=(const drain_guard&) = delete;

  // From now on: at `until` the process ends, with 1 and a line on standard error. Once.
  void arm(std::chrono::steady_clock::time_point until);
  // What is under way; a literal.
  void at(const char* step) noexcept { step_ = step; }

 private:
  std::mutex lock_;
  std::condition_variable changed_;
  bool over_ = false;
  std::atomic<const char*> step_ = "";
  std::thread watching_;
};

}  // namespace recibo::app
