// Tells the lanes, here and on the other replicas, that there is something to deliver (decision 31). Nothing depends on it: every
// lane looks for itself too, only not as often. Private to notify/.
#pragma once

#include "recibo/async/task_group.hpp"
#include "recibo/async/worker.hpp"
#include "recibo/core/secret.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/outbox.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::notify {

using destination_names = std::set<std::string, std::less<>>;

// What a word of the channel says to `own`: the destinations, "*" for any; empty: it was ours, or it is no such word.
std::vector<std::string> read_word(std::string_view word, std::string_view own);
// The word, short enough for a notification of PostgreSQL: too many names become "*".
std::string write_word(std::string_view own, const destination_names& names);

class doorbell {
 public:
  using time_point = std::chrono::steady_clock::time_point;
  // Called with a destination, or "*" for any.
  using heard_function = std::function<void(std::string_view)>;

  doorbell(boost::asio::any_io_executor executor, secret database_url, postgres::pool& pool, storage::dispatcher_id own,
           std::function<bool()> ready, heard_function heard);
  doorbell(const doorbell&) = delete;
  doorbell& operator=(const doorbell&) = delete;

  void start();
  // Something for these was committed here.
  void ring(const destination_names& names);
  boost::asio::awaitable<void> stop(time_point until);

 private:
  boost::asio::awaitable<bool> tell_own();
  boost::asio::awaitable<bool> tell_others();
  boost::asio::awaitable<void> keep_listening();
  boost::asio::awaitable<void> listen();
  boost::asio::awaitable<void> pause(std::chrono::milliseconds how_long);

  boost::asio::any_io_executor executor_;
  const secret url_;
  postgres::pool& pool_;
  const std::string own_;
  const std::function<bool()> ready_;
  const heard_function heard_;
  destination_names for_own_, for_others_;
  bool stopping_ = false;
  async::worker telling_own_, telling_others_;
  async::task_group listening_;
};

}  // namespace recibo::notify
