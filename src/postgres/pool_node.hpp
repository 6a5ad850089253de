// What the pool decides, without I/O: who takes a free connection, who waits, who fails at once, when to connect again.
// Pure but for the random source given to backoff(); every case is a row in pool_node_test.cpp.
#pragma once

#include "recibo/postgres/pool.hpp"

#include <chrono>

namespace recibo::postgres {

class pool_node {
 public:
  static constexpr std::chrono::milliseconds backoff_first{50}, backoff_max{1'000};

  explicit pool_node(int size) noexcept : size_(size) {}

  enum class next {
    take,  // a free connection is there
    wait,  // one will come: from somebody who uses it, or from an attempt
    fail,  // nothing can be reached and nobody holds a connection that could come back
  };
  next on_request() const noexcept {
    if (closed_) return next::fail;
    if (counts_.idle > 0) return next::take;
    return away_ && counts_.busy == 0 ? next::fail : next::wait;
  }
  // Whether those who wait want another attempt. While nothing can be reached one goes on in the background.
  bool should_connect() const noexcept {
    if (closed_ || counts_.idle + counts_.busy + counts_.connecting >= size_) return false;
    return away_ ? counts_.connecting == 0 : counts_.waiting > counts_.connecting;
  }

  void took() noexcept { --counts_.idle, ++counts_.busy; }
  void came_back() noexcept { --counts_.busy, ++counts_.idle; }
  void lost() noexcept { --counts_.busy; }
  void idle_closed() noexcept { --counts_.idle; }
  void waits() noexcept { ++counts_.waiting; }
  void waits_no_more() noexcept { --counts_.waiting; }
  void connecting() noexcept { ++counts_.connecting; }
  void connect_stopped() noexcept { --counts_.connecting; }
  // The new connection is idle.
  void connected() noexcept {
    --counts_.connecting;
    ++counts_.idle;
    away_ = false;
    failures_ = 0;
  }
  // Whether this attempt is to go on after backoff(): the last of them does.
  bool connect_failed() noexcept {
    away_ = true;
    if (failures_ < 31) ++failures_;
    if (closed_ || counts_.connecting > 1) {
      --counts_.connecting;
      return false;
    }
    return true;
  }
  void close() noexcept { closed_ = true; }

  // Doubles from failure to failure; `jitter` from 0 to 1 takes up to half off, so that replicas do not come all at once.
  std::chrono::milliseconds backoff(double jitter) const noexcept {
    auto wait = backoff_first;
    for (int i = 1; i < failures_ && wait < backoff_max; ++i) wait *= 2;
    if (wait > backoff_max) wait = backoff_max;
    return wait - std::chrono::milliseconds(static_cast<int>(static_cast<double>(wait.count()) * jitter / 2));
  }
  bool nobody_returns() const noexcept { return counts_.busy == 0; }
  bool away() const noexcept { return away_; }
  bool closed() const noexcept { return closed_; }
  const pool::counts& state() const noexcept { return counts_; }

 private:
  int size_;
  int failures_ = 0;
  bool away_ = false, closed_ = false;
  pool::counts counts_;
};

}  // namespace recibo::postgres
