// One keep-alive connection that carries one request at a time, and reads as much of the answer as is counted.
#pragma once

#include <boost/asio/ip/tcp.hpp>

#include <array>
#include <functional>
#include <string>
#include <string_view>

namespace recibo::bench {

// What came back. `status` 0: nothing did.
struct answer {
  int status = 0;
  bool replayed = false;    // Idempotent-Replayed
  std::string disposition;  // of the body, where it has one
};

class connection {
 public:
  using told = std::function<void(const answer&)>;

  connection(boost::asio::io_context& context, boost::asio::ip::tcp::endpoint to);

  // Opens at once, blocking; false when refused.
  bool open();
  // `then` is called once, from the context. Reopens after a lost connection. One exchange at a time.
  void exchange(std::string request, told then);

 private:
  void read();
  bool complete();
  void finish(const answer& what);

  boost::asio::ip::tcp::socket socket_;
  boost::asio::ip::tcp::endpoint to_;
  std::string request_, got_;
  std::array<char, 4096> chunk_{};
  told then_;
};

}  // namespace recibo::bench
