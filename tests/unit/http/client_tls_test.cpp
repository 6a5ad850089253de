#include "client_fixture.hpp"

#include <gmock/gmock.h>

namespace recibo::http::test {
namespace {

using testing::HasSubstr;

TEST_F(ClientTest, TlsIsVerified) {
  std::string told;
  auto& good = serve(
      [&](stage_peer& peer) {
        told = peer.server_name;
        answering(says("secret"))(peer);
      },
      ca().issue("DNS:ledger.test"));
  for (int i = 0; i < 3; ++i) {
    const auto got = send(to(good, "/", "ledger.test", true));
    ASSERT_TRUE(got) << got.error().detail;
    EXPECT_EQ(got->body, "secret");
  }
  EXPECT_EQ(told, "ledger.test");
  EXPECT_EQ(good.connections(), 1);
  auto& address = serve(answering(says("x")), ca().issue("IP:127.0.0.1"));
  EXPECT_TRUE(send(to(address, "/", "127.0.0.1", true)));
  EXPECT_EQ(send(to(address, "/", "ledger.test", true)).error().code, permanent::certificate_refused);
  resolver_->answers["a.wild.test"] = {{"127.0.0.1"}};
  auto& wild = serve(answering(says("x")), ca().issue("DNS:*.wild.test"));
  EXPECT_TRUE(send(to(wild, "/", "a.wild.test", true)));
}

TEST_F(ClientTest, AHostThatIsWrittenDownHasToProveItsName) {
  ca();
  for (const bool right : {true, false}) {
    auto& server = serve(answering(says("x")), ca().issue(right ? "DNS:gateway.test" : "IP:127.0.0.1"));
    client_options options;
    options.connect_to["gateway.test"] = {*parse_ip("127.0.0.1"), server.port()};
    make(std::move(options));
    outbound_request what;
    what.url = *parse_http_url("https://gateway.test/").url;
    const auto got = send(std::move(what));
    EXPECT_EQ(got.has_value(), right);
    if (!right) {
      EXPECT_EQ(got.error().code, permanent::certificate_refused);
    }
  }
}

TEST_F(ClientTest, CertificatesThatDoNotHoldAreRefused) {
  struct row {
    const char* what;
    identity who;
    const char* why;
  };
  const row rows[] = {
      {"self-signed", authority::self_signed("DNS:ledger.test"), "self-signed"},
      {"unknown authority", authority().issue("DNS:ledger.test"), "certificate"},
      {"other host", ca().issue("DNS:other.test"), "ostname mismatch"},
      {"suffix", ca().issue("DNS:test"), "ostname mismatch"},
      {"address for a name", ca().issue("IP:127.0.0.1"), "ostname mismatch"},
      {"partial wildcard", ca().issue("DNS:led*.test"), "ostname mismatch"},
      {"expired", ca().issue("DNS:ledger.test", -7200, -3600), "expired"},
      {"not yet valid", ca().issue("DNS:ledger.test", 3600, 7200), "not yet valid"},
  };
  for (const row& r : rows) {
    bool asked = false;
    auto& server = serve([&](stage_peer& peer) { asked = !peer.request().empty(); }, r.who);
    const auto got = send(to(server, "/", "ledger.test", true));
    ASSERT_FALSE(got) << r.what;
    EXPECT_EQ(got.error().code, permanent::certificate_refused) << r.what << ": " << got.error().detail;
    EXPECT_THAT(got.error().detail, HasSubstr(r.why)) << r.what;
    client_.reset();
    EXPECT_FALSE(asked) << r.what;
  }
}

TEST_F(ClientTest, AHandshakeThatFailsIsTransient) {
  auto& plain = serve(answering("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"));
  EXPECT_EQ(send(to(plain, "/", "ledger.test", true)).error().code, transient::tls_failed);
  auto& closes = serve([](stage_peer&) {});
  EXPECT_EQ(send(to(closes, "/", "ledger.test", true)).error().code, transient::tls_failed);
  rules_.connect_timeout = 300ms;
  auto& silent = serve([](stage_peer& peer) { peer.wait_until_closed(); });
  EXPECT_EQ(send(to(silent, "/", "ledger.test", true)).error().code, transient::tls_failed);
}

// Without a length only the end that TLS vouches for is the end.
TEST_F(ClientTest, ATruncatedAnswerIsNotTakenForAWholeOne) {
  const identity who = ca().issue("DNS:ledger.test");
  auto& cut = serve(
      [](stage_peer& peer) {
        peer.request();
        peer.send("HTTP/1.1 200 OK\r\n\r\nhalf of");
      },
      who);
  EXPECT_EQ(send(to(cut, "/", "ledger.test", true)).error().code, uncertain::answer_unknown);
  auto& whole = serve(
      [](stage_peer& peer) {
        peer.request();
        peer.send("HTTP/1.1 200 OK\r\n\r\nall of it");
        peer.farewell();
      },
      who);
  EXPECT_EQ(send(to(whole, "/", "ledger.test", true))->body, "all of it");
}

TEST_F(ClientTest, TlsConnectionsThatDieAreReplaced) {
  auto& server = serve(
      [](stage_peer& peer) {
        peer.request();
        peer.send(says("x"));
        if (peer.number > 0) return peer.wait_until_closed();
        peer.request();
        peer.reset();
      },
      ca().issue("DNS:ledger.test"));
  EXPECT_TRUE(send(to(server, "/", "ledger.test", true)));
  EXPECT_TRUE(send(to(server, "/", "ledger.test", true)));
  EXPECT_EQ(server.connections(), 2);
}

TEST(TlsTrust, NamesWhatCannotBeRead) {
  EXPECT_EQ(load_tls_trust("no certificate").error().code, permanent::invalid_configuration);
  EXPECT_EQ(load_tls_trust("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").error().code,
            permanent::invalid_configuration);
  EXPECT_TRUE(load_tls_trust({}));
}

}  // namespace
}  // namespace recibo::http::test
