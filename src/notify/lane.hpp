// One destination's part of the dispatcher: its own claims, its own attempts, its own breaker, so that one that hangs holds
// up no other (R21). Private to notify/.
#pragma once

#include "carrier.hpp"

#include "recibo/async/task_group.hpp"
#include "recibo/async/worker.hpp"
#include "recibo/config/settings.hpp"
#include "recibo/evidence/workflow_library.hpp"
#include "recibo/notify/dispatcher.hpp"
#include "recibo/notify/retry.hpp"
#include "recibo/storage/destinations.hpp"
#include "recibo/storage/outbox.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace recibo::notify {

class lane {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  lane(boost::asio::any_io_executor executor, dispatcher::parts p, storage::dispatcher_id by, std::string name);
  lane(const lane&) = delete;
  lane& operator=(const lane&) = delete;

  const std::string& name() const noexcept { return name_; }
  void start() { worker_.start(); }
  // There may be something to send.
  void wake() { worker_.wake(); }
  // From now on nothing is claimed and nothing more is sent; stop() waits for the rest.
  void begin_stop();
  boost::asio::awaitable<void> stop(time_point until);

 private:
  class attempt_in_hand;
  using settings_ptr = std::shared_ptr<const config::settings>;

  boost::asio::awaitable<bool> round();
  // What the outcomes say about the destination as a whole. False: the database did not take it, and nothing is sent meanwhile.
  boost::asio::awaitable<bool> heed_trouble();
  boost::asio::awaitable<bool> heed_breaker(time_point now);
  boost::asio::awaitable<void> spread_what_waited();
  boost::asio::awaitable<bool> look(const config::destination& to);
  boost::asio::awaitable<void> extend(const config::settings& settings, const config::destination& to);
  // Records what has come back, and with `claims` takes what is due. Whether there is more to take at once.
  boost::asio::awaitable<bool> exchange(settings_ptr settings, bool claims);
  std::optional<storage::claim_query> next_claim(const config::settings& settings, const config::destination& to);
  // Everything that is claimed and not yet on record.
  std::vector<storage::held_claim> in_hand() const;
  boost::asio::awaitable<void> pack(settings_ptr settings, std::vector<storage::claimed_notification> claimed);
  boost::asio::awaitable<bool> pack_some(settings_ptr settings, std::vector<storage::claimed_notification> claimed,
                                         time_point until);
  void start_senders(int concurrency);
  boost::asio::awaitable<void> send_what_is_ready();
  boost::asio::awaitable<void> deliver(parcel one);
  std::optional<sys_micros> lower_bound(time_point now);
  void give_back(const storage::claimed_notification& one);
  void give_back_ready();
  void take(storage::attempt_outcome outcome);
  // Retry-After speaks for whoever answers: the other notifications leave it alone too (S37).
  void heed_wish(const sent& came, const config::destination& to);
  // Wakes the lane when what was put off is due.
  void wake_after(std::chrono::milliseconds wait);
  void arm_due();
  carrier& carrier_for(const config::destination& to);
  double random() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  const dispatcher::parts parts_;
  const storage::dispatcher_id by_;
  const std::string name_;
  async::task_group tasks_;
  async::worker worker_;
  evidence::workflow_library workflows_;
  std::minstd_rand random_;

  std::unique_ptr<carrier> http_, nats_;
  // Claimed and packed; senders take from its front.
  std::deque<parcel> ready_;
  // Taken by a sender; each stands in its coroutine's frame.
  std::set<const storage::claimed_notification*> sending_;
  // Senders that run, each with one attempt in hand; and how many more than that are claimed ahead, while all goes well.
  int senders_ = 0, ahead_ = 0;
  // So many are packed at once: fewer after that took too long.
  static constexpr int pack_most = 256;
  int pack_most_ = pack_most;
  bool stopping_ = false;
  std::vector<storage::attempt_outcome> done_;
  recent_attempts recent_;
  // An attempt failed that has not been judged, and none was taken since.
  bool failing_ = false;
  storage::destination_row row_;
  time_point looked_{}, beat_{}, swept_{}, stepped_{}, looked_back_{}, sorted_{};
  // The sweep that is under way, up to here.
  std::optional<storage::held_place> sweep_place_;
  // While there is more than can be sent at once: what was due before it has been claimed.
  std::optional<sys_micros> due_since_;
  // A probe is out, until then: its outcome decides about the breaker. Where nothing was sent with it, it goes back.
  std::optional<sys_micros> probe_until_;
  std::optional<bool> probed_;
  bool probe_unused_ = false;
  // What an answer said that stops the whole destination; or until when it asked to be left alone.
  std::string_view stopped_for_;
  time_point asked_until_{};
  // When attempts that were put off are due, the next one first.
  std::priority_queue<time_point, std::vector<time_point>, std::greater<>> due_;
  boost::asio::steady_timer due_timer_;
  // What a wait that has ended already may look at after we have gone.
  const std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);
};

}  // namespace recibo::notify
