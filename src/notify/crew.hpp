// Threads for a library that blocks. Private to notify/.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace recibo::notify {

// They hold what they need themselves, and nobody waits for them on a thread that has other things to do: one that hangs is left
// behind. Used from one thread.
class crew {
 public:
  using task = std::function<void()>;
  // `leaving` is called by each thread that ends.
  crew(std::size_t most, void (*leaving)());
  ~crew() { end(); }
  crew(const crew&) = delete;
  crew& operator=(const crew&) = delete;

  void add(task one);
  // In front of all, and on one more thread: it waits for none of them.
  void add_apart(task one);
  // Nothing is added any more: the threads end when there is nothing left to do.
  void end();
  std::size_t live() const;

 private:
  struct state;
  static void work(const std::shared_ptr<state>& of);
  void start();

  const std::shared_ptr<state> state_;
};

}  // namespace recibo::notify
