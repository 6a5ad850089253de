// One connection to one checked address, plain or TLS. Its operations heed cancellation; one at a time.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/core/network.hpp"

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/stream.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::http {

class tls_trust;

class link {
 public:
  explicit link(const boost::asio::any_io_executor& executor) : born(std::chrono::steady_clock::now()), socket_(executor) {}
  link(const link&) = delete;
  link& operator=(const link&) = delete;

  // transient::connect_failed
  boost::asio::awaitable<result<void>> connect(ip_bytes to, std::uint16_t port);
  // TLS, with the certificate held against `host`. permanent::certificate_refused, transient::tls_failed
  boost::asio::awaitable<result<void>> secure(const tls_trust& trust, std::string host);

  struct outcome {
    boost::system::error_code code;
    std::size_t bytes = 0;
  };
  // `wire` outlives the await.
  boost::asio::awaitable<outcome> write(std::string_view wire);
  // Appends what has come, at most 16 KiB.
  boost::asio::awaitable<outcome> read(std::string& to);

  // Whether an idle connection has ended, or been written to unasked.
  bool stale();

  const std::chrono::steady_clock::time_point born;
  std::chrono::steady_clock::time_point idle_since{};
  ip_bytes address{};

 private:
  using socket = boost::asio::ip::tcp::socket;
  socket socket_;
  std::optional<boost::asio::ssl::stream<socket&>> tls_;
};

}  // namespace recibo::http
