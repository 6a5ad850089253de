// The broker of a NATS destination, as the threads see it that publish there (decision 31): one connection, which they share, and
// how it ends. The client library blocks, so that nothing here but stop() belongs on a thread that has other things to do.
// Private to notify/.
#pragma once

#include "carrier.hpp"

#include "recibo/core/network.hpp"
#include "recibo/core/secret.hpp"

#include <nats/nats.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace recibo::notify {

// How long the library waits for a connection and the first word over it. It waits for the rest of the greeting, and for a
// handshake of TLS, without end: who waits longer than it should has it cut.
inline constexpr std::chrono::milliseconds broker_connect_most{3'000};

// Everything that a thread needs, copied: settings may change meanwhile.
struct letter {
  // Where the broker is, by the addresses that were judged; and as whom.
  std::vector<ip_bytes> addresses;
  std::uint16_t port = 0;
  std::string host, user, ca;
  bool tls = false;
  secret password, token, jwt, seed;
  // What.
  std::string subject, id, body;
  http::header_list headers;
  std::chrono::milliseconds timeout{};
  // Later than that nobody waits for what comes of it, and it is not sent any more.
  std::chrono::steady_clock::time_point begin_by{};

  // Letters that may go over one connection, if that leads to one of the addresses.
  bool same_way(const letter& o) const {
    return port == o.port && host == o.host && user == o.user && ca == o.ca && tls == o.tls &&
           password.reveal() == o.password.reveal() && token.reveal() == o.token.reveal() && jwt.reveal() == o.jwt.reveal() &&
           seed.reveal() == o.seed.reveal();
  }
};

class nats_session;

// What the threads share: the one connection, and whether it is over.
class broker {
 public:
  // On a thread of the crew.
  sent publish(const letter& what);
  // From any thread; does not wait.
  void stop();
  // On a thread of the crew: ends the connection that is being made, where one is.
  void cut();
  // The same after stop(), and what is under way over the connection that there is: all of it ends at once.
  void close();

 private:
  using attempt = std::pair<std::shared_ptr<nats_session>, natsStatus>;
  attempt session_for(const letter& what);
  attempt connect(const letter& what, std::unique_lock<std::mutex>& held);

  std::atomic<bool> stopped_ = false;
  // Held for moments only, never while the library is called.
  std::mutex lock_;
  std::condition_variable changed_;
  std::shared_ptr<nats_session> session_;
  // Of the last attempt to connect: how to, to which of the addresses, when it began, whether it is under way, and what came of
  // it.
  letter way_;
  ip_bytes at_{};
  std::chrono::steady_clock::time_point began_{}, failed_at_{};
  bool connecting_ = false;
  // Sockets to the broker that were there before it: other destinations have some too.
  std::set<int> others_;
  natsStatus failed_ = NATS_OK;
};

}  // namespace recibo::notify
