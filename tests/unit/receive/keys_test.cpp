#include "recibo/receive/keys.hpp"

#include "recibo/core/digest.hpp"
#include "src/receive/key_request.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <nlohmann/json.hpp>

#include <deque>
#include <string>
#include <thread>
#include <vector>

namespace recibo::receive {
namespace {

using namespace std::chrono_literals;
using steady = std::chrono::steady_clock;
using form = verify::needed_key::form;

std::string public_key_of_today() {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  unsigned char* der = nullptr;
  const int size = i2d_PUBKEY(key, &der);
  std::string out(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  EVP_PKEY_free(key);
  return to_base64(out);
}

http::outbound_answer circle_answer(const std::string& id) {
  static const std::string key = public_key_of_today();
  const nlohmann::json body = {{"data", {{"id", id}, {"algorithm", "ECDSA_SHA_256"}, {"publicKey", key}}}};
  http::outbound_answer out;
  out.status = 200;
  out.body = body.dump();
  return out;
}

http::outbound_answer status(int code, std::string body = {}) {
  http::outbound_answer out;
  out.status = code;
  out.body = std::move(body);
  return out;
}

class Keys : public ::testing::Test {
 protected:
  Keys() {
    auto made = std::make_shared<config::settings>();
    config::provider& p = made->providers["circle"];
    p.name = "circle";
    p.verify = verify::presets().find("circle")->second;
    p.key_source.url = "https://api.circle.test/v2/notifications/publicKey/{id}";
    p.key_source.headers.emplace_back("Authorization", secret("Bearer KEY"));
    settings_ = std::move(made);
    how_.absent_first = 1s;
    how_.failed_first = 1s;
  }
  ~Keys() override { cache_.reset(); }

  key_cache& cache() {
    if (!cache_) {
      auto fetch = [this](http::outbound_request what, http::outbound_rules) { return this->fetch(std::move(what)); };
      cache_.emplace(context_.get_executor(), std::move(fetch), how_);
    }
    return *cache_;
  }

  boost::asio::awaitable<result<http::outbound_answer>> fetch(http::outbound_request what) {
    ++asked_;
    last_ = what;
    const std::string id = what.url.target.substr(what.url.target.rfind('/') + 1);
    if (takes_ > 0ms) {
      boost::asio::steady_timer timer(context_, takes_);
      co_await timer.async_wait(boost::asio::use_awaitable);
    }
    if (answers_.empty()) co_return circle_answer(id);
    auto out = answers_.front();
    answers_.pop_front();
    co_return out;
  }

  void ask(const std::string& id, std::vector<result<verify::fetched_key>>& to, std::chrono::milliseconds patience = 5s) {
    verify::needed_key what;
    what.what = form::circle;
    what.id = id;
    boost::asio::co_spawn(
        context_,
        cache().get(settings_, settings_->providers.find("circle")->second, std::move(what), peer_, steady::now() + patience),
        [&to](const std::exception_ptr& failure, result<verify::fetched_key> got) {
          EXPECT_FALSE(failure);
          to.push_back(std::move(got));
        });
  }
  result<verify::fetched_key> get(const std::string& id, std::chrono::milliseconds patience = 5s) {
    std::vector<result<verify::fetched_key>> got;
    ask(id, got, patience);
    context_.restart();
    while (got.empty() && context_.run_one_for(10s) != 0) {
    }
    EXPECT_EQ(got.size(), 1u);
    return got.empty() ? result<verify::fetched_key>(error(transient::our_fault)) : got.front();
  }
  void pass(std::chrono::milliseconds time) {
    const auto until = steady::now() + time;
    context_.restart();
    context_.run_for(time);
    std::this_thread::sleep_until(until);
    context_.restart();
    context_.poll();
  }

  boost::asio::io_context context_;
  std::shared_ptr<const config::settings> settings_;
  key_cache::options how_;
  std::optional<key_cache> cache_;
  std::deque<result<http::outbound_answer>> answers_;
  std::chrono::milliseconds takes_{0};
  http::outbound_request last_;
  int asked_ = 0;
  std::string peer_ = "198.51.100.1";
};

TEST_F(Keys, AreFetchedOnce) {
  for (int i = 0; i < 3; ++i) {
    const auto got = get("id-1");
    ASSERT_TRUE(got) << got.error().detail;
    EXPECT_EQ(got->cache_key, "id-1");
  }
  EXPECT_EQ(asked_, 1);
  EXPECT_EQ(last_.url.origin() + last_.url.target, "https://api.circle.test/v2/notifications/publicKey/id-1");
  EXPECT_EQ(http::find_header(last_.headers, "authorization"), "Bearer KEY");
  EXPECT_TRUE(get("id-2"));
  EXPECT_EQ(asked_, 2);
}

TEST_F(Keys, ManyWhoAskAtOnceShareOneFetch) {
  takes_ = 50ms;
  std::vector<result<verify::fetched_key>> got;
  for (int i = 0; i < 50; ++i) ask("id-1", got);
  context_.run_for(500ms);
  EXPECT_EQ(got.size(), 50u);
  for (const auto& one : got) EXPECT_TRUE(one);
  EXPECT_EQ(asked_, 1);
}

// Whoever cannot wait gets 503, and the fetch goes on for the resend.
TEST_F(Keys, TheFetchOutlastsThePatienceOfOne) {
  takes_ = 100ms;
  EXPECT_EQ(get("id-1", 20ms).error().code, transient::not_ready);
  pass(200ms);
  EXPECT_TRUE(get("id-1"));
  EXPECT_EQ(asked_, 1);
}

TEST_F(Keys, WhatDoesNotExistIsRememberedForAWhile) {
  answers_ = {status(404), status(404)};
  for (int i = 0; i < 5; ++i) EXPECT_EQ(get("gone").error().code, permanent::signature_mismatch);
  EXPECT_EQ(asked_, 1);
  pass(1100ms);
  EXPECT_EQ(get("gone").error().code, permanent::signature_mismatch);
  EXPECT_EQ(asked_, 2);
  pass(1100ms);
  // Twice as long now.
  EXPECT_EQ(get("gone").error().code, permanent::signature_mismatch);
  EXPECT_EQ(asked_, 2);
  pass(1000ms);
  EXPECT_TRUE(get("gone"));
}

TEST_F(Keys, WhatCannotBeAskedIsTransientAndAskedAgainLater) {
  answers_ = {error(transient::connect_failed), error(permanent::certificate_refused)};
  for (int i = 0; i < 3; ++i) EXPECT_EQ(get("a").error().code, transient::not_ready);
  EXPECT_EQ(get("b").error().code, transient::not_ready);
  EXPECT_EQ(asked_, 2);
  pass(1100ms);
  EXPECT_TRUE(get("a"));
  EXPECT_TRUE(get("b"));
}

TEST_F(Keys, InventedIdsDriveLittleTraffic) {
  how_.budget.anybody = {5, 1};
  EXPECT_TRUE(get("known"));
  for (int i = 0; i < 8; ++i) answers_.push_back(status(404));
  int refused = 0;
  for (int i = 0; i < 1000; ++i) refused += get("invented-" + std::to_string(i)).error().code == transient::not_ready ? 1 : 0;
  EXPECT_EQ(asked_, 5);
  EXPECT_EQ(refused, 996);
  EXPECT_LE(cache().size(), 6u);
  // Who is known is not shut out.
  EXPECT_TRUE(get("known"));
}

TEST_F(Keys, AFloodOfInventionsDoesNotShutOutANewKeyOfTheProvider) {
  how_.budget.anybody = {5, 1};
  how_.budget.known = {1, 1};
  cache().vouch("circle", "192.0.2.1");
  for (int i = 0; i < 5; ++i) answers_.push_back(status(404));
  peer_ = "203.0.113.1";
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(get("invented-" + std::to_string(i)));
  EXPECT_EQ(get("new").error().code, transient::not_ready);
  peer_ = "192.0.2.7";
  EXPECT_TRUE(get("new"));
}

TEST_F(Keys, TheCacheIsBoundedAndInventionsGoFirst) {
  how_.entries_most = 3;
  how_.budget.anybody = {1000, 1};
  EXPECT_TRUE(get("known"));
  for (int i = 0; i < 10; ++i) {
    answers_ = {status(404)};
    EXPECT_FALSE(get("invented-" + std::to_string(i)));
  }
  EXPECT_EQ(cache().size(), 3u);
  const int before = asked_;
  EXPECT_TRUE(get("known"));
  EXPECT_EQ(asked_, before);
}

TEST_F(Keys, AKeyInUseIsAskedForAgainWhileItServes) {
  how_.fresh = 0s;
  EXPECT_TRUE(get("id-1"));
  answers_ = {error(transient::connect_failed)};
  EXPECT_TRUE(get("id-1"));
  pass(50ms);
  EXPECT_EQ(asked_, 2);
  // It could not be asked: the old one goes on, and nobody is asked for a second.
  EXPECT_TRUE(get("id-1"));
  pass(50ms);
  EXPECT_EQ(asked_, 2);
  pass(1100ms);
  // The provider has withdrawn it.
  answers_ = {status(404)};
  EXPECT_TRUE(get("id-1"));
  pass(50ms);
  EXPECT_EQ(get("id-1").error().code, permanent::signature_mismatch);
}

TEST_F(Keys, ADrainEndsFetches) {
  takes_ = 60s;
  std::vector<result<verify::fetched_key>> got;
  ask("id-1", got);
  pass(20ms);
  cache().stop();
  pass(50ms);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_FALSE(got.front());
}

TEST(KeyRequest, AsksPlaidWithItsCredentials) {
  config::provider p;
  p.name = "plaid";
  p.verify = verify::presets().find("plaid")->second;
  p.key_source.url = "https://production.plaid.test/webhook_verification_key/get";
  p.key_source.client_id = secret("client");
  p.key_source.client_secret = secret("s3cret\"");
  verify::needed_key what;
  what.what = form::plaid;
  what.id = "kid-1";
  const auto asked = ask_for_key(p, what);
  ASSERT_TRUE(asked) << asked.error().detail;
  EXPECT_EQ(asked->request.method, "POST");
  EXPECT_EQ(nlohmann::json::parse(asked->request.body),
            nlohmann::json({{"client_id", "client"}, {"secret", "s3cret\""}, {"key_id", "kid-1"}}));
  EXPECT_FALSE(asked->rules.plain_http);
  const auto read = [&](const http::outbound_answer& a) { return read_key_answer(p, what, a, nullptr, now()).error().code; };
  EXPECT_EQ(read(status(400, R"({"error_type":"INVALID_INPUT","error_code":"INVALID_WEBHOOK_VERIFICATION_KEY_ID"})")),
            permanent::signature_mismatch);
  EXPECT_EQ(read(status(400, R"({"error_type":"INVALID_INPUT","error_code":"INVALID_API_KEYS"})")), transient::not_ready);
  EXPECT_EQ(read(status(400, "<html>")), transient::not_ready);
  for (const int code : {301, 302, 401, 403, 429, 500, 503}) EXPECT_EQ(read(status(code)), transient::not_ready) << code;
  EXPECT_EQ(read(status(200, "{}")), transient::not_ready);  // no key: not the sender's fault
}

TEST(KeyRequest, TakesTheUrlOfACertificateFromTheRequest) {
  config::provider p;
  p.name = "paypal";
  p.verify = verify::presets().find("paypal")->second;
  p.key_source.headers.emplace_back("Authorization", secret("not for this"));
  verify::needed_key what;
  what.url = "https://api.paypal.com/v1/notifications/certs/CERT-1";
  const auto asked = ask_for_key(p, what);
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->request.method, "GET");
  EXPECT_EQ(asked->request.url.host, "api.paypal.com");
  EXPECT_TRUE(asked->request.headers.empty());
  for (const int code : {403, 404, 410})
    EXPECT_EQ(read_key_answer(p, what, status(code), nullptr, now()).error().code, permanent::signature_mismatch) << code;
  for (const int code : {302, 400, 401, 500})
    EXPECT_EQ(read_key_answer(p, what, status(code), nullptr, now()).error().code, transient::not_ready) << code;
  // A chain that cannot be judged is no reason to believe it.
  EXPECT_EQ(read_key_answer(p, what, status(200, "x"), nullptr, now()).error().code, transient::not_ready);
}

}  // namespace
}  // namespace recibo::receive
