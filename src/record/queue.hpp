// What waits to be recorded: bounded, in order of arrival for each operation, and fair (write path, rules 2 and 9).
// No I/O and no clock of its own. Belongs to one thread.
//
//   waiting   taken in order of arrival, skipping work whose operation is in another writer's hands
//   held      work whose operation was found locked by somebody else: back after a short random time, all of that
//             operation together, so that its order is kept
//   lane      work that was found busy often: taken one operation at a time by the waiting lane
//   parking   callbacks whose operation was not found: taken by the park lane
#pragma once

#include "entry.hpp"

#include <deque>
#include <list>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace recibo::record {

class queue {
 public:
  struct bounds {
    std::size_t entries = 4096;
    std::size_t bytes = 64u << 20;
    // One operation's share, so that a hot or locked one never fills the queue.
    std::size_t per_operation = 256;
    // One provider's share.
    std::size_t per_provider = 4096;
  };
  // After so many misses an operation goes to the waiting lane.
  static constexpr int misses_before_lane = 5;

  explicit queue(bounds b) : bounds_(b) {}

  // transient::queue_full or operation_busy: over a bound.
  result<void> push(entry_ptr e);
  // A batch of at most `rows`, in order. What it returns is in hand until done() is called for it.
  // Entries whose sender has gone, or whose time has passed, are finished here and never returned.
  std::vector<entry_ptr> take(std::size_t rows, std::size_t bytes, steady_time now);
  // An operation from the waiting lane, with all its work; empty: none waits.
  std::vector<entry_ptr> take_from_lane(std::size_t rows, steady_time now);
  // Callbacks for the park lane, in order.
  std::vector<entry_ptr> take_parking(std::size_t rows, steady_time now);
  // Marks digests of a batch that died: the next callback with one of them is taken alone (rule 7). One that dies again
  // and again is refused at the door for a while, longer each time.
  void suspect(const std::vector<entry_ptr>& entries, steady_time now);
  void cleared(const entry_ptr& e);

  // No longer in hand: it has been finished, or goes back with one of the two below.
  void done(const entry_ptr& e);
  // Its operation is locked by somebody else.
  void hold(const entry_ptr& e, steady_time now);
  // Of the second half of a split batch: what may go on. Work whose operation has earlier work that went back goes back
  // behind it.
  std::vector<entry_ptr> keep_order(std::vector<entry_ptr> entries);
  // Its operation is not known: to the park lane. It stays in hand, so that nothing overtakes it.
  void to_parking(const entry_ptr& e);
  // The database failed it; to the front, in this order.
  void put_back(const std::vector<entry_ptr>& entries);
  // Brings back what has been held long enough; when the next is due.
  std::optional<steady_time> release_held(steady_time now);
  // Everything that waits, finished with `why`.
  void fail_all(const error& why);

  std::size_t waiting() const noexcept { return waiting_.size(); }
  std::size_t size() const noexcept { return size_; }
  std::size_t bytes() const noexcept { return bytes_; }
  bool lane_waits() const noexcept { return !lane_.empty(); }
  bool parking_waits() const noexcept { return !parking_.empty(); }

 private:
  struct held_operation {
    std::deque<entry_ptr> entries;
    steady_time due;
    bool in_lane = false;
  };
  void forget(const entry_ptr& e);
  bool drop_if_gone(const entry_ptr& e, steady_time now);
  bool is_suspect(const entry_ptr& e) const;

  bounds bounds_;
  std::list<entry_ptr> waiting_;
  std::unordered_map<std::string, held_operation> held_;
  std::deque<std::string> lane_;
  std::deque<entry_ptr> parking_;
  std::unordered_map<std::string, std::size_t> in_hand_, per_operation_, per_provider_;
  struct suspicion {
    int deaths = 0;
    steady_time last;
  };
  std::unordered_map<std::string, suspicion> suspects_;
  std::size_t size_ = 0, bytes_ = 0;
  std::minstd_rand random_{std::random_device{}()};
};

}  // namespace recibo::record
