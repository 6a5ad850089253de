// A server on a thread of its own, with a service that the test can steer.
#pragma once

#include "raw_client.hpp"

#include "recibo/http/problem.hpp"
#include "recibo/http/server.hpp"

#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>

namespace recibo::http::test {

// /echo answers the body and shows what was received; /early/N is refused with status N before its body; /slow waits for a
// second; /throw and /throw-early throw; /big/N answers N bytes.
class steered_service : public service {
 public:
  explicit steered_service(boost::asio::io_context& context) : context_(context) {}

  std::optional<response> refuse_early(const request& head) override {
    ++judged;
    if (head.path == "/throw-early") throw std::runtime_error("early");
    if (!head.path.starts_with("/early/")) return std::nullopt;
    return problem(std::stoi(head.path.substr(7)), "refused", "early");
  }

  boost::asio::awaitable<response> handle(request& whole) override {
    ++handled;
    response made;
    made.content_type = "text/plain";
    if (whole.path == "/slow") {
      boost::asio::steady_timer timer(context_, std::chrono::seconds(1));
      co_await timer.async_wait(boost::asio::use_awaitable);
      ++finished;
    }
    if (whole.path == "/throw") throw std::runtime_error("secret\nthing");
    if (whole.path == "/throw-int") throw 1;
    if (whole.path == "/nothing") {
      made.status = 204;
      co_return made;
    }
    if (whole.path == "/close") made.close = true;
    if (whole.path == "/inject") made.headers.emplace_back("Location", "/a\r\nX-Forged: 1");
    if (whole.path.starts_with("/big/")) {
      made.body = std::string(std::stoul(whole.path.substr(5)), 'x');
      co_return made;
    }
    if (whole.path == "/peer") {
      made.body = whole.peer;
      co_return made;
    }
    if (whole.path == "/headers") {
      for (const auto& [name, value] : whole.headers) made.body += name + "=" + value + "\n";
      co_return made;
    }
    made.headers.emplace_back("X-Method", whole.method);
    made.headers.emplace_back("X-Span", whole.span_id);
    made.body = whole.body;
    co_return made;
  }

  std::atomic<int> judged{0}, handled{0}, finished{0};

 private:
  boost::asio::io_context& context_;
};

class ServerTest : public testing::Test {
 protected:
  ServerTest() : guard_(context.get_executor()), service_(std::make_shared<steered_service>(context)) {
    options.name = "callbacks";
    options.address = "127.0.0.1";
    options.body_limit = 100'000;
    options.header_limit = 2048;
    thread_ = std::thread([this] { context.run(); });
  }

  ~ServerTest() override {
    on_thread([&] { server_.reset(); });
    guard_.reset();
    thread_.join();
  }

  // Runs `what` where the server lives, and waits for it.
  void on_thread(const std::function<void()>& what) {
    std::promise<void> done;
    boost::asio::post(context, [&] {
      what();
      done.set_value();
    });
    done.get_future().wait();
  }

  void serve() {
    on_thread([&] {
      server_.emplace(context.get_executor(), options, service_);
      port = server_->port();
      server_->start();
    });
  }

  int connections() {
    int count = 0;
    on_thread([&] { count = server_->connections(); });
    return count;
  }

  bool eventually(const std::function<bool()>& what, std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!what()) {
      if (std::chrono::steady_clock::now() > until) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  raw_client connect() { return raw_client(port); }

  boost::asio::io_context context;
  server_options options;
  std::uint16_t port = 0;

  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> guard_;
  std::shared_ptr<steered_service> service_;
  std::optional<server> server_;
  std::thread thread_;
};

inline std::string post(std::string_view path, std::string_view body, std::string_view more = {}) {
  return "POST " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + std::string(more) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

inline std::string get(std::string_view path, std::string_view more = {}) {
  return "GET " + std::string(path) + " HTTP/1.1\r\nHost: test\r\n" + std::string(more) + "\r\n";
}

}  // namespace recibo::http::test
