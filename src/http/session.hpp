// One connection: what comes before its first request, then: reads a request within its bounds, has it answered, writes the
// answer, again.
#pragma once

#include "byte_stream.hpp"
#include "listener.hpp"

#include "recibo/http/reader.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>

#include <chrono>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::http {

// Owned by its coroutine while a request is in hand, and by the wait for the next one in between, so that an idle
// connection costs this object and an entry in the reactor, and no coroutine. Known to its listener, on whose thread
// everything happens.
class session {
 public:
  using time_point = std::chrono::steady_clock::time_point;

  session(std::shared_ptr<listener> of, boost::asio::ip::tcp::socket socket);
  ~session();
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  // Whether something comes before the first request: a PROXY header, a handshake.
  bool opens() const noexcept { return expects_header_ || options_->tls; }
  // Has that done within the time of a request's head, then goes on with idle().
  static boost::asio::awaitable<void> open(std::unique_ptr<session> self);
  // Waits until something arrives, then serves it; closes the connection when it is told to or the time is over.
  static void idle(std::unique_ptr<session> self);
  // Answers 503 without reading, for a connection over the limit.
  static boost::asio::awaitable<void> refuse(std::unique_ptr<session> self);

  // For the listener. Ends the present wait when its time is over.
  void expire(time_point now);
  // Ends the wait for the next request; a request in hand goes on.
  void drain();
  void cut();

  std::size_t place = 0;    // in listener::live
  bool over_limit = false;  // counted apart

 private:
  // How a wait ended.
  enum class got {
    bytes,      // something has come, or can be sent
    end,        // the connection is closed or broken
    timed_out,  // the time for it is over
    stopped,    // the listener was told to stop
  };
  // What an answer has to know of its request.
  struct context {
    bool http_1_0 = false;
    bool head_only = false;
    bool keep = false;
    std::string trace_id, span_id;
    unsigned flags = 0;
  };

  // Serves what has arrived, until the connection is idle again or ends.
  static boost::asio::awaitable<void> run(std::unique_ptr<session> self);
  bool has_request(const boost::system::error_code& waited);
  // What came before the first request; false, and counted, when it was not as it should be.
  boost::asio::awaitable<bool> read_proxy_header(time_point until);
  boost::asio::awaitable<bool> shake_hands(time_point until);
  // One request; false when the connection ends with it.
  boost::asio::awaitable<bool> serve();
  boost::asio::awaitable<bool> read_body(reader& from, reservation& held, context& about);
  std::optional<response> judge(const request& head);
  boost::asio::awaitable<response> handle(request& whole);
  response fault(const request& of, const std::exception_ptr& failure);
  boost::asio::awaitable<bool> skip_body(reader& from);
  boost::asio::awaitable<void> linger();

  // Whatever has arrived, at most `most` bytes, into the shared buffer; waits for it until `until`.
  boost::asio::awaitable<got> fill(std::size_t most, time_point until);
  boost::asio::awaitable<got> wait(boost::asio::socket_base::wait_type what, time_point until);
  // For what `blocked` says; want_read or want_write.
  boost::asio::awaitable<got> wait(byte_stream::state blocked, time_point until);
  boost::asio::awaitable<bool> write(std::string_view head, std::string_view body);
  // Writes `what`; false when the connection does not go on after it.
  boost::asio::awaitable<bool> answer(const response& what, const context& about);
  boost::asio::awaitable<bool> refuse(const refusal& why, context about);

  void describe(request& head, context& about);

  std::shared_ptr<listener> of_;
  std::shared_ptr<const server_options> options_;
  byte_stream stream_;
  // The socket's address, or the one of the PROXY header.
  ip_bytes peer_{};
  // What was read and belongs to no request yet. Released while the connection is idle.
  std::string buffer_;
  // When the present wait ends; max: nobody waits on the socket.
  time_point until_ = time_point::max();
  bool expects_header_ = false;
  bool timed_out_ = false;
  bool idle_ = false;
  bool answered_ = false;  // since the last idle time: close so that it can be read
};

}  // namespace recibo::http
