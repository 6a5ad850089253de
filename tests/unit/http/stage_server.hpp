// A server that does exactly what a test tells it, byte for byte, on blocking sockets and a thread for each connection.
#pragma once

#include "test_certificates.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace recibo::http::test {

// The server's end of one connection. What fails is not the server's business: tests look at what the client says.
class stage_peer {
 public:
  using tcp = boost::asio::ip::tcp;

  stage_peer(tcp::socket socket, boost::asio::ssl::context* tls, int n) : number(n), socket_(std::move(socket)) {
    if (tls == nullptr) return;
    tls_.emplace(socket_, *tls);
    tls_->handshake(boost::asio::ssl::stream_base::server, ignored_);
    const char* const name = SSL_get_servername(tls_->native_handle(), TLSEXT_NAMETYPE_host_name);
    server_name = name == nullptr ? "" : name;
  }

  // Head and body of the next request; empty when none comes.
  std::string request() {
    std::string out;
    while (out.find("\r\n\r\n") == std::string::npos && more(out)) {
    }
    const auto head = out.find("\r\n\r\n");
    const auto length = out.find("Content-Length: ");
    if (head == std::string::npos || length == std::string::npos) return out;
    const std::size_t whole = head + 4 + std::stoul(out.substr(length + 16));
    while (out.size() < whole && more(out)) {
    }
    return out;
  }
  bool send(const std::string& bytes) {
    boost::system::error_code ec;
    if (tls_) {
      boost::asio::write(*tls_, boost::asio::buffer(bytes), ec);
    } else {
      boost::asio::write(socket_, boost::asio::buffer(bytes), ec);
    }
    return !ec;
  }
  // The end of TLS as it should be.
  void farewell() {
    if (tls_) tls_->shutdown(ignored_);
  }
  void reset() {
    socket_.set_option(boost::asio::socket_base::linger(true, 0), ignored_);
    socket_.close(ignored_);
  }
  void wait_until_closed() {
    std::string sink;
    while (more(sink)) sink.clear();
  }

  const int number;  // 0 for the first connection
  std::string server_name;

 private:
  bool more(std::string& to) {
    char some[4096];
    boost::system::error_code ec;
    const std::size_t n =
        tls_ ? tls_->read_some(boost::asio::buffer(some), ec) : socket_.read_some(boost::asio::buffer(some), ec);
    to.append(some, n);
    return !ec && n > 0;
  }

  boost::system::error_code ignored_;
  tcp::socket socket_;
  std::optional<boost::asio::ssl::stream<tcp::socket&>> tls_;
};

class stage_server {
 public:
  using part = std::function<void(stage_peer&)>;

  explicit stage_server(part what, std::optional<identity> who = {}, const std::string& address = "127.0.0.1",
                        std::uint16_t port = 0)
      : what_(std::move(what)), acceptor_(context_, {boost::asio::ip::make_address(address), port}) {
    if (who) {
      tls_.emplace(boost::asio::ssl::context::tls_server);
      tls_->use_certificate_chain(boost::asio::buffer(who->certificate));
      tls_->use_private_key(boost::asio::buffer(who->key), boost::asio::ssl::context::pem);
    }
    main_ = std::thread([this] { accept(); });
  }
  // The clients have gone by then: nothing here waits for itself.
  ~stage_server() {
    stopping_ = true;
    ::shutdown(acceptor_.native_handle(), SHUT_RDWR);
    main_.join();
    for (auto& one : threads_) one.join();
  }

  std::uint16_t port() const { return acceptor_.local_endpoint().port(); }
  int connections() const { return count_; }

 private:
  void accept() {
    for (;;) {
      boost::system::error_code ec;
      auto socket = acceptor_.accept(ec);
      if (ec || stopping_) return;
      threads_.emplace_back([this, n = count_++, s = std::move(socket)]() mutable {
        stage_peer peer(std::move(s), tls_ ? &*tls_ : nullptr, n);
        what_(peer);
      });
    }
  }

  part what_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::optional<boost::asio::ssl::context> tls_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> count_ = 0;
  std::vector<std::thread> threads_;
  std::thread main_;
};

}  // namespace recibo::http::test
