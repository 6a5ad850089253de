// A client on an io_context of the test's own, in front of servers that the test makes.
#pragma once

#include "stage_server.hpp"

#include "recibo/http/client.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace recibo::http::test {

using namespace std::chrono_literals;

// Answers what it was told, one list after another; the last one again and again. Unknown names fail.
class scripted_resolver final : public name_resolver {
 public:
  boost::asio::awaitable<result<std::vector<ip_bytes>>> resolve(std::string host) override {
    ++asked;
    const auto at = answers.find(host);
    if (at == answers.end()) {
      if (!hangs) co_return error(transient::resolve_failed, "There is no address for " + host + ".");
      boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, 60s);
      boost::system::error_code ec;
      co_await timer.async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, ec));
      co_return error(transient::resolve_failed, "given up");
    }
    std::vector<ip_bytes> out;
    for (const std::string& text : at->second.front()) out.push_back(*parse_ip(text));
    if (at->second.size() > 1) at->second.pop_front();
    co_return out;
  }

  std::map<std::string, std::list<std::vector<std::string>>> answers;
  int asked = 0;
  bool hangs = false;
};

class ClientTest : public testing::Test {
 protected:
  ClientTest() {
    resolver_->answers["ledger.test"] = {{"127.0.0.1"}};
    rules_.plain_http = true;
    rules_.allow = {*parse_network("127.0.0.0/8"), *parse_network("::1")};
    rules_.timeout = 5s;
    rules_.connect_timeout = 3s;
  }

  void TearDown() override {
    client_.reset();
    context_.reset();
    servers_.clear();
  }

  stage_server& serve(stage_server::part what, std::optional<identity> who = {}, const std::string& address = "127.0.0.1",
                      std::uint16_t port = 0) {
    return *servers_.emplace_back(std::make_unique<stage_server>(std::move(what), std::move(who), address, port));
  }

  client& make(client_options options = {}) {
    static const authority trusted;
    ca_ = &trusted;
    static const auto trust = load_tls_trust(trusted.pem()).value();
    if (!options.trust) options.trust = trust;
    if (!options.resolver) options.resolver = resolver_;
    client_ = std::make_unique<client>(context_->get_executor(), std::move(options));
    return *client_;
  }
  const authority& ca() {
    if (!client_) make();
    return *ca_;
  }

  outbound_request to(const stage_server& server, const std::string& target = "/", const std::string& host = "ledger.test",
                      bool tls = false) {
    outbound_request out;
    out.url = *parse_http_url((tls ? "https://" : "http://") + host + ":" + std::to_string(server.port()) + target).url;
    return out;
  }

  result<outbound_answer> send(outbound_request what) { return send(std::move(what), rules_); }
  result<outbound_answer> send(outbound_request what, outbound_rules rules) {
    if (!client_) make();
    std::optional<result<outbound_answer>> got;
    boost::asio::co_spawn(*context_, client_->send(std::move(what), std::move(rules)),
                          [&](const std::exception_ptr& failure, result<outbound_answer> r) {
                            EXPECT_FALSE(failure);
                            got = std::move(r);
                          });
    context_->restart();
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (!got && context_->run_one_until(until) != 0) {
    }
    EXPECT_TRUE(got) << "it never ended";
    return got ? std::move(*got) : result<outbound_answer>(error(transient::our_fault));
  }
  // Lets timers of the client fire.
  void pass(std::chrono::milliseconds time) {
    context_->restart();
    context_->run_for(time);
  }

  std::shared_ptr<scripted_resolver> resolver_ = std::make_shared<scripted_resolver>();
  outbound_rules rules_;
  std::unique_ptr<boost::asio::io_context> context_ = std::make_unique<boost::asio::io_context>(1);
  std::unique_ptr<client> client_;
  std::list<std::unique_ptr<stage_server>> servers_;

 private:
  const authority* ca_ = nullptr;
};

inline std::string says(const std::string& body, const std::string& status = "200 OK") {
  return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

// Answers every request on a connection with the same bytes.
inline stage_server::part answering(std::string bytes) {
  return [bytes = std::move(bytes)](stage_peer& peer) {
    while (!peer.request().empty() && peer.send(bytes)) {
    }
  };
}

}  // namespace recibo::http::test
