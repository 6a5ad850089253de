// One destination's part of the dispatcher: its own claims, its own attempts, its own breaker, so that one that hangs holds
// up no other (R21). Private to notify/.
#pragma once

#include "recibo/async/task_group.hpp"
#include "recibo/async/worker.hpp"
#include "recibo/config/settings.hpp"
#include "recibo/evidence/workflow_library.hpp"
#include "recibo/notify/dispatcher.hpp"
#include "recibo/notify/retry.hpp"
#include "recibo/storage/outbox.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
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
  boost::asio::awaitable<void> stop(time_point until);

 private:
  // One that was claimed, ready to go.
  struct parcel {
    storage::claimed_notification what;
    std::string body;
  };
  class sending;
  using settings_ptr = std::shared_ptr<const config::settings>;

  boost::asio::awaitable<bool> round();
  // Records what has come back. False: the database did not take it, and it is tried again.
  boost::asio::awaitable<bool> settle();
  boost::asio::awaitable<void> heed_trouble();
  boost::asio::awaitable<bool> look(const config::destination& to);
  boost::asio::awaitable<bool> claim(settings_ptr settings);
  boost::asio::awaitable<std::vector<parcel>> pack(settings_ptr settings, std::vector<storage::claimed_notification> claimed);
  boost::asio::awaitable<void> deliver(settings_ptr settings, parcel one);
  void give_back(const storage::claimed_notification& one);
  void take(storage::attempt_outcome outcome, bool passed);
  double random() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  const dispatcher::parts parts_;
  const storage::dispatcher_id by_;
  const std::string name_;
  async::task_group tasks_;
  async::worker worker_;
  evidence::workflow_library workflows_;
  std::minstd_rand random_;

  int in_flight_ = 0;
  bool stopping_ = false;
  std::vector<storage::attempt_outcome> done_;
  recent_attempts recent_;
  storage::destination_row row_;
  time_point looked_{}, beat_{}, swept_{};
  // While there is more than can be sent at once: what was due before it has been claimed.
  std::optional<sys_micros> due_since_;
  // A probe is out: its outcome decides about the breaker.
  bool probing_ = false;
  std::optional<bool> probed_;
  // What an answer said that stops the whole destination.
  std::string_view stopped_for_;
};

}  // namespace recibo::notify
