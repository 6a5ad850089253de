// Asks providers about operations, and reads their lists of events: claims what is due, asks, records what came (R23, R40, R44).
// Every replica runs one; what they have to agree on stands in the database. Whatever ends in between, a look-up that was asked
// for is made, and what it brings is recorded once: what was fetched is its key.
#pragma once

#include "recibo/config/snapshot.hpp"
#include "recibo/http/client.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/record/work.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace recibo::reconcile {

// What is counted. Called on the thread of those who ask.
class meter {
 public:
  virtual ~meter() = default;
  // One request: "answered" or the word for what went wrong.
  virtual void attempt(std::string_view provider, std::string_view result) noexcept = 0;
  // What a look-up came to: the disposition of its answer, or "failed".
  virtual void settled(std::string_view provider, std::string_view result) noexcept = 0;
  // What became of reading an event list: "done", "failed" (given up), "later" (all attempts in vain, and then again).
  virtual void listed(std::string_view provider, std::string_view result) noexcept = 0;
  // "closed", "open", "half_open".
  virtual void state(std::string_view provider, std::string_view breaker) noexcept = 0;
};

// Lives on the thread of its executor; everything it is given outlives it.
class status_checks {
 public:
  using record_function =
      std::function<boost::asio::awaitable<result<record::outcome>>(record::work, std::chrono::steady_clock::time_point)>;
  // receive::extract.
  using read_function = std::function<void(const config::provider&, const http::request&, record::callback&)>;
  // receive::extract_each.
  using read_each_function =
      std::function<std::vector<record::callback>(const config::provider&, const http::request&, const record::callback&)>;

  struct parts {
    const config::snapshot& settings;
    postgres::pool& pool;
    http::client& client;
    meter& counts;
    record_function record;
    read_function read;
    read_each_function read_each;
    // Whether the schema suits: before that nothing is asked of the database.
    std::function<bool()> ready;
  };
  status_checks(boost::asio::any_io_executor executor, parts p);
  ~status_checks();
  status_checks(const status_checks&) = delete;
  status_checks& operator=(const status_checks&) = delete;

  void start();
  // Claims nothing more, lets what is being asked finish until then, gives back the rest. The recorder has to outlast it.
  boost::asio::awaitable<void> stop(std::chrono::steady_clock::time_point until);

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace recibo::reconcile
