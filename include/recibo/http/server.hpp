// One listener: accepts connections, reads requests within bounds, hands them to a service, writes the answers,
// drains. Everything runs on the one thread of the io_context it was given (decision 10).
#pragma once

#include "recibo/config/listener.hpp"
#include "recibo/core/network.hpp"
#include "recibo/http/message.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace recibo::observe {
class metrics;
}

namespace recibo::http {

// What stands behind a listener.
class service {
 public:
  virtual ~service() = default;
  // Called with the head only (body empty), before `100 Continue` is sent or a body byte is awaited.
  // An answer refuses the request there: unknown route, wrong method, unsupported coding. Its body, when it is small, is
  // read over and the connection kept; else the connection is closed.
  virtual std::optional<response> refuse_early(const request& head) = 0;
  // Called with the whole request. `request` lives until the returned coroutine has finished. Must not throw; what
  // escapes is answered 503 and logged.
  virtual boost::asio::awaitable<response> handle(request& whole) = 0;
  // A handler that streams its answer (server-sent events) is not part of this interface.
};

struct server_options {
  std::string name;  // "callbacks" or "api", for logs and metrics
  std::string address;
  std::uint16_t port = 0;
  std::size_t body_limit = 1 << 20;
  std::size_t header_limit = 8 << 10;
  int connection_limit = 20000;
  // Shared by all listeners of the thread: bytes of bodies being read or not yet answered; over it 503 at once.
  std::size_t in_flight_limit = 64u << 20;
  // From the first byte of a request to the end of its head, from there to the end of its body (also the longest an
  // answer may stand still), and between requests.
  std::chrono::milliseconds header_timeout{10'000}, body_timeout{30'000}, idle_timeout{75'000};
  // Networks of the proxies whose headers say for whom they speak; from elsewhere they are not looked at (S21).
  std::vector<network> trusted_proxies;
  config::forwarded_headers forwarded = config::forwarded_headers::any;
  // Connections of trusted proxies begin with a PROXY header; those of others must not.
  bool proxy_protocol = false;
  // Null: plain HTTP. The handshake, and the PROXY header before it, have `header_timeout`.
  std::shared_ptr<const tls_context> tls;
  // recibo_http_requests_total and recibo_http_connections under `name`; outlives the server.
  observe::metrics* metrics = nullptr;
};

class server {
 public:
  // Binds and listens (SO_REUSEPORT when `reuse_port`); throws boost::system::system_error when it cannot.
  server(boost::asio::any_io_executor executor, server_options options, std::shared_ptr<service> behind, bool reuse_port = false);
  ~server();
  server(const server&) = delete;
  server& operator=(const server&) = delete;

  std::uint16_t port() const noexcept;
  // Once. Over `connection_limit` a connection is answered 503 and closed; where TLS or a PROXY header comes first, closed.
  void start();
  // From now on each answer closes its connection, so that clients and balancers move elsewhere; idle and new connections
  // are still served until drain().
  void announce_drain();
  // Stops accepting, closes idle keep-alive connections, lets requests in hand finish with `Connection: close`.
  void drain();
  // Cuts what is left, and cancels its handlers. Their coroutines end when the executor next runs.
  void stop();
  // Open ones, idle or not; 0 some time after drain() means that everything has been answered.
  int connections() const noexcept;
  // Takes everything but name, address and port for connections accepted from now on: limits, certificates, trusted proxies.
  void set_options(const server_options& options);

 private:
  class impl;
  std::shared_ptr<impl> impl_;
};

}  // namespace recibo::http
