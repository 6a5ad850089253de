// The settings in force: readers take a snapshot and keep it for the length of their request, a reload puts a new one in
// its place (R38). Safe from any thread.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

namespace recibo::config {

struct settings;

class snapshot {
 public:
  explicit snapshot(std::shared_ptr<const settings> first) : now_(std::move(first)) {}

  // Never null, unless the first was.
  std::shared_ptr<const settings> get() const {
    const std::lock_guard lock(guard_);
    return now_;
  }
  void set(std::shared_ptr<const settings> next) {
    {
      const std::lock_guard lock(guard_);
      now_.swap(next);
    }
    // What was in force is let go here, outside the lock: it may be large.
  }

 private:
  // A lock held for one copy: std::atomic<std::shared_ptr> of this compiler's library is no cheaper.
  mutable std::mutex guard_;
  std::shared_ptr<const settings> now_;
};

}  // namespace recibo::config
