// Reads one provider's list of events, a page at a time (R44): whichever replica has claimed the page. Private to reconcile/.
#pragma once

#include "recibo/async/worker.hpp"
#include "recibo/config/settings.hpp"
#include "recibo/reconcile/status_checks.hpp"
#include "recibo/storage/event_lists.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <string>

namespace recibo::reconcile {

class list_lane {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  list_lane(boost::asio::any_io_executor executor, status_checks::parts p, storage::look_up_holder by, std::string name);
  list_lane(const list_lane&) = delete;
  list_lane& operator=(const list_lane&) = delete;

  void start() { worker_.start(); }
  boost::asio::awaitable<void> stop(time_point until);

 private:
  using settings_ptr = std::shared_ptr<const config::settings>;

  boost::asio::awaitable<bool> round();
  // Counts and logs what ends a reading, or holds it up.
  void tell(const storage::page_outcome& outcome);
  // Fills in what came of it.
  boost::asio::awaitable<void> read_page(settings_ptr settings, storage::claimed_page page, storage::page_outcome& outcome);
  // What a page says, to the recorder; false: `outcome` says what was in the way.
  boost::asio::awaitable<bool> record_page(settings_ptr settings, storage::claimed_page page, http::request answer,
                                           storage::page_outcome& outcome);
  // Again later; where all attempts were in vain, after a long while, and given up after a day of that.
  void put_off(const config::list_rule& rule, const storage::claimed_page& page, std::string_view reason,
               std::optional<std::chrono::seconds> wanted, storage::page_outcome& outcome);
  double random() { return std::uniform_real_distribution<double>(0, 1)(random_); }

  const status_checks::parts parts_;
  const storage::look_up_holder by_;
  const std::string name_;
  async::worker worker_;
  std::minstd_rand random_;
  bool stopping_ = false;
  // A page that is claimed and not settled: what a drain cuts off goes back.
  std::optional<storage::page_outcome> in_hand_;
};

}  // namespace recibo::reconcile
