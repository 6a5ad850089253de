// Which address of a broker is connected to (decision 31). What a broker says is told by a real one in the end-to-end tests.
#include "src/notify/broker.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>

#include <gtest/gtest.h>

#include <thread>

namespace recibo::notify {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using namespace std::chrono_literals;

// Greets, and is gone once somebody has said who he is.
class greeter {
 public:
  explicit greeter(const char* address)
      : listening_(context_, tcp::endpoint(asio::ip::make_address(address), 0)), port_(listening_.local_endpoint().port()) {
    listening_.async_accept([this](boost::system::error_code failed, tcp::socket one) {
      if (!failed) greet(std::move(one));
    });
    thread_ = std::jthread([this] { context_.run_for(20s); });
  }
  std::uint16_t port() const { return port_; }
  // What was said to it, or nothing within its time.
  std::string heard() {
    thread_.join();
    return heard_;
  }

 private:
  void greet(tcp::socket one) {
    boost::system::error_code failed;
    const std::string hello =
        R"(INFO {"server_id":"t","version":"2.10.0","proto":1,"headers":true,"max_payload":1048576,"jetstream":true})"
        "\r\n";
    asio::write(one, asio::buffer(hello), failed);
    char text[1024];
    const auto size = one.read_some(asio::buffer(text), failed);
    heard_.assign(text, size);
  }

  asio::io_context context_;
  tcp::acceptor listening_;
  std::uint16_t port_;
  std::string heard_;
  std::jthread thread_;
};

letter to(std::vector<ip_bytes> addresses, std::uint16_t port) {
  letter out;
  out.addresses = std::move(addresses);
  out.port = port;
  out.host = "broker.example";
  out.subject = "s";
  out.id = "1";
  out.timeout = 2s;
  out.begin_by = std::chrono::steady_clock::now() + 10s;
  return out;
}

TEST(Broker, WhereNobodyListensTheNextAddressIsTried) {
  greeter second("127.0.0.1");
  broker over;
  const auto came = over.publish(to({*parse_ip("127.0.0.2"), *parse_ip("127.0.0.1")}, second.port()));
  EXPECT_EQ(came.judged.what, verdict::again);
  over.stop();
  over.close();
  const auto heard = second.heard();
  EXPECT_TRUE(heard.starts_with("CONNECT {")) << heard;
}

TEST(Broker, WhereNobodyListensAnywhereItSaysSo) {
  broker over;
  const auto came = over.publish(to({*parse_ip("127.0.0.2"), *parse_ip("127.0.0.3")}, 9));
  EXPECT_EQ(came.judged.reason, "connect_failed");
  over.stop();
  over.close();
}

}  // namespace
}  // namespace recibo::notify
