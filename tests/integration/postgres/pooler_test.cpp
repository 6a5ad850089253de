// A pooler between us and the server. In session mode it does no harm; one that deals the server's processes out by
// transaction loses our settings, prepared statements and locks, and is refused when the connection is opened.
#include "recibo/postgres/connection.hpp"

#include "support/cluster.hpp"
#include "support/run_coro.hpp"
#include "support/sessions.hpp"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>
#include <atomic>
#include <cstring>
#include <list>
#include <mutex>
#include <thread>

namespace recibo::postgres {
namespace {

namespace asio = boost::asio;
using std::string_literals::operator""s;
using test::soon;

std::string word(std::uint32_t v) {
  v = htonl(v);
  return {reinterpret_cast<const char*>(&v), 4};
}
std::string message(char type, const std::string& body) {
  return type + word(static_cast<std::uint32_t>(body.size() + 4)) + body;
}

void put(int fd, const std::string& bytes) {
  for (std::size_t at = 0; at < bytes.size();) {
    const auto n = send(fd, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (n <= 0) return;
    at += static_cast<std::size_t>(n);
  }
}
// Empty: the other side has gone.
std::string take(int fd, std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t at = 0; at < size;) {
    const auto n = recv(fd, out.data() + at, size - at, 0);
    if (n <= 0) return {};
    at += static_cast<std::size_t>(n);
  }
  return out;
}
std::string take_message(int fd, bool typed = true) {
  auto head = take(fd, typed ? 5 : 4);
  if (head.empty()) return {};
  std::uint32_t size = 0;
  std::memcpy(&size, head.data() + head.size() - 4, 4);
  size = ntohl(size);
  return size == 4 ? head : head + take(fd, size - 4);
}

// Speaks as much of the protocol as a pooler must: answers the greeting itself, and passes on what stands between two syncs.
class pooler {
 public:
  enum class mode { session, transaction };
  pooler(mode m, const test::cluster& server) : mode_(m), server_(server) {
    listening_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    if (bind(listening_, address, size) != 0 || listen(listening_, 8) != 0 || getsockname(listening_, address, &size) != 0) {
      throw std::runtime_error("cannot listen");
    }
    port_ = ntohs(at.sin_port);
    shared_ = log_in();
    accepting_ = std::jthread([this] {
      for (int client; (client = accept(listening_, nullptr, nullptr)) >= 0;)
        clients_.emplace_back([this, client] { serve(client); });
    });
  }
  ~pooler() {
    shutdown(listening_, SHUT_RDWR);
    accepting_.join();
    clients_.clear();
    close(listening_);
    close(shared_);
  }
  std::string url() const { return "postgresql://recibo@127.0.0.1:" + std::to_string(port_) + "/postgres"; }

 private:
  int log_in() const {
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    const auto path = (server_.socket_folder() / ".s.PGSQL.5432").string();
    std::memcpy(at.sun_path, path.c_str(), path.size() + 1);
    if (connect(fd, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0) throw std::runtime_error("cannot connect");
    const std::string body = word(196608) + "user\0recibo\0database\0postgres\0\0"s;
    put(fd, word(static_cast<std::uint32_t>(body.size() + 4)) + body);
    for (auto m = take_message(fd); !m.empty() && m[0] != 'Z';) m = take_message(fd);
    return fd;
  }
  void serve(int client) {
    auto greeting = take_message(client, false);
    while (greeting.size() == 8) {  // asks for TLS first
      put(client, "N");
      greeting = take_message(client, false);
    }
    std::string hello = message('R', word(0));
    for (const auto& status : {"server_version\0"
                               "15.0\0"s,
                               "client_encoding\0UTF8\0"s, "in_hot_standby\0off\0"s, "default_transaction_read_only\0off\0"s,
                               "standard_conforming_strings\0on\0"s}) {
      hello += message('S', status);
    }
    put(client, hello + message('K', word(static_cast<std::uint32_t>(++greeted_)) + word(0)) + message('Z', "I"));
    const int own = mode_ == mode::session ? log_in() : -1;
    std::string asked;
    for (auto m = take_message(client); !m.empty() && m[0] != 'X'; m = take_message(client)) {
      asked += m;
      if (m[0] != 'S') continue;
      const std::scoped_lock one_at_a_time(turn_);
      const int backend = own >= 0 ? own : shared_;
      put(backend, std::exchange(asked, {}));
      for (;;) {
        const auto answer = take_message(backend);
        put(client, answer);
        if (answer.empty() || answer[0] == 'Z') break;
      }
    }
    if (own >= 0) close(own);
    close(client);
  }

  mode mode_;
  const test::cluster& server_;
  int listening_ = -1, port_ = 0, shared_ = -1;
  std::atomic<int> greeted_ = 0;
  std::mutex turn_;
  std::list<std::jthread> clients_;
  std::jthread accepting_;
};

result<int> open_through(const pooler& p) {
  asio::io_context context;
  result<int> out = 0;
  const auto body = [&]() -> asio::awaitable<void> {
    const auto c = co_await connection::open(context.get_executor(), secret(p.url()), soon());
    if (!c) out = c.error();
  };
  test::run_coro(context, body);
  return out;
}

TEST(Pooler, InSessionModeIsFine) {
  const pooler p(pooler::mode::session, test::cluster::shared());
  const auto opened = open_through(p);
  EXPECT_TRUE(opened) << opened.error().detail;
}

TEST(Pooler, InTransactionModeIsRefusedWithThatSentence) {
  const pooler p(pooler::mode::transaction, test::cluster::shared());
  const auto opened = open_through(p);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, transient::database_away);
  EXPECT_NE(opened.error().detail.find("transaction mode"), std::string::npos) << opened.error().detail;
}

}  // namespace
}  // namespace recibo::postgres
