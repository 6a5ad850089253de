// Delivers the outbox: claims what is due, sends it, records what became of it (R19-R21). Every replica runs one; what they
// have to agree on stands in the database. Whatever ends in between, each notification leaves at least once, under the same
// ID, in the order of its operation.
#pragma once

#include "recibo/config/snapshot.hpp"
#include "recibo/core/secret.hpp"
#include "recibo/http/client.hpp"
#include "recibo/postgres/pool.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

namespace recibo::notify {

// What is counted. Called on the dispatcher's thread.
class meter {
 public:
  virtual ~meter() = default;
  // One attempt: "delivered" or the word for what went wrong.
  virtual void attempt(std::string_view destination, std::string_view result) noexcept = 0;
  // How many attempts a notification took until it was delivered or dead.
  virtual void settled(std::string_view destination, int attempts) noexcept = 0;
  // "closed", "open", "half_open"; and whether nothing is sent until a person resumes it.
  virtual void state(std::string_view destination, std::string_view breaker, bool paused) noexcept = 0;
};

// Lives on the thread of its executor; everything it is given outlives it.
class dispatcher {
 public:
  struct parts {
    const config::snapshot& settings;
    postgres::pool& pool;
    http::client& client;
    // For the session that hears of what other replicas have recorded.
    secret database_url;
    meter& counts;
    // Whether the schema suits: before that nothing is asked of the database.
    std::function<bool()> ready;
  };
  dispatcher(boost::asio::any_io_executor executor, parts p);
  ~dispatcher();
  dispatcher(const dispatcher&) = delete;
  dispatcher& operator=(const dispatcher&) = delete;

  void start();
  // Notifications to these destinations were committed by this replica: they are looked for now, and other replicas are told.
  void told(const std::set<std::string, std::less<>>& destinations);
  // Claims nothing more, lets what is being sent finish until then, gives back the rest.
  boost::asio::awaitable<void> stop(std::chrono::steady_clock::time_point until);

 private:
  struct impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace recibo::notify
