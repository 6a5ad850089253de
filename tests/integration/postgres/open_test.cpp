// Finding a server: several hosts, dead and silent ones, wrong URLs. The URL's password never comes out again.
#include "recibo/postgres/connection.hpp"

#include "support/cluster.hpp"
#include "support/run_coro.hpp"
#include "support/sessions.hpp"

#include <boost/asio/ip/tcp.hpp>

#include <gtest/gtest.h>

namespace recibo::postgres {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::soon;

const statement one{"one", "SELECT 1", {}};

struct tried {
  std::optional<error> failed;
  std::chrono::milliseconds took{};
  bool works = false;
};

tried open(const std::string& url, std::chrono::milliseconds within = 10s) {
  tried out;
  asio::io_context context;
  const auto body = [&]() -> asio::awaitable<void> {
    const auto started = std::chrono::steady_clock::now();
    auto c = co_await connection::open(context.get_executor(), secret(url), started + within);
    out.took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - started);
    if (!c) {
      out.failed = c.error();
      co_return;
    }
    pipeline run;
    run.add(one);
    const auto answer = co_await (*c)->run(run, soon());
    out.works = answer.ok();
  };
  test::run_coro(context, body);
  return out;
}

// Takes connections, as the kernel does, and never says a word.
class silent_server {
 public:
  silent_server() : acceptor_(context_, asio::ip::tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {}
  std::string port() const { return std::to_string(acceptor_.local_endpoint().port()); }

 private:
  asio::io_context context_;
  asio::ip::tcp::acceptor acceptor_;
};

// A port at which nobody listens.
std::string dead_port() {
  const silent_server gone;
  return gone.port();
}

class Open : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    test::cluster::options o;
    o.tcp = true;
    server = std::make_unique<test::cluster>(o);
  }
  static void TearDownTestSuite() { server.reset(); }
  static std::string port() { return std::to_string(server->tcp_port()); }
  static inline std::unique_ptr<test::cluster> server;
};

TEST_F(Open, OverTcpAndOverTheSocket) {
  EXPECT_TRUE(open(server->tcp_url()).works);
  EXPECT_TRUE(open(server->url()).works);
}

TEST_F(Open, ByNameThatHasToBeLookedUp) { EXPECT_TRUE(open("postgresql://recibo@localhost:" + port() + "/postgres").works); }

TEST_F(Open, GoesOnAfterADeadFirstHost) {
  const auto t = open("postgresql://recibo@127.0.0.1:" + dead_port() + ",127.0.0.1:" + port() + "/postgres");
  EXPECT_TRUE(t.works);
  EXPECT_LT(t.took, 2s);
}

TEST_F(Open, GoesOnAfterASilentFirstHostWithinItsShareOfTheTime) {
  const silent_server silent;
  const auto t = open("postgresql://recibo@127.0.0.1:" + silent.port() + ",127.0.0.1:" + port() + "/postgres", 2s);
  EXPECT_TRUE(t.works);
  EXPECT_GE(t.took, 900ms);
  EXPECT_LT(t.took, 2s);
}

TEST_F(Open, GoesOnAfterANameThatNobodyKnows) {
  EXPECT_TRUE(open("postgresql://recibo@no-such-host.invalid:1,127.0.0.1:" + port() + "/postgres").works);
}

TEST_F(Open, SkipsTheHostThatOnlyReads) {
  test::cluster::options o;
  o.tcp = true;
  o.settings = {"default_transaction_read_only=on"};
  const test::cluster reader(o);
  const std::string both =
      "postgresql://recibo@127.0.0.1:" + std::to_string(reader.tcp_port()) + ",127.0.0.1:" + port() + "/postgres";
  EXPECT_TRUE(open(both).works);
  const auto only = open(reader.tcp_url());
  ASSERT_TRUE(only.failed);
  EXPECT_EQ(only.failed->code, transient::database_away);
  EXPECT_TRUE(open(reader.tcp_url() + "?target_session_attrs=any").works);
}

TEST_F(Open, NobodyThereFailsAtOnce) {
  const auto t = open("postgresql://recibo:hunter2@127.0.0.1:" + dead_port() + "/postgres");
  ASSERT_TRUE(t.failed);
  EXPECT_EQ(t.failed->code, transient::database_away);
  EXPECT_EQ(t.failed->detail, "no database server could be reached");
  EXPECT_LT(t.took, 500ms);
}

TEST_F(Open, SilenceFailsAtTheDeadline) {
  const silent_server silent;
  const auto t = open("postgresql://recibo@127.0.0.1:" + silent.port() + "/postgres", 300ms);
  ASSERT_TRUE(t.failed);
  EXPECT_EQ(t.failed->code, transient::database_away);
  EXPECT_GE(t.took, 290ms);
  EXPECT_LT(t.took, 1s);
}

TEST_F(Open, RefusedLoginIsToldApartAndLeaksNothing) {
  testing::internal::CaptureStderr();
  const auto t = open("postgresql://nobody:hunter2@127.0.0.1:" + port() + "/postgres");
  const auto logged = testing::internal::GetCapturedStderr();
  ASSERT_TRUE(t.failed);
  EXPECT_EQ(t.failed->code, transient::database_away);
  EXPECT_EQ(t.failed->detail, "a database server answered and refused the session");
  EXPECT_NE(logged.find("does not exist"), std::string::npos) << logged;
  EXPECT_EQ(logged.find("hunter2"), std::string::npos) << logged;
}

TEST_F(Open, UrlThatCannotBeReadIsAFaultOfTheConfiguration) {
  const auto t = open("postgresql://u:hunter2@h:1%zz/db");
  ASSERT_TRUE(t.failed);
  EXPECT_EQ(t.failed->code, permanent::invalid_configuration);
  EXPECT_EQ(t.failed->detail.find("hunter2"), std::string::npos);
}

TEST_F(Open, TimeoutsThatTheUrlNamesStay) {
  const statement show{
      "", "SELECT current_setting('statement_timeout') || ' ' || current_setting('idle_in_transaction_session_timeout')", {}};
  test::on_connection(secret(server->tcp_url() + "?options=-c%20statement_timeout%3D9s"),
                      [&](connection& c) -> asio::awaitable<void> {
                        pipeline run;
                        run.add(show);
                        const auto out = co_await c.run(run, soon());
                        EXPECT_TRUE(out.ok());
                        if (out.ok()) {
                          EXPECT_EQ(out.answers[0].text(0, 0), "9s 5s");
                        }
                      });
}

}  // namespace
}  // namespace recibo::postgres
