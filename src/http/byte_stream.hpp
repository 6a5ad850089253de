// The bytes of one connection, plain or through TLS. Never waits: what cannot be done now says what to wait for, so that an
// idle connection holds no buffer and no operation of its own.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <cstddef>
#include <memory>
#include <string_view>

struct ssl_st;

namespace recibo {
class tls_context;
}

namespace recibo::http {

// One thread. SIGPIPE is ignored by the process: OpenSSL writes without MSG_NOSIGNAL.
class byte_stream {
 public:
  enum class state {
    done,        // something was read, written or agreed on
    want_read,   // again when the socket is readable
    want_write,  // again when it is writable
    end,         // closed, or broken
  };
  struct outcome {
    byte_stream::state state = state::end;
    std::size_t bytes = 0;
  };

  explicit byte_stream(boost::asio::ip::tcp::socket socket);
  // Says goodbye (close_notify) where it can be said without waiting.
  ~byte_stream();
  byte_stream(const byte_stream&) = delete;
  byte_stream& operator=(const byte_stream&) = delete;

  boost::asio::ip::tcp::socket& socket() noexcept { return socket_; }

  outcome read_some(char* to, std::size_t most);
  // After want_write the same bytes come again. Through TLS one record at most.
  outcome write_some(std::string_view first, std::string_view second);
  // Whether read_some() has something that the socket does not show any more.
  bool pending() const noexcept;

  // Beneath TLS: bytes of a PROXY header, and what is read over before a close.
  outcome peek(char* to, std::size_t most);
  outcome read_raw(char* to, std::size_t most);

  // From here on everything goes through TLS; then handshake() until it is done.
  void start_tls(const tls_context& with);
  bool tls() const noexcept { return ssl_ != nullptr; }
  outcome handshake();
  // Why the handshake ended, one of tls_failure_words; once.
  std::string_view handshake_failure();
  // No more is written: close_notify, and the end of the TCP half. False: the connection is gone.
  bool shutdown_send();

 private:
  struct free_ssl {
    void operator()(ssl_st* what) const noexcept;
  };
  outcome of_ssl(int result);

  boost::asio::ip::tcp::socket socket_;
  std::unique_ptr<ssl_st, free_ssl> ssl_;
  bool agreed_ = false, broken_ = false;
};

}  // namespace recibo::http
