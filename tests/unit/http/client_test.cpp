#include "client_fixture.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include <gmock/gmock.h>

namespace recibo::http::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

double seconds_of(const std::function<void()>& work) {
  const auto from = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

TEST_F(ClientTest, SendsOneRequestAndReadsItsAnswer) {
  std::string seen;
  auto& server = serve([&](stage_peer& peer) {
    seen = peer.request();
    peer.send("HTTP/1.1 202 Accepted\r\nX-A: 1\r\nContent-Length: 2\r\n\r\nok");
  });
  auto what = to(server, "/hooks?a=b");
  what.method = "POST";
  what.headers = {{"Content-Type", "application/json"}, {"webhook-id", "msg_1"}};
  what.body = "{}";
  const auto got = send(std::move(what));
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(got->status, 202);
  EXPECT_EQ(got->body, "ok");
  EXPECT_EQ(find_header(got->headers, "x-a"), "1");
  EXPECT_EQ(seen, "POST /hooks?a=b HTTP/1.1\r\nHost: ledger.test:" + std::to_string(server.port()) +
                      "\r\nUser-Agent: recibo/" RECIBO_VERSION
                      "\r\nAccept-Encoding: identity\r\nContent-Type: application/json\r\nwebhook-id: msg_1\r\nContent-Length: "
                      "2\r\n\r\n{}");
}

TEST_F(ClientTest, AHostThatIsWrittenDownIsNotLookedUp) {
  std::string seen;
  auto& server = serve([&](stage_peer& peer) {
    seen = peer.request();
    peer.send(says("ok"));
  });
  client_options options;
  options.connect_to["gateway.test"] = {*parse_ip("127.0.0.1"), server.port()};
  options.connect_to["metadata.test"] = {*parse_ip("169.254.169.254"), server.port()};
  make(std::move(options));
  outbound_request what;
  what.url = *parse_http_url("http://gateway.test/x").url;
  const auto got = send(what);
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_THAT(seen, HasSubstr("\r\nHost: gateway.test\r\n"));
  EXPECT_EQ(resolver_->asked, 0);
  // The address is judged all the same.
  auto strict = rules_;
  strict.allow.clear();
  EXPECT_EQ(send(what, strict).error().code, permanent::address_refused);
  what.url = *parse_http_url("http://metadata.test/x").url;
  EXPECT_EQ(send(what).error().code, permanent::address_refused);
}

TEST_F(ClientTest, SpeaksToTheEndOfTheConnectionAndReadsOverInterimAnswers) {
  auto& closing = serve([](stage_peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 200 OK\r\n\r\nall there is");
  });
  EXPECT_EQ(send(to(closing))->body, "all there is");
  auto& interim = serve([](stage_peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 100 Continue\r\n\r\n");
    std::this_thread::sleep_for(20ms);
    peer.send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + says("done"));
  });
  EXPECT_EQ(send(to(interim))->body, "done");
  auto& chunked = serve([](stage_peer& peer) {
    peer.request();
    for (const char* piece :
         {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe", "\r\n3\r", "\nllo\r\n0\r\n", "\r\n"}) {
      peer.send(piece);
      std::this_thread::sleep_for(5ms);
    }
  });
  EXPECT_EQ(send(to(chunked))->body, "hello");
}

TEST_F(ClientTest, HeadAndNoContentHaveNoBody) {
  auto& head = serve(answering("HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n"));
  auto what = to(head);
  what.method = "HEAD";
  EXPECT_EQ(send(what)->status, 200);
  EXPECT_EQ(send(what)->body, "");
  EXPECT_EQ(head.connections(), 1);
  auto& none = serve(answering("HTTP/1.1 204 No Content\r\n\r\n"));
  EXPECT_EQ(send(to(none))->status, 204);
  EXPECT_EQ(send(to(none))->status, 204);
  EXPECT_EQ(none.connections(), 1);
}

// K29: a redirect is the answer, wherever it points.
TEST_F(ClientTest, RedirectsAreNotFollowed) {
  auto& other = serve(answering(says("inside")));
  auto& server = serve(answering("HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest/\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(send(to(server))->status, 302);
  auto& near = serve(answering("HTTP/1.1 307 T\r\nLocation: http://127.0.0.1:" + std::to_string(other.port()) +
                               "/\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(send(to(near))->status, 307);
  EXPECT_EQ(other.connections(), 0);
}

TEST_F(ClientTest, WhatCannotBeSentIsRefusedBeforeAnythingIsDone) {
  auto& server = serve(answering(says("x")));
  auto rules = rules_;
  rules.plain_http = false;
  EXPECT_EQ(send(to(server), rules).error().code, permanent::url_refused);
  for (const auto& [name, value] : header_list{{"Host", "evil"},
                                               {"Content-Length", "3"},
                                               {"transfer-encoding", "chunked"},
                                               {"Connection", "upgrade"},
                                               {"X-A", "b\r\nX-Forged: 1"},
                                               {"X A", "b"},
                                               {"", "b"}}) {
    auto what = to(server);
    what.headers = {{name, value}};
    EXPECT_EQ(send(what).error().code, permanent::malformed_field) << name;
  }
  auto method = to(server);
  method.method = "GET /x HTTP/1.1\r\nX: ";
  EXPECT_EQ(send(method).error().code, permanent::malformed_field);
  for (const auto target : {"", "x", "/a b", "/a\r\nX-Forged: 1", "/#a", "/\xc3\xa9", "@evil/"}) {
    auto what = to(server);
    what.url.target = target;
    EXPECT_EQ(send(what).error().code, permanent::url_refused) << target;
  }
  for (const auto host : {"", "a@b", "2130706433", "a/b", "a b", "a:80"}) {
    auto what = to(server);
    what.url.host = host;
    EXPECT_EQ(send(what).error().code, permanent::url_refused) << host;
  }
  EXPECT_EQ(server.connections(), 0);
  EXPECT_EQ(resolver_->asked, 0);
}

TEST_F(ClientTest, AddressesAreJudged) {
  auto& server = serve(answering(says("x")));
  auto strict = rules_;
  strict.allow.clear();
  for (const auto host :
       {"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "ledger.test", "10.0.0.1", "[64:ff9b::7f00:1]", "0.0.0.0"}) {
    const auto got = send(to(server, "/", host), strict);
    EXPECT_EQ(got.error().code, permanent::address_refused) << host;
    EXPECT_THAT(got.error().detail, HasSubstr("which may not be reached")) << host;
  }
  // http to a public address, for who may reach any and for who allowed others.
  resolver_->answers["public.test"] = {{"192.88.98.1"}, {"192.88.98.1"}};
  for (const auto& rules : {strict, rules_})
    EXPECT_THAT(send(to(server, "/", "public.test"), rules).error().detail, HasSubstr("plain http"));
  auto all = rules_;
  all.allow = {*parse_network("0.0.0.0/0"), *parse_network("::/0")};
  for (const auto host : {"169.254.169.254", "[fe80::1]", "0.0.0.0", "[::]", "224.0.0.1", "[::ffff:169.254.169.254]"})
    EXPECT_EQ(send(to(server, "/", host), all).error().code, permanent::address_refused) << host;
  EXPECT_EQ(server.connections(), 0);
  EXPECT_TRUE(send(to(server, "/", "[::ffff:127.0.0.1]")));
}

// One look-up for one connection, and the connection goes to what was looked at.
TEST_F(ClientTest, ANameThatAnswersDifferentlyGainsNothing) {
  auto& server = serve(answering("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"));
  auto& inside = serve(answering(says("inside")), {}, "127.0.0.2", server.port());
  rules_.allow = {*parse_network("127.0.0.1")};
  resolver_->answers["rebind.test"] = {{"127.0.0.1"}, {"127.0.0.2"}};
  EXPECT_TRUE(send(to(server, "/", "rebind.test")));
  EXPECT_EQ(resolver_->asked, 1);
  EXPECT_EQ(send(to(server, "/", "rebind.test")).error().code, permanent::address_refused);
  // Of several addresses those that pass are used, and no other.
  resolver_->answers["mixed.test"] = {{"169.254.169.254", "127.0.0.2", "127.0.0.1"}};
  EXPECT_TRUE(send(to(server, "/", "mixed.test")));
  EXPECT_EQ(inside.connections(), 0);
}

TEST_F(ClientTest, NamesThatCannotBeLookedUpAreTransient) {
  auto& server = serve(answering(says("x")));
  EXPECT_EQ(send(to(server, "/", "nowhere.test")).error().code, transient::resolve_failed);
  resolver_->answers["empty.test"] = {{}};
  EXPECT_EQ(send(to(server, "/", "empty.test")).error().code, transient::resolve_failed);
  resolver_->hangs = true;
  rules_.connect_timeout = 200ms;
  const double took = seconds_of([&] { EXPECT_EQ(send(to(server, "/", "slow.test")).error().code, transient::resolve_failed); });
  EXPECT_LT(took, 2);
}

TEST_F(ClientTest, ConnectionsThatAreNotMadeAreTransient) {
  std::uint16_t closed = 0;
  {
    stage_server gone(answering(""));
    closed = gone.port();
  }
  outbound_request what;
  what.url = *parse_http_url("http://127.0.0.1:" + std::to_string(closed) + "/").url;
  EXPECT_EQ(send(what).error().code, transient::connect_failed);

  // A queue of connections that is full: the system drops what comes, and the client waits.
  boost::asio::io_context other;
  using tcp = boost::asio::ip::tcp;
  tcp::acceptor full(other);
  full.open(tcp::v4());
  full.bind({boost::asio::ip::make_address("127.0.0.1"), 0});
  full.listen(0);
  std::list<tcp::socket> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.emplace_back(other);
    waiting.back().open(tcp::v4());
    waiting.back().native_non_blocking(true);
    // Asio's own connect would wait for the end.
    const auto to = full.local_endpoint();
    EXPECT_TRUE(::connect(waiting.back().native_handle(), to.data(), static_cast<socklen_t>(to.size())) == 0 ||
                errno == EINPROGRESS);
  }
  what.url.port = full.local_endpoint().port();
  rules_.connect_timeout = 300ms;
  const double took = seconds_of([&] { EXPECT_EQ(send(what).error().code, transient::connect_failed); });
  EXPECT_GT(took, 0.2);
  EXPECT_LT(took, 2);
}

TEST_F(ClientTest, TheNextAddressIsTried) {
  auto& server = serve(answering(says("x")));
  resolver_->answers["two.test"] = {{"127.0.0.9", "127.0.0.1"}};
  EXPECT_TRUE(send(to(server, "/", "two.test")));
}

// Whatever was sent may have been done.
TEST_F(ClientTest, WhatWasSentAndNotAnsweredIsUncertain) {
  rules_.timeout = 300ms;
  auto& tarpit = serve([](stage_peer& peer) { peer.wait_until_closed(); });
  double took = seconds_of([&] { EXPECT_EQ(send(to(tarpit)).error().code, uncertain::answer_unknown); });
  EXPECT_GT(took, 0.25);
  EXPECT_LT(took, 2);
  auto& slow = serve([](stage_peer& peer) {
    peer.request();
    const std::string all = says("hello");
    for (std::size_t i = 0; i < all.size() && peer.send(all.substr(i, 1)); ++i) std::this_thread::sleep_for(50ms);
  });
  took = seconds_of([&] { EXPECT_EQ(send(to(slow)).error().code, uncertain::answer_unknown); });
  EXPECT_LT(took, 2);
  rules_.timeout = 5s;
  auto& resets = serve([](stage_peer& peer) {
    peer.request();
    peer.reset();
  });
  EXPECT_EQ(send(to(resets)).error().code, uncertain::answer_unknown);
  auto& closes = serve([](stage_peer& peer) { peer.request(); });
  EXPECT_EQ(send(to(closes)).error().code, uncertain::answer_unknown);
  auto& half = serve([](stage_peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhell");
  });
  EXPECT_EQ(send(to(half)).error().code, uncertain::answer_unknown);
}

TEST_F(ClientTest, AnswersAreBounded) {
  auto& endless = serve([](stage_peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 200 OK\r\n\r\n");
    while (peer.send(std::string(65536, 'x'))) {
    }
  });
  auto& huge = serve(answering("HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nx"));
  auto& head = serve([](stage_peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 200 OK\r\n");
    while (peer.send("X-Padding: " + std::string(1000, 'x') + "\r\n")) {
    }
  });
  auto& chunks = serve([](stage_peer& peer) {
    peer.request();
    peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    while (peer.send("1\r\nx\r\n")) {
    }
  });
  for (auto* one : {&endless, &huge, &head, &chunks}) EXPECT_EQ(send(to(*one)).error().code, permanent::answer_too_large);
  rules_.cut_body = true;
  rules_.body_limit = 100;
  for (auto* one : {&endless, &chunks}) {
    const auto got = send(to(*one));
    ASSERT_TRUE(got) << got.error().detail;
    EXPECT_EQ(got->status, 200);
    EXPECT_EQ(got->body.size(), 100u);
    EXPECT_FALSE(got->whole);
  }
  rules_.timeout = 300ms;
  const auto late = send(to(huge));
  ASSERT_TRUE(late) << late.error().detail;
  EXPECT_EQ(late->status, 200);
  EXPECT_FALSE(late->whole);
}

TEST_F(ClientTest, WhatIsNoHttpIsMalformed) {
  auto& ssh = serve([](stage_peer& peer) {
    peer.send("SSH-2.0-OpenSSH_9.2\r\n");
    peer.wait_until_closed();
  });
  EXPECT_EQ(send(to(ssh)).error().code, permanent::answer_malformed);
  auto& switches = serve(answering("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n"));
  EXPECT_EQ(send(to(switches)).error().code, permanent::answer_malformed);
}

// A server may answer and hang up before it has read the request.
TEST_F(ClientTest, AnEarlyAnswerIsRead) {
  auto& server = serve([](stage_peer& peer) {
    peer.send("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    peer.wait_until_closed();
  });
  auto what = to(server);
  what.method = "POST";
  what.body = std::string(4 << 20, 'x');
  const auto got = send(what);
  ASSERT_TRUE(got) << got.error().detail;
  EXPECT_EQ(got->status, 413);
  EXPECT_EQ(client_->idle(), 0u);
}

TEST_F(ClientTest, ConnectionsAreKept) {
  auto& server = serve(answering(says("x")));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(send(to(server)));
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(client_->idle(), 1u);
  EXPECT_EQ(resolver_->asked, 1);
  client_->close_idle();
  EXPECT_EQ(client_->idle(), 0u);
  EXPECT_TRUE(send(to(server)));
  EXPECT_EQ(client_->idle(), 0u);
}

TEST_F(ClientTest, KeptConnectionsAreBounded) {
  client_options options;
  options.idle_timeout = 100ms;
  make(options);
  auto& server = serve(answering(says("x")));
  EXPECT_TRUE(send(to(server)));
  EXPECT_EQ(client_->idle(), 1u);
  pass(300ms);
  EXPECT_EQ(client_->idle(), 0u);

  options.idle_timeout = 30s;
  options.lifetime = 50ms;
  make(options);
  EXPECT_TRUE(send(to(server)));
  std::this_thread::sleep_for(80ms);
  EXPECT_TRUE(send(to(server)));
  EXPECT_EQ(server.connections(), 3);

  options.lifetime = 30s;
  options.idle_most = 2;
  make(options);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(send(to(serve(answering(says("x"))))));
  EXPECT_EQ(client_->idle(), 2u);

  options.idle_per_destination = 0;
  make(options);
  EXPECT_TRUE(send(to(server)));
  EXPECT_EQ(client_->idle(), 0u);
}

// Who sends many at once keeps as many.
TEST_F(ClientTest, ARequestMaySayHowManyAreKept) {
  auto& server = serve(answering(says("x")));
  const auto kept_after_three = [&](std::size_t keep) {
    client_options options;
    options.idle_per_destination = 1;
    make(options);
    auto rules = rules_;
    rules.keep_idle = keep;
    int done = 0;
    for (int i = 0; i < 3; ++i)
      boost::asio::co_spawn(*context_, client_->send(to(server), rules),
                            [&](const std::exception_ptr&, const result<outbound_answer>& r) { done += r ? 1 : 0; });
    context_->restart();
    const auto until = std::chrono::steady_clock::now() + 20s;
    while (done < 3 && context_->run_one_until(until) != 0) {
    }
    EXPECT_EQ(done, 3);
    return client_->idle();
  };
  EXPECT_EQ(kept_after_three(0), 1u);
  EXPECT_EQ(kept_after_three(2), 2u);
  EXPECT_EQ(kept_after_three(8), 3u);
}

// The rules of the request at hand count, not those under which the connection was made.
TEST_F(ClientTest, AKeptConnectionIsJudgedAgain) {
  auto& server = serve(answering(says("x")));
  EXPECT_TRUE(send(to(server)));
  auto strict = rules_;
  strict.allow.clear();
  EXPECT_EQ(send(to(server), strict).error().code, permanent::address_refused);
  EXPECT_TRUE(send(to(server)));
  EXPECT_EQ(server.connections(), 1);
}

TEST_F(ClientTest, AConnectionThatHasEndedMeanwhileIsNotUsed) {
  auto& server = serve([](stage_peer& peer) {
    peer.request();
    peer.send(says("x"));
  });
  auto what = to(server);
  what.method = "POST";
  EXPECT_TRUE(send(what));
  std::this_thread::sleep_for(50ms);
  EXPECT_TRUE(send(what));
  EXPECT_EQ(server.connections(), 2);
}

// The first connection dies on its second request, before a byte of the answer, or after one.
TEST_F(ClientTest, OnlyWhatMayBeRepeatedIsSentAgain) {
  const auto server = [&](const std::string& last) -> stage_server& {
    return serve([last](stage_peer& peer) {
      peer.request();
      peer.send(says("x"));
      if (peer.number > 0) return peer.wait_until_closed();
      peer.request();
      peer.send(last);
      peer.reset();
    });
  };
  auto& for_get = server("");
  EXPECT_TRUE(send(to(for_get)));
  EXPECT_TRUE(send(to(for_get)));
  EXPECT_EQ(for_get.connections(), 2);

  auto& for_post = server("");
  auto post = to(for_post);
  post.method = "POST";
  EXPECT_TRUE(send(post));
  EXPECT_EQ(send(post).error().code, uncertain::answer_unknown);
  EXPECT_EQ(for_post.connections(), 1);

  auto& for_repeatable = server("");
  auto repeatable = to(for_repeatable);
  repeatable.method = "POST";
  repeatable.repeatable = true;
  EXPECT_TRUE(send(repeatable));
  EXPECT_TRUE(send(repeatable));
  EXPECT_EQ(for_repeatable.connections(), 2);

  // Closed properly after a byte, so that the client surely sees it.
  auto& seen = serve([](stage_peer& peer) {
    peer.request();
    peer.send(says("x"));
    peer.request();
    peer.send("H");
  });
  EXPECT_TRUE(send(to(seen)));
  EXPECT_EQ(send(to(seen)).error().code, uncertain::answer_unknown);
  EXPECT_EQ(seen.connections(), 1);

  // A fresh connection that dies is not tried again.
  auto& dies = serve([](stage_peer& peer) {
    peer.request();
    peer.reset();
  });
  EXPECT_EQ(send(to(dies)).error().code, uncertain::answer_unknown);
  EXPECT_EQ(dies.connections(), 1);
}

TEST_F(ClientTest, ADrainEndsWhatIsUnderWay) {
  auto& tarpit = serve([](stage_peer& peer) { peer.wait_until_closed(); });
  make();
  for (const auto host : {"ledger.test", "slow.test"}) {
    resolver_->hangs = true;
    boost::asio::cancellation_signal stop;
    bool done = false;
    boost::asio::co_spawn(
        *context_, client_->send(to(tarpit, "/", host), rules_),
        boost::asio::bind_cancellation_slot(stop.slot(), [&](const std::exception_ptr&, const result<outbound_answer>& r) {
          done = true;
          EXPECT_TRUE(r.has_error() || !r.has_error());
        }));
    pass(100ms);
    EXPECT_FALSE(done);
    stop.emit(boost::asio::cancellation_type::terminal);
    pass(100ms);
    EXPECT_TRUE(done) << host;
  }
}

TEST_F(ClientTest, ARequestOutlivesItsClient) {
  auto& server = serve([](stage_peer& peer) {
    peer.request();
    std::this_thread::sleep_for(100ms);
    peer.send(says("late"));
  });
  make();
  std::optional<result<outbound_answer>> got;
  boost::asio::co_spawn(*context_, client_->send(to(server), rules_),
                        [&](const std::exception_ptr&, result<outbound_answer> r) { got = std::move(r); });
  pass(30ms);
  client_.reset();
  pass(1s);
  ASSERT_TRUE(got && *got);
  EXPECT_EQ((*got)->body, "late");
}

TEST_F(ClientTest, TheSystemsResolverAnswers) {
  client_options options;
  options.resolver = make_system_resolver(context_->get_executor());
  make(options);
  auto& server = serve(answering(says("x")));
  EXPECT_TRUE(send(to(server, "/", "localhost")));
  rules_.connect_timeout = 2s;
  EXPECT_EQ(send(to(server, "/", "does-not-exist.invalid")).error().code, transient::resolve_failed);
  // Given up with a look-up under way: its thread finds nobody, and does no harm.
  rules_.timeout = 1ms;
  EXPECT_FALSE(send(to(server, "/", "neither-does-this.invalid")));
}

}  // namespace
}  // namespace recibo::http::test
