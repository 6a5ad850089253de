// One provider's part of status_checks: its own claims, its own attempts, its own breaker, so that one that hangs holds up no
// other. Private to reconcile/.
#pragma once

#include "recibo/async/task_group.hpp"
#include "recibo/async/worker.hpp"
#include "recibo/config/settings.hpp"
#include "recibo/notify/retry.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/reconcile/status_checks.hpp"
#include "recibo/reconcile/status_request.hpp"
#include "recibo/storage/look_ups.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::reconcile {

class check_lane {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  check_lane(boost::asio::any_io_executor executor, status_checks::parts p, storage::look_up_holder by, std::string name);
  check_lane(const check_lane&) = delete;
  check_lane& operator=(const check_lane&) = delete;

  void start() { worker_.start(); }
  boost::asio::awaitable<void> stop(time_point until);

 private:
  class asking;
  using settings_ptr = std::shared_ptr<const config::settings>;

  boost::asio::awaitable<bool> round();
  boost::asio::awaitable<bool> claim(settings_ptr settings);
  boost::asio::awaitable<void> catch_up();
  boost::asio::awaitable<void> ask(settings_ptr settings, storage::claimed_look_up one, bool probe);
  // The answer, or what stands for it, to the recorder; an error: it is not on record, or not known to be.
  boost::asio::awaitable<result<void>> record(record::callback c, const storage::claimed_look_up& one);
  record::callback callback_of(const settings_ptr& settings, const storage::claimed_look_up& one,
                               const storage::look_up_outcome& outcome) const;
  // What becomes of an attempt whose answer the recorder refused.
  boost::asio::awaitable<void> settle_unrecorded(settings_ptr settings, const storage::claimed_look_up& one,
                                                 storage::look_up_outcome outcome, error why, bool lost);
  boost::asio::awaitable<void> leave_alone(const config::status_rule& rule, std::chrono::seconds wanted);
  boost::asio::awaitable<void> settle(storage::look_up_outcome what);
  // What an attempt says about the provider as a whole.
  boost::asio::awaitable<void> heed(const judged_attempt& judged, bool probe);
  void heeded(const result<void>& done, log::level at, std::string_view what);
  double random() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  const status_checks::parts parts_;
  const storage::look_up_holder by_;
  const std::string name_;
  async::task_group tasks_;
  async::worker worker_;
  std::minstd_rand random_;

  int in_flight_ = 0;
  bool stopping_ = false;
  // Cut off by a drain: they go back.
  std::vector<storage::look_up_outcome> returned_;
  notify::recent_attempts recent_;
  int openings_ = 0;
  bool opening_ = false;  // it is being written that the breaker opens
};

}  // namespace recibo::reconcile
