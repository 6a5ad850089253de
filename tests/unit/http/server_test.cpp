#include "server_fixture.hpp"

#include "recibo/observe/metrics.hpp"
#include "recibo/observe/trace.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <vector>

namespace recibo::http::test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

std::string code_of(const raw_answer& got) { return nlohmann::json::parse(got.body)["code"]; }

TEST_F(ServerTest, AnswersAndKeepsTheConnection) {
  serve();
  auto client = connect();
  for (int i = 0; i < 3; ++i) {
    client.send(post("/echo", "hello " + std::to_string(i)));
    const raw_answer got = client.read();
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.body, "hello " + std::to_string(i));
    EXPECT_EQ(find_header(got.headers, "content-type"), "text/plain");
    EXPECT_EQ(find_header(got.headers, "x-content-type-options"), "nosniff");
    EXPECT_EQ(find_header(got.headers, "connection"), std::nullopt);
    EXPECT_EQ(find_header(got.headers, "server"), std::nullopt);
    EXPECT_THAT(std::string(*find_header(got.headers, "date")),
                MatchesRegex("[A-Z][a-z][a-z], [0-9]+ [A-Z][a-z][a-z] [0-9]+ [0-9:]+ GMT"));
  }
  EXPECT_EQ(connections(), 1);
  client.close();
  EXPECT_TRUE(eventually([&] { return connections() == 0; }));
}

TEST_F(ServerTest, PipelinedRequestsAreAnsweredInOrder) {
  serve();
  auto client = connect();
  client.send(post("/echo", "one") + get("/echo") + post("/early/404", "over") +
              "POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n" +
              post("/echo", "three"));
  EXPECT_EQ(client.read().body, "one");
  EXPECT_EQ(client.read().body, "");
  EXPECT_EQ(client.read().status, 404);
  EXPECT_EQ(client.read().body, "two");
  EXPECT_EQ(client.read().body, "three");
}

TEST_F(ServerTest, OneByteAtATime) {
  serve();
  auto client = connect();
  const std::string request = post("/echo", "hello");
  for (const char c : request) {
    client.send({&c, 1});
    std::this_thread::sleep_for(200us);
  }
  EXPECT_EQ(client.read().body, "hello");
}

// S11: a chunk may end inside a character, and the rest may come later.
TEST_F(ServerTest, ChunksMayComeApart) {
  serve();
  auto client = connect();
  client.send("POST /echo HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n\xf0\x9f");
  std::this_thread::sleep_for(50ms);
  client.send("\r\n2\r\n\x98\x8a\r\n0\r\nX-Late: 1\r\n\r\n");
  EXPECT_EQ(client.read().body, "\xf0\x9f\x98\x8a");
}

TEST_F(ServerTest, TrailersNeverBecomeHeaders) {
  serve();
  auto client = connect();
  client.send(
      "POST /headers HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Signature: forged\r\n\r\n");
  EXPECT_EQ(client.read().body, "Host=test\nTransfer-Encoding=chunked\n");
}

TEST_F(ServerTest, HeadHasTheLengthAndNoBody) {
  serve();
  auto client = connect();
  client.send("HEAD /big/17 HTTP/1.1\r\nHost: test\r\n\r\n" + get("/echo"));
  const raw_answer got = client.read(10s, true);
  EXPECT_EQ(find_header(got.headers, "content-length"), "17");
  EXPECT_EQ(client.read().status, 200);
}

TEST_F(ServerTest, AnswersWithoutABodyHaveNoContentType) {
  serve();
  auto client = connect();
  client.send(get("/nothing"));
  const raw_answer none = client.read();
  EXPECT_EQ(none.status, 204);
  EXPECT_EQ(count_header(none.headers, "content-length") + count_header(none.headers, "content-type"), 0u);
  client.send(get("/echo"));
  const raw_answer empty = client.read();
  EXPECT_EQ(find_header(empty.headers, "content-length"), "0");
  EXPECT_EQ(find_header(empty.headers, "content-type"), std::nullopt);
}

TEST_F(ServerTest, Http10IsClosedUnlessItAsksToBeKept) {
  serve();
  auto once = connect();
  once.send("GET /echo HTTP/1.0\r\n\r\n");
  EXPECT_EQ(find_header(once.read().headers, "connection"), "close");
  EXPECT_TRUE(once.closed());
  auto kept = connect();
  for (int i = 0; i < 2; ++i) {
    kept.send("GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    EXPECT_EQ(find_header(kept.read().headers, "connection"), "keep-alive");
  }
}

TEST_F(ServerTest, CloseIsHeededFromEitherSide) {
  serve();
  auto asked = connect();
  asked.send(get("/echo", "Connection: close\r\n"));
  EXPECT_EQ(find_header(asked.read().headers, "connection"), "close");
  EXPECT_TRUE(asked.closed());
  auto told = connect();
  told.send(get("/close"));
  EXPECT_EQ(find_header(told.read().headers, "connection"), "close");
  EXPECT_TRUE(told.closed());
}

TEST_F(ServerTest, ATraceIsContinued) {
  serve();
  auto client = connect();
  client.send(get("/echo", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"));
  const raw_answer got = client.read();
  EXPECT_EQ(find_header(got.headers, "x-request-id"), "0af7651916cd43dd8448eb211c80319c");
  const auto answered = observe::parse_traceparent(*find_header(got.headers, "traceresponse"));
  ASSERT_TRUE(answered);
  EXPECT_EQ(answered->trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_NE(answered->span_id, "b7ad6b7169203331");
  EXPECT_EQ(answered->span_id, find_header(got.headers, "x-span"));
  EXPECT_TRUE(answered->sampled());
  // Without one, with a broken one, and with two, a new trace begins.
  for (const char* headers : {"", "traceparent: x\r\n",
                              "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"
                              "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\n"}) {
    client.send(get("/echo", headers));
    const std::string id(*find_header(client.read().headers, "x-request-id"));
    EXPECT_THAT(id, MatchesRegex("[0-9a-f]+"));
    EXPECT_NE(id, "0af7651916cd43dd8448eb211c80319c");
  }
}

TEST_F(ServerTest, RefusalsAreProblemsAndCloseTheConnection) {
  serve();
  struct row {
    const char* name;
    std::string bytes;
    int status;
    const char* code;
  };
  const row rows[] = {
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, "malformed_request"},
      {"length twice", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400, "malformed_request"},
      {"folded", "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400, "malformed_request"},
      {"broken chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400, "malformed_request"},
      {"head too large", "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(9000, 'x') + "\r\n\r\n", 431, "header_too_large"},
      {"body too large", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100001\r\n\r\n", 413, "body_too_large"},
      {"chunks too large",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n186a1\r\n" + std::string(100001, 'x') + "\r\n0\r\n\r\n",
       413, "body_too_large"},
      {"expectation", "POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n", 417, "expectation_failed"},
      {"version", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "http_version_not_supported"},
  };
  for (const row& r : rows) {
    SCOPED_TRACE(r.name);
    auto client = connect();
    client.send(r.bytes + get("/echo"));
    const raw_answer got = client.read();
    EXPECT_EQ(got.status, r.status);
    EXPECT_EQ(code_of(got), r.code);
    EXPECT_EQ(find_header(got.headers, "content-type"), "application/problem+json");
    EXPECT_EQ(find_header(got.headers, "connection"), "close");
    EXPECT_EQ(nlohmann::json::parse(got.body)["trace_id"], std::string(*find_header(got.headers, "x-request-id")));
    client.shutdown_send();
    EXPECT_TRUE(client.closed());
  }
  EXPECT_EQ(service_->handled, 0);
}

// S29.
TEST_F(ServerTest, ContinueIsSentWhenTheBodyIsWanted) {
  serve();
  auto client = connect();
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(client.read(1s, true).status, 100);
  client.send("hello");
  EXPECT_EQ(client.read().body, "hello");
}

TEST_F(ServerTest, ContinueIsNotSentWhenTheBodyHasComeOrIsRefused) {
  serve();
  auto came = connect();
  came.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello");
  EXPECT_EQ(came.read().status, 200);
  auto large = connect();
  large.send("POST /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2097152\r\n\r\n");
  EXPECT_EQ(large.read().status, 413);
  EXPECT_TRUE(large.closed());
  auto unknown = connect();
  unknown.send("POST /early/404 HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n");
  const raw_answer refused = unknown.read();
  EXPECT_EQ(refused.status, 404);
  EXPECT_EQ(find_header(refused.headers, "connection"), "close");
  EXPECT_TRUE(unknown.closed());
}

// S30: the sender reads the refusal although it sends its whole body first, and the next request is served.
TEST_F(ServerTest, SizeLimits) {
  options.body_limit = 1 << 20;
  options.header_limit = 8 << 10;
  serve();
  const std::string exact(options.body_limit, ' ');
  auto whole = connect();
  whole.send(post("/echo", exact));
  EXPECT_EQ(whole.read().body.size(), exact.size());
  for (const bool chunked : {false, true}) {
    auto client = connect();
    EXPECT_TRUE(client.send(chunked ? "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n100001\r\n" + exact +
                                          " \r\n0\r\n\r\n"
                                    : post("/echo", exact + " ")));
    EXPECT_EQ(client.read().status, 413);
    EXPECT_TRUE(client.closed());
  }
  auto head = connect();
  head.send(get("/echo", "X: " + std::string(9000, 'x') + "\r\n"));
  EXPECT_EQ(head.read().status, 431);
  auto next = connect();
  next.send(post("/echo", "fine"));
  EXPECT_EQ(next.read().body, "fine");
}

TEST_F(ServerTest, AnEarlyRefusalKeepsTheConnectionWhenTheBodyIsSmall) {
  serve();
  auto small = connect();
  small.send("POST /early/415 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
  const raw_answer got = small.read();
  EXPECT_EQ(got.status, 415);
  EXPECT_EQ(find_header(got.headers, "connection"), std::nullopt);
  small.send("llo" + post("/echo", "next"));
  EXPECT_EQ(small.read().body, "next");
  auto large = connect();
  large.send("POST /early/415 HTTP/1.1\r\nHost: a\r\nContent-Length: 90000\r\n\r\n");
  EXPECT_EQ(find_header(large.read().headers, "connection"), "close");
  EXPECT_TRUE(large.closed());
}

TEST_F(ServerTest, WhatAHandlerThrowsIs503) {
  serve();
  auto client = connect();
  testing::internal::CaptureStderr();
  for (const char* path : {"/throw", "/throw-int", "/throw-early"}) {
    client.send(post(path, "x"));
    const raw_answer got = client.read();
    EXPECT_EQ(got.status, 503) << path;
    EXPECT_TRUE(find_header(got.headers, "retry-after")) << path;
    EXPECT_THAT(got.body, Not(HasSubstr("secret"))) << path;
  }
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_THAT(lines, HasSubstr(R"("what":"secret\nthing")"));
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 3);
}

TEST_F(ServerTest, AHeaderThatWouldBreakTheHeadIsLeftOut) {
  serve();
  auto client = connect();
  testing::internal::CaptureStderr();
  client.send(get("/inject"));
  const raw_answer got = client.read();
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(count_header(got.headers, "x-forged") + count_header(got.headers, "location"), 0u);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("left out"));
}

TEST_F(ServerTest, LargeAnswersReachASlowReader) {
  serve();
  auto client = connect();
  client.send(get("/big/20000000") + get("/echo"));
  std::this_thread::sleep_for(200ms);
  EXPECT_EQ(client.read(20s).body.size(), 20'000'000u);
  EXPECT_EQ(client.read().status, 200);
}

TEST_F(ServerTest, SlowSendersAreTimedOut) {
  options.header_timeout = 120ms;
  options.body_timeout = 120ms;
  serve();
  auto head = connect();
  head.send("GET / HTTP/1.1\r\n");
  const raw_answer slow_head = head.read();
  EXPECT_EQ(slow_head.status, 408);
  EXPECT_EQ(code_of(slow_head), "request_timeout");
  EXPECT_TRUE(head.closed());
  auto body = connect();
  body.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhe");
  EXPECT_EQ(body.read().status, 408);
  EXPECT_TRUE(body.closed());
  // A byte now and then does not prolong it.
  auto drip = connect();
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 100 && drip.send("x"); ++i) {
    std::this_thread::sleep_for(20ms);
    if (!drip.silent(5ms)) break;
  }
  EXPECT_EQ(drip.read().status, 408);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, 1500ms);
}

TEST_F(ServerTest, IdleConnectionsAreClosedSilently) {
  options.idle_timeout = 150ms;
  serve();
  auto fresh = connect();
  auto used = connect();
  used.send(get("/echo"));
  EXPECT_EQ(used.read().status, 200);
  EXPECT_TRUE(fresh.closed());
  EXPECT_TRUE(used.closed());
  EXPECT_TRUE(eventually([&] { return connections() == 0; }));
}

TEST_F(ServerTest, AWorkingHandlerIsNotTimedOut) {
  options.header_timeout = options.body_timeout = options.idle_timeout = 50ms;
  serve();
  auto client = connect();
  client.send(post("/slow", "x"));
  EXPECT_EQ(client.read().status, 200);
}

TEST_F(ServerTest, OverTheConnectionLimitTheAnswerIs503) {
  options.connection_limit = 2;
  serve();
  auto one = connect(), two = connect();
  for (auto* client : {&one, &two}) {
    client->send(get("/echo"));
    EXPECT_EQ(client->read().status, 200);
  }
  auto third = connect();
  third.send(post("/echo", "x"));
  const raw_answer got = third.read();
  EXPECT_EQ(got.status, 503);
  EXPECT_TRUE(find_header(got.headers, "retry-after"));
  EXPECT_TRUE(third.closed());
  one.send(get("/echo"));
  EXPECT_EQ(one.read().status, 200);
  one.close();
  EXPECT_TRUE(eventually([&] {
    auto again = connect();
    again.send(get("/echo"));
    return again.read().status == 200;
  }));
}

TEST_F(ServerTest, BytesInFlightAreBounded) {
  options.body_limit = 1 << 20;
  options.in_flight_limit = 150'000;
  serve();
  // A body that announces more than there is room for is refused at once.
  auto large = connect();
  large.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n");
  EXPECT_EQ(large.read().status, 503);
  // Two hold 64 KiB each while they send; there is no room for a third.
  auto first = connect(), second = connect();
  for (auto* client : {&first, &second})
    client->send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\n" + std::string(1000, 'x'));
  EXPECT_TRUE(eventually([&] {
    auto third = connect();
    third.send(post("/echo", std::string(60'000, 'x')));
    const raw_answer got = third.read();
    return got.status == 503 && find_header(got.headers, "retry-after");
  }));
  // What has been answered is given back.
  for (auto* client : {&first, &second}) {
    client->send(std::string(69'000, 'x'));
    EXPECT_EQ(client->read().body.size(), 70'000u);
  }
  auto chunked = connect();
  chunked.send("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n30d40\r\n" + std::string(200'000, 'x'));
  EXPECT_EQ(chunked.read().status, 503);
  auto fine = connect();
  fine.send(post("/echo", std::string(140'000, 'x')));
  EXPECT_EQ(fine.read().status, 200);
}

// S31: requests in hand are answered with Connection: close, idle connections are closed.
TEST_F(ServerTest, DrainFinishesWhatIsInHand) {
  serve();
  auto half = connect(), idle = connect(), fresh = connect(), working = connect(), head = connect();
  idle.send(get("/echo"));
  EXPECT_EQ(idle.read().status, 200);
  head.send("POST /echo HTTP/1.1\r\nHo");
  half.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhello");
  working.send(post("/slow", "x"));
  EXPECT_TRUE(eventually([&] { return connections() == 5 && service_->handled == 2 && service_->judged == 3; }));
  std::this_thread::sleep_for(50ms);  // the half head is read
  on_thread([&] { server_->drain(); });
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(fresh.closed());
  EXPECT_FALSE(connect().connected());
  half.send("world");
  head.send("st: a\r\nContent-Length: 0\r\n\r\n");
  for (auto* client : {&half, &working, &head}) {
    const raw_answer got = client->read();
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(find_header(got.headers, "connection"), "close");
    EXPECT_TRUE(client->closed());
  }
  for (auto* client : {&half, &working, &idle, &fresh, &head}) client->close();
  EXPECT_TRUE(eventually([&] { return connections() == 0; }));
}

TEST_F(ServerTest, ADrainServesWhatTheKernelHasConnectedAlready) {
  serve();
  std::vector<raw_client> clients;
  on_thread([&] {
    // The server's thread is here, so that nobody accepts.
    for (int i = 0; i < 20; ++i) {
      clients.push_back(connect());
      EXPECT_TRUE(clients.back().connected());
      clients.back().send(post("/echo", "waiting"));
    }
    server_->drain();
  });
  for (auto& client : clients) {
    const raw_answer got = client.read();
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(got.body, "waiting");
    EXPECT_EQ(find_header(got.headers, "connection"), "close");
    EXPECT_TRUE(client.closed());
  }
  EXPECT_FALSE(connect().connected());
}

TEST_F(ServerTest, AnAnnouncedDrainClosesWithTheNextAnswer) {
  serve();
  auto idle = connect();
  idle.send(get("/echo"));
  EXPECT_EQ(find_header(idle.read().headers, "connection"), std::nullopt);
  on_thread([&] { server_->announce_drain(); });
  EXPECT_TRUE(idle.silent(50ms));
  auto fresh = connect();
  for (auto* client : {&idle, &fresh}) {
    client->send(get("/echo"));
    const raw_answer got = client->read();
    EXPECT_EQ(got.status, 200);
    EXPECT_EQ(find_header(got.headers, "connection"), "close");
    EXPECT_TRUE(client->closed());
  }
}

TEST_F(ServerTest, StopCutsWhatIsLeft) {
  serve();
  auto working = connect(), idle = connect();
  working.send(post("/slow", "x"));
  EXPECT_TRUE(eventually([&] { return connections() == 2 && service_->handled == 1; }));
  on_thread([&] { server_->stop(); });
  EXPECT_TRUE(working.closed());
  EXPECT_TRUE(idle.closed());
  EXPECT_TRUE(eventually([&] { return connections() == 0; }));
  EXPECT_EQ(service_->finished, 0);
}

TEST_F(ServerTest, SendersMayVanishAtAnyTime) {
  serve();
  const std::string request = post("/slow", std::string(2000, 'x'));
  for (std::size_t i = 0; i <= request.size(); i += 37) {
    auto client = connect();
    client.send(request.substr(0, i));
  }
  auto complete = connect();
  complete.send(request);
  complete.close();
  EXPECT_TRUE(eventually([&] { return connections() == 0; }));
  auto next = connect();
  next.send(get("/echo"));
  EXPECT_EQ(next.read().status, 200);
}

TEST_F(ServerTest, TheServerMayGoWithConnectionsInIt) {
  serve();
  auto working = connect(), idle = connect(), half = connect();
  working.send(post("/slow", "x"));
  half.send("POST /echo HTTP/1.1\r\n");
  EXPECT_TRUE(eventually([&] { return connections() == 3; }));
  on_thread([&] { server_.reset(); });
  EXPECT_TRUE(working.closed());
  EXPECT_TRUE(half.closed());
}

TEST(Server, TheContextMayGoWithConnectionsInIt) {
  boost::asio::io_context context;
  server_options options;
  options.name = "callbacks";
  options.address = "127.0.0.1";
  auto behind = std::make_shared<steered_service>(context);
  server one(context.get_executor(), options, behind);
  one.start();
  raw_client idle(one.port()), half(one.port()), working(one.port());
  half.send("POST /echo HTTP/1.1\r\n");
  working.send(post("/slow", "x"));
  const auto until = std::chrono::steady_clock::now() + 10s;
  while (behind->handled == 0 && std::chrono::steady_clock::now() < until) context.run_one_for(10ms);
  EXPECT_EQ(one.connections(), 3);
}

// Out of descriptors, the waiting connection is accepted when one has been given back.
TEST_F(ServerTest, DescriptorsMayRunOut) {
  serve();
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  testing::internal::CaptureStderr();
  // Room for the client's socket, and none for the server's.
  const int next = ::dup(0);
  ::close(next);
  rlimit tight = before;
  tight.rlim_cur = static_cast<rlim_t>(next) + 1;
  ::setrlimit(RLIMIT_NOFILE, &tight);
  auto client = connect();
  client.send(get("/echo"));
  EXPECT_TRUE(client.silent(250ms));
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(client.read().status, 200);
  const std::string lines = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 1) << lines;
  EXPECT_THAT(lines, HasSubstr("cannot accept connections"));
}

// S21: who may say for whom it speaks.
TEST_F(ServerTest, ForwardedAddressesCountFromTrustedProxiesOnly) {
  serve();
  auto stranger = connect();
  stranger.send(get("/peer", "X-Forwarded-For: 203.0.113.9\r\nX-Forwarded-Proto: http\r\n"));
  EXPECT_EQ(stranger.read().body, "127.0.0.1");
  on_thread([&] { server_.reset(); });
  options.trusted_proxies = {*parse_network("127.0.0.0/8"), *parse_network("10.0.0.0/8")};
  serve();
  auto proxied = connect();
  proxied.send(get("/peer", "X-Forwarded-For: 1.2.3.4, 203.0.113.9\r\nX-Forwarded-For: 10.1.1.1\r\n"));
  EXPECT_EQ(proxied.read().body, "203.0.113.9");
  proxied.send(get("/peer", "X-Forwarded-For: 203.0.113.9, <script>\r\n"));
  EXPECT_EQ(proxied.read().body, "127.0.0.1");
  proxied.send(get("/peer"));
  EXPECT_EQ(proxied.read().body, "127.0.0.1");
}

TEST_F(ServerTest, AnAddressInUseIsSaid) {
  serve();
  options.port = port;
  on_thread([&] { EXPECT_THROW(server(context.get_executor(), options, service_), boost::system::system_error); });
}

// PROXY protocol: of a trusted proxy the header is required, of anybody else it is no request.
TEST_F(ServerTest, ProxyHeadersCountFromTrustedProxiesOnly) {
  options.proxy_protocol = true;
  options.header_timeout = 300ms;
  serve();
  auto stranger = connect();
  stranger.send(get("/peer"));
  EXPECT_EQ(stranger.read().body, "127.0.0.1");
  auto pretender = connect();
  pretender.send("PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n" + get("/peer"));
  EXPECT_EQ(pretender.read().status, 400);
  EXPECT_TRUE(pretender.closed());
  on_thread([&] { server_.reset(); });
  options.trusted_proxies = {*parse_network("127.0.0.0/8")};
  serve();
  auto proxied = connect();
  proxied.send("PROXY TCP4 203.0.113.7 10.0.0.1 1 2\r\n" + get("/peer", "X-Forwarded-For: 9.9.9.9\r\n") + get("/peer"));
  EXPECT_EQ(proxied.read().body, "203.0.113.7");
  EXPECT_EQ(proxied.read().body, "203.0.113.7");
  auto own = connect();
  own.send("PROXY UNKNOWN\r\n");
  own.send(get("/peer"));
  EXPECT_EQ(own.read().body, "127.0.0.1");
  auto bare = connect();
  bare.send(get("/peer"));
  EXPECT_TRUE(bare.closed()) << "and nothing is said to what is no proxy";
  auto slow = connect();
  slow.send("PROXY TCP4 203.0.");
  EXPECT_TRUE(slow.closed(3s));
  EXPECT_TRUE(eventually([&] { return connections() <= 2; }));
}

TEST_F(ServerTest, PortsAreSharedWhenAskedFor) {
  on_thread([&] {
    server one(context.get_executor(), options, service_, true);
    server_options same = options;
    same.port = one.port();
    server two(context.get_executor(), same, service_, true);
    EXPECT_EQ(two.port(), one.port());
  });
}

TEST_F(ServerTest, NewLimitsHoldForNewConnections) {
  serve();
  auto old = connect();
  old.send(get("/echo"));
  EXPECT_EQ(old.read().status, 200);
  server_options fewer = options;
  fewer.body_limit = 10;
  on_thread([&] { server_->set_options(fewer); });
  auto fresh = connect();
  fresh.send(post("/echo", std::string(11, 'x')));
  EXPECT_EQ(fresh.read().status, 413);
  old.send(post("/echo", std::string(11, 'x')));
  EXPECT_EQ(old.read().status, 200);
}

TEST_F(ServerTest, AnswersAndConnectionsAreCounted) {
  observe::metrics metrics{observe::metric_labels{}};
  options.metrics = &metrics;
  serve();
  auto client = connect();
  client.send(get("/echo") + get("/early/404"));
  EXPECT_EQ(client.read().status, 200);
  EXPECT_EQ(client.read().status, 404);
  const std::string text = metrics.render();
  EXPECT_THAT(text, HasSubstr("recibo_http_requests_total{listener=\"callbacks\",status_class=\"2xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("recibo_http_requests_total{listener=\"callbacks\",status_class=\"4xx\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("recibo_http_connections{listener=\"callbacks\"} 1\n"));
  client.close();
  EXPECT_TRUE(eventually(
      [&] { return metrics.render().find("recibo_http_connections{listener=\"callbacks\"} 0\n") != std::string::npos; }));
  on_thread([&] { server_.reset(); });
}

std::size_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::size_t total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

// The bound of 64 MiB at 10,000 idle connections leaves about 4 KiB for each.
TEST_F(ServerTest, IdleConnectionsHoldLittleMemory) {
  constexpr int count = 2000;
  serve();
  std::vector<raw_client> clients;
  clients.reserve(count);
  const auto open = [&](int how_many) {
    for (int i = 0; i < how_many; ++i) {
      clients.push_back(connect());
      clients.back().send(post("/echo", std::string(600, 'x')));
      EXPECT_EQ(clients.back().read().status, 200);
    }
  };
  open(100);  // pools and caches fill
  const std::size_t before = resident_bytes();
  open(count);
  EXPECT_EQ(connections(), count + 100);
  const double each = static_cast<double>(resident_bytes() - before) / count;
  RecordProperty("bytes_per_idle_connection", static_cast<int>(each));
  std::cout << "bytes per idle connection, the test's own client included: " << each << "\n";
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_LT(each, 4096);
#endif
}

}  // namespace
}  // namespace recibo::http::test
