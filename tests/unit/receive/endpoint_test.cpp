// From the head of a request to its answer, with a recorder that only remembers what it was given.
#include "support.hpp"

#include "recibo/receive/endpoint.hpp"
#include "unit/verify/vector_support.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include <map>

namespace recibo::receive::endpoint_cases {
namespace {

using namespace testing;

constexpr std::int64_t signed_at = 1790848800;
// HMAC-SHA256 with test-secret-A over "1790848800." and b0; made with openssl.
constexpr const char* b0_signature = "sha256=cc5684abf6d671508f678dd987e3cddfc3aadd4ed43bdf9c100500f725206e52";

struct counting_meter : meter {
  std::map<std::string, int> seen;
  void callback(std::string_view provider, std::string_view what) noexcept override {
    ++seen[std::string(provider) + " " + std::string(what)];
  }
  void signature_failure(std::string_view provider, std::string_view reason) noexcept override {
    ++seen["signature " + std::string(provider) + " " + std::string(reason)];
  }
  void stage(std::string_view, std::string_view stage, std::chrono::duration<double>) noexcept override {
    ++seen["stage " + std::string(stage)];
  }
  void secret_used(std::string_view, std::string_view name, sys_micros) noexcept override {
    ++seen["secret " + std::string(name)];
  }
};

struct fixed_health : http::health {
  bool doubt = false;
  http::response livez() override { return {200, "application/json", "{}", {}, false}; }
  http::response readyz() override { return {503, "application/json", R"({"ready":false})", {}, false}; }
  bool clock_in_doubt() const noexcept override { return doubt; }
};

class Endpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    configure([](config::provider&) {});
    callbacks::parts p;
    p.settings = settings_;
    p.record = [this](record::work what, std::chrono::steady_clock::time_point until) {
      return remember(std::move(what), until);
    };
    p.health = health_;
    p.counts = counts_;
    p.clock = [this] { return clock_; };
    p.fetch = [this](const config::provider&, std::string url, std::chrono::steady_clock::time_point until) {
      return fetch(std::move(url), until);
    };
    p.keys = [this](std::shared_ptr<const config::settings>, const config::provider&, verify::needed_key, std::string,
                    std::chrono::steady_clock::time_point) { return key(); };
    p.vouch = [this](std::string_view provider, std::string_view peer) {
      vouched_.push_back(std::string(provider) + ' ' + std::string(peer));
    };
    endpoint_.emplace(std::move(p));
  }

  template <class Change>
  void configure(Change change) {
    auto next = std::make_shared<config::settings>();
    config::provider one = p1();
    change(one);
    next->providers.emplace("p1", std::move(one));
    settings_->set(std::move(next));
  }

  boost::asio::awaitable<result<record::outcome>> remember(record::work what, std::chrono::steady_clock::time_point until) {
    recorded_.push_back(std::get<record::callback>(std::move(what)));
    until_ = until;
    if (fails_) co_return *fails_;
    record::outcome out;
    out.delivery = recorded_.back().id;
    out.request_id = recorded_.back().request_id;
    out.state = "completed";
    co_return out;
  }

  boost::asio::awaitable<result<int>> fetch(std::string url, std::chrono::steady_clock::time_point until) {
    fetched_.push_back(std::move(url));
    until_ = until;
    if (fetch_status_ == 0) co_return error(transient::deadline_passed);
    co_return fetch_status_;
  }

  boost::asio::awaitable<result<verify::fetched_key>> key() { co_return key_.value(); }

  // As the session does: the head first, then the whole.
  http::response send(http::request from) {
    http::request head = from;
    head.body.clear();
    if (auto refused = endpoint_->refuse_early(head)) return *refused;
    boost::asio::io_context context;
    http::response out;
    boost::asio::co_spawn(context, endpoint_->handle(from), [&](std::exception_ptr thrown, http::response told) {
      EXPECT_FALSE(thrown);
      out = std::move(told);
    });
    context.run();
    return out;
  }

  static http::request signed_b0() {
    http::request out = post(std::string(b0));
    out.headers.emplace_back("X-Timestamp", std::to_string(signed_at));
    out.headers.emplace_back("X-Signature", b0_signature);
    out.peer = "192.0.2.7";
    out.trace_id = "0af7651916cd43dd8448eb211c80319c";
    return out;
  }

  std::shared_ptr<config::snapshot> settings_ = std::make_shared<config::snapshot>(nullptr);
  std::shared_ptr<fixed_health> health_ = std::make_shared<fixed_health>();
  std::shared_ptr<counting_meter> counts_ = std::make_shared<counting_meter>();
  sys_micros clock_{std::chrono::seconds(signed_at)};
  std::vector<record::callback> recorded_;
  std::chrono::steady_clock::time_point until_;
  std::optional<error> fails_;
  std::vector<std::string> fetched_;
  int fetch_status_ = 200;
  std::optional<verify::fetched_key> key_;
  std::vector<std::string> vouched_;
  std::optional<callbacks> endpoint_;
};

std::string header(const http::response& r, std::string_view name) {
  return std::string(http::find_header(r.headers, name).value_or(""));
}
bool has(const http::response& r, std::string_view piece) { return r.body.find(piece) != std::string::npos; }

TEST_F(Endpoint, ASignedCallbackIsRecordedWithAllThatIsKnown) {
  const auto told = send(signed_b0());
  EXPECT_EQ(told.status, 200);
  ASSERT_EQ(recorded_.size(), 1u);
  const record::callback& c = recorded_.front();
  EXPECT_EQ(c.body, b0);
  EXPECT_EQ(c.content_type, "application/json");
  EXPECT_EQ(c.peer, "192.0.2.7");
  EXPECT_EQ(c.trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(c.secret_name, "s1");
  EXPECT_EQ(c.received_at, clock_);
  EXPECT_EQ(c.provider, &c.settings->providers.at("p1"));
  EXPECT_EQ(c.request_id, "req-1001");
  EXPECT_EQ(told.body, R"({"delivery_id":")" + to_string(c.id) +
                           R"(","request_id":"req-1001","disposition":"applied","state":"completed"})");
  EXPECT_EQ(counts_->seen,
            (std::map<std::string, int>{{"p1 applied", 1}, {"secret s1", 1}, {"stage total", 1}, {"stage verify", 1}}));
}

TEST_F(Endpoint, TheWaitEndsBeforeTheSendersPatience) {
  configure([](config::provider& p) { p.answer_within = std::chrono::milliseconds(1000); });
  const auto before = std::chrono::steady_clock::now();
  send(signed_b0());
  EXPECT_GE(until_ - before, std::chrono::milliseconds(900));
  EXPECT_LT(until_ - std::chrono::steady_clock::now(), std::chrono::milliseconds(901));
}

TEST_F(Endpoint, EveryWrongSignatureHasTheSameAnswer) {
  std::vector<http::request> wrong(4, signed_b0());
  wrong[0].headers.pop_back();
  wrong[1].headers.back().second.back() = '3';
  wrong[2].headers.back().second = "sha256=";
  wrong[3].headers[1].second = "1";
  std::string body;
  for (http::request& one : wrong) {
    const auto told = send(std::move(one));
    EXPECT_EQ(told.status, 401);
    if (body.empty()) body = told.body;
    EXPECT_EQ(told.body, body);
  }
  EXPECT_NE(body.find("unauthenticated"), std::string::npos);
  EXPECT_TRUE(recorded_.empty());
  EXPECT_EQ(counts_->seen["p1 unauthenticated"], 4);
  EXPECT_EQ(counts_->seen["signature p1 signature_missing"], 2);
  EXPECT_EQ(counts_->seen["signature p1 signature_mismatch"], 1);
  EXPECT_EQ(counts_->seen["signature p1 timestamp_stale"], 1);
}

TEST_F(Endpoint, WithAClockInDoubtAStaleStampIsOursToMend) {
  health_->doubt = true;
  clock_ += std::chrono::seconds(301);
  const auto told = send(signed_b0());
  EXPECT_EQ(told.status, 503);
  EXPECT_NE(header(told, "Retry-After"), "");
  EXPECT_EQ(counts_->seen["p1 unavailable"], 1);
  EXPECT_EQ(counts_->seen["signature p1 timestamp_stale"], 1);
  // A wrong signature is wrong by any clock.
  clock_ -= std::chrono::seconds(301);
  http::request forged = signed_b0();
  forged.headers.back().second.back() = '3';
  EXPECT_EQ(send(std::move(forged)).status, 401);
}

TEST_F(Endpoint, S21ForwardedHeadersAreNotBelieved) {
  http::request from = signed_b0();
  from.headers.emplace_back("X-Forwarded-For", "127.0.0.1");
  from.headers.emplace_back("X-Forwarded-Proto", "http");
  from.headers.emplace_back("X-Forwarded-Host", "evil.example");
  EXPECT_EQ(send(std::move(from)).status, 200);
  EXPECT_EQ(recorded_.front().peer, "192.0.2.7");
}

struct path_case {
  const char* method;
  const char* path;
  int status;
  const char* allow;
};

TEST_F(Endpoint, PathsAndMethodsAreReadOneWay) {
  const path_case cases[] = {
      {"POST", "/callbacks/p1", 200, ""},
      {"POST", "/callbacks/p1/", 200, ""},
      {"POST", "/callbacks/%701", 200, ""},
      {"POST", "/callbacks/nope", 404, ""},
      {"GET", "/callbacks/nope", 404, ""},
      {"POST", "/callbacks/p1//", 404, ""},
      {"POST", "/callbacks//p1", 404, ""},
      {"POST", "/callbacks/", 404, ""},
      {"POST", "/callbacks", 404, ""},
      {"POST", "/callbacks/p1/x", 404, ""},
      {"POST", "/callbacks/./p1", 404, ""},
      {"POST", "/callbacks/p1%2F", 404, ""},
      {"POST", "/callbacks/p1%00", 404, ""},
      {"POST", "/callbacks/%zz", 404, ""},
      {"POST", "/CALLBACKS/p1", 404, ""},
      {"POST", "/callbacks/P1", 404, ""},
      {"GET", "/callbacks/p1", 405, "POST"},
      {"HEAD", "/callbacks/p1", 405, "POST"},
      {"PUT", "/callbacks/p1", 405, "POST"},
      {"OPTIONS", "/callbacks/p1", 405, "POST"},
      {"GET", "/livez", 200, ""},
      {"HEAD", "/livez", 200, ""},
      {"GET", "/readyz", 503, ""},
      {"POST", "/livez", 405, "GET, HEAD"},
      {"GET", "/", 404, ""},
      {"GET", "/metrics", 404, ""},
      {"GET", "/v1/operations", 404, ""},
  };
  for (const path_case& c : cases) {
    http::request from = signed_b0();
    from.method = c.method;
    from.path = from.target = c.path;
    const auto told = send(std::move(from));
    EXPECT_EQ(told.status, c.status) << c.method << " " << c.path;
    EXPECT_EQ(header(told, "Allow"), c.allow) << c.method << " " << c.path;
    EXPECT_EQ(header(told, "Location"), "") << c.path;
  }
  // Nothing that a sender makes up is counted under a name of its own.
  for (const auto& [name, count] : counts_->seen) EXPECT_EQ(name.find("nope"), std::string::npos);
}

TEST_F(Endpoint, OnlyUncodedBodiesAreTaken) {
  for (const char* coding : {"gzip", "br", "identity, gzip", "GZIP"}) {
    http::request from = signed_b0();
    from.headers.emplace_back("Content-Encoding", coding);
    EXPECT_EQ(send(std::move(from)).status, 415) << coding;
  }
  for (const char* coding : {"identity", "Identity", ""}) {
    http::request from = signed_b0();
    from.headers.emplace_back("content-encoding", coding);
    EXPECT_EQ(send(std::move(from)).status, 200) << coding;
  }
  // Media types are the sender's affair.
  http::request plain = signed_b0();
  plain.headers.front().second = "text/plain; charset=UTF-8";
  EXPECT_EQ(send(std::move(plain)).status, 200);
}

TEST_F(Endpoint, WhatARuleIgnoresIsCountedAndNotRecorded) {
  configure([](config::provider& p) { p.events["succeeded"] = "ignore"; });
  const auto told = send(signed_b0());
  EXPECT_EQ(told.status, 200);
  EXPECT_EQ(told.body, R"({"request_id":"req-1001","disposition":"ignored"})");
  EXPECT_TRUE(recorded_.empty());
  EXPECT_EQ(counts_->seen["p1 ignored"], 1);
}

TEST_F(Endpoint, WhatCannotBeUnderstoodGoesToTheRecorderAllTheSame) {
  configure([](config::provider& p) { p.extract.event = {json_at("/nothing")}; });
  send(signed_b0());
  ASSERT_EQ(recorded_.size(), 1u);
  EXPECT_EQ(fault(recorded_.front()), "missing_field");
  EXPECT_EQ(recorded_.front().body, b0);
}

struct failure_case {
  error why;
  int status;
  const char* code;
  const char* counted;
};

TEST_F(Endpoint, WhatIsNotKnownToBeRecordedIsToBeSentAgain) {
  const failure_case cases[] = {
      {transient::database_away, 503, "unavailable", "p1 unavailable"},
      {transient::queue_full, 503, "unavailable", "p1 unavailable"},
      {transient::deadline_passed, 503, "unavailable", "p1 unavailable"},
      {uncertain::commit_unknown, 503, "unavailable", "p1 unavailable"},
      {permanent::illegal_transition, 503, "unavailable", "p1 unavailable"},
  };
  for (const failure_case& c : cases) {
    fails_ = c.why;
    counts_->seen.clear();
    const auto told = send(signed_b0());
    EXPECT_EQ(told.status, c.status);
    EXPECT_TRUE(has(told, std::string("\"code\":\"") + c.code + "\"")) << told.body;
    EXPECT_TRUE(has(told, R"("request_id":"req-1001")")) << told.body;
    EXPECT_TRUE(has(told, R"("retryable":true)")) << told.body;
    EXPECT_NE(header(told, "Retry-After"), "");
    EXPECT_EQ(counts_->seen[c.counted], 1);
  }
}

TEST_F(Endpoint, OverTheConfiguredRateIsForAuthenticCallbacksOnly) {
  configure([](config::provider& p) { p.rate = config::rate{0.001, 2}; });
  for (int i = 0; i < 5; ++i) {
    http::request forged = signed_b0();
    forged.headers.back().second.back() = '3';
    EXPECT_EQ(send(std::move(forged)).status, 401);
  }
  EXPECT_EQ(send(signed_b0()).status, 200);
  EXPECT_EQ(send(signed_b0()).status, 200);
  const auto told = send(signed_b0());
  EXPECT_EQ(told.status, 429);
  EXPECT_NE(header(told, "Retry-After"), "");
  EXPECT_EQ(counts_->seen["p1 overloaded"], 1);
  EXPECT_EQ(recorded_.size(), 2u);
}

TEST_F(Endpoint, AReloadCountsFromTheNextRequestOn) {
  http::request head = signed_b0();
  EXPECT_FALSE(endpoint_->refuse_early(head));
  settings_->set(std::make_shared<config::settings>());
  EXPECT_EQ(send(signed_b0()).status, 404);
}

http::request of_method(const char* method, std::string query) {
  http::request out = post("");
  out.method = method;
  out.query = std::move(query);
  return out;
}

void shake_hands(config::provider& p, config::handshake_kind kind) {
  p.handshake.emplace();
  p.handshake->kind = kind;
  p.handshake->token.text = secret("vt-1");
}

TEST_F(Endpoint, AHandshakeIsAnsweredAndNotRecorded) {
  configure([](config::provider& p) { shake_hands(p, config::handshake_kind::meta); });
  const auto told = send(of_method("GET", "hub.mode=subscribe&hub.verify_token=vt-1&hub.challenge=17"));
  EXPECT_EQ(told.status, 200);
  EXPECT_EQ(told.body, "17");
  EXPECT_EQ(told.content_type, "text/plain");
  EXPECT_EQ(send(of_method("GET", "hub.mode=subscribe&hub.verify_token=vt-2&hub.challenge=17")).status, 403);
  const auto put = send(of_method("PUT", ""));
  EXPECT_EQ(put.status, 405);
  EXPECT_EQ(header(put, "Allow"), "GET, POST");
  EXPECT_TRUE(recorded_.empty());
  EXPECT_EQ(counts_->seen["p1 handshake"], 1);
  EXPECT_EQ(counts_->seen["p1 unauthenticated"], 1);
  EXPECT_EQ(send(signed_b0()).status, 200) << "callbacks are taken as ever";
  EXPECT_EQ(recorded_.size(), 1u);
}

TEST_F(Endpoint, AQuestionWithoutSignatureIsNoneWhereASignatureIsWrong) {
  configure([](config::provider& p) { shake_hands(p, config::handshake_kind::microsoft_graph); });
  EXPECT_EQ(send(of_method("POST", "validationToken=abc")).body, "abc");
  http::request forged = signed_b0();
  forged.query = "validationToken=abc";
  forged.body += ' ';
  EXPECT_EQ(send(forged).status, 401);
  http::request right = signed_b0();
  right.query = "validationToken=abc";
  EXPECT_EQ(send(right).status, 200);
  EXPECT_EQ(recorded_.size(), 1u) << "an authentic callback is recorded, whatever its query says";
}

TEST_F(Endpoint, RefusalsHaveNoBodyWhereTheProviderAsksForThat) {
  configure([](config::provider& p) { shake_hands(p, config::handshake_kind::xero); });
  http::request forged = signed_b0();
  forged.body += ' ';
  const auto told = send(forged);
  EXPECT_EQ(told.status, 401);
  EXPECT_EQ(told.body, "");
}

TEST_F(Endpoint, ASubscriptionIsConfirmedBeforeItIsAnswered) {
  configure([](config::provider& p) {
    shake_hands(p, config::handshake_kind::aws_sns);
    p.verify = {};
    p.verify.kind = verify::scheme_kind::none;
    p.answer_within = std::chrono::seconds(5);
  });
  const std::string url = "https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=t";
  const http::request asked = post(R"({"Type":"SubscriptionConfirmation","SubscribeURL":")" + url + "\"}");
  EXPECT_EQ(send(asked).status, 200);
  EXPECT_EQ(fetched_, std::vector<std::string>{url});
  EXPECT_LE(until_, std::chrono::steady_clock::now() + std::chrono::seconds(5));
  for (const int status : {0, 302, 403, 500}) {
    fetch_status_ = status;
    const auto told = send(asked);
    EXPECT_EQ(told.status, 503) << status;
    EXPECT_NE(header(told, "Retry-After"), "") << status;
  }
  fetched_.clear();
  EXPECT_TRUE(recorded_.empty());
  // One that leads elsewhere is fetched by nobody, and kept as what could not be understood.
  send(post(R"({"Type":"SubscriptionConfirmation","SubscribeURL":"https://sns.eu-west-1.amazonaws.com.evil.example/"})"));
  EXPECT_TRUE(fetched_.empty());
  ASSERT_EQ(recorded_.size(), 1u);
  EXPECT_EQ(fault(recorded_.front()), "malformed_field");
}

// New keys that are named from there are not taken for inventions (key_budget.hpp): so only what verified may say it.
TEST_F(Endpoint, AFetchedKeyThatVerifiesVouchesForTheSender) {
  const auto signed_one = verify::testing::load_vector("paypal/valid");
  configure([&](config::provider& p) {
    p.verify = signed_one.how;
    p.keys = signed_one.keys;
    p.public_url = signed_one.url;
  });
  key_ = signed_one.fetched;
  clock_ = signed_one.now;
  http::request from = post(signed_one.body);
  from.peer = "192.0.2.7";
  from.headers.insert(from.headers.end(), signed_one.sent.begin(), signed_one.sent.end());
  http::request forged = from;
  forged.body += ' ';
  EXPECT_EQ(send(forged).status, 401);
  EXPECT_TRUE(vouched_.empty());
  EXPECT_NE(send(from).status, 401);
  EXPECT_EQ(vouched_, std::vector<std::string>{"p1 192.0.2.7"});
}

TEST_F(Endpoint, SchemesThatSignTheUrlUseTheConfiguredOne) {
  configure([](config::provider& p) {
    p.verify = verify::presets().at("hubspot-v2");
    p.public_url = "https://hooks.example.com/callbacks/p1";
  });
  const auto& provider = settings_->get()->providers.at("p1");
  http::request from = signed_b0();
  from.query = "a=1";
  const verify::signed_message as_the_provider{"POST", "https://hooks.example.com/callbacks/p1?a=1", "a=1", {}, b0};
  const auto added = verify::sign(provider.verify, as_the_provider, provider.keys.secrets.front(), clock_).value();
  from.headers.insert(from.headers.end(), added.begin(), added.end());
  from.headers.emplace_back("Host", "10.0.0.1:8080");
  EXPECT_EQ(send(from).status, 200);
  from.query = "a=2";
  EXPECT_EQ(send(from).status, 401);
}

}  // namespace
}  // namespace recibo::receive::endpoint_cases
