// How one attempt leaves: posted to an endpoint, or published to a stream of NATS. Private to notify/.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/notify/dispatcher.hpp"
#include "recibo/notify/retry.hpp"
#include "recibo/storage/outbox.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace recibo::notify {

// One that was claimed, ready to go.
struct parcel {
  storage::claimed_notification what;
  std::string provider, request_id;
  std::string body;
};

// What came of one attempt.
struct sent {
  judgement judged;
  std::optional<int> answer_status;
  // What the other side said of a failure.
  std::string excerpt;
  // Nothing left for the destination: what came says nothing about it.
  bool unsent = false;
};

class carrier {
 public:
  virtual ~carrier() = default;
  // `to` outlives the await; its kind is the carrier's. Cancelling it, or stop(), ends it soon with a failure.
  virtual boost::asio::awaitable<sent> send(const config::destination& to, parcel one) = 0;
  // Ends what is under way. Nothing is sent afterwards. Does not wait.
  virtual void stop() = 0;
  // After stop(): until the last of it has ended, but not beyond `until`; what hangs is left behind.
  virtual boost::asio::awaitable<void> wait(std::chrono::steady_clock::time_point until) = 0;
};

std::unique_ptr<carrier> make_http_carrier(http::client& client);
std::unique_ptr<carrier> make_nats_carrier(boost::asio::any_io_executor executor, const config::snapshot& settings);

}  // namespace recibo::notify
