#include "recibo/http/server.hpp"

#include "listener.hpp"

#include "recibo/async/task_group.hpp"
#include "recibo/observe/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/system/system_error.hpp>

#include <sys/socket.h>

#include <utility>

namespace recibo::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int backlog = 4096;
// Out of descriptors or buffers: the waiting connections stay in the backlog until some have been given back.
constexpr std::chrono::milliseconds pause{100};

tcp::acceptor listen(const asio::any_io_executor& executor, const server_options& options, bool reuse_port) {
  const auto where = "listen." + options.name + ", " + options.address + " port " + std::to_string(options.port);
  const auto must = [&](const error_code& ec) {
    if (ec) throw boost::system::system_error(ec, where);
  };
  const tcp::endpoint at(asio::ip::make_address(options.address), options.port);
  tcp::acceptor acceptor(executor, at.protocol());
  acceptor.set_option(tcp::acceptor::reuse_address(true));
  if (reuse_port) {
    const int on = 1;
    if (::setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0)
      must(error_code(errno, boost::system::system_category()));
  }
  error_code ec;
  acceptor.bind(at, ec);
  must(ec);
  acceptor.listen(backlog, ec);
  must(ec);
  return acceptor;
}

}  // namespace

class server::impl : public std::enable_shared_from_this<server::impl> {
 public:
  impl(asio::any_io_executor executor, server_options options, std::shared_ptr<service> behind, bool reuse_port)
      : acceptor(listen(executor, options, reuse_port)),
        accepting(executor),
        to(std::make_shared<listener>(executor, std::move(options), std::move(behind))),
        port(acceptor.local_endpoint().port()) {}

  static asio::awaitable<void> accept(std::shared_ptr<impl> self) {
    asio::steady_timer timer(self->acceptor.get_executor());
    bool said = false;
    while (!self->to->draining) {
      auto [ec, socket] = co_await self->acceptor.async_accept(asio::as_tuple(asio::use_awaitable));
      if (self->to->draining) break;
      if (!ec) {
        said = false;
        self->take(std::move(socket));
        continue;
      }
      // The peer has gone again: nobody's fault.
      if (ec == asio::error::connection_aborted || ec == asio::error::operation_aborted) continue;
      if (!std::exchange(said, true))
        log::warn("cannot accept connections", {{"listener", self->to->options->name}, {"error", ec.message()}});
      timer.expires_after(pause);
      co_await timer.async_wait(asio::as_tuple(asio::use_awaitable));
    }
  }

  // The loop above must not end because one connection found no memory.
  void take(tcp::socket socket) {
    try {
      to->take(std::move(socket));
    } catch (const std::exception& e) {
      log::error("a connection is dropped", {{"listener", to->options->name}, {"what", e.what()}});
    }
  }

  // Connections that the kernel has made but nobody has accepted yet: closing the acceptor would reset them, and the requests
  // that they have brought.
  void take_waiting() {
    error_code ec;
    acceptor.non_blocking(true, ec);
    while (!ec) {
      tcp::socket socket(acceptor.get_executor());
      acceptor.accept(socket, ec);
      if (!ec) take(std::move(socket));
    }
  }

  void close() {
    error_code ignored;
    acceptor.close(ignored);
    accepting.emit(asio::cancellation_type::terminal);
  }

  tcp::acceptor acceptor;
  async::task_group accepting;
  std::shared_ptr<listener> to;
  const std::uint16_t port;
};

server::server(asio::any_io_executor executor, server_options options, std::shared_ptr<service> behind, bool reuse_port)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(options), std::move(behind), reuse_port)) {}

server::~server() { stop(); }

std::uint16_t server::port() const noexcept { return impl_->port; }

void server::start() { impl_->accepting.spawn("accept", impl::accept(impl_)); }

void server::announce_drain() { impl_->to->leaving = true; }

void server::drain() {
  impl_->take_waiting();
  impl_->to->drain();
  impl_->close();
}

void server::stop() {
  impl_->to->stop();
  impl_->close();
}

int server::connections() const noexcept { return static_cast<int>(impl_->to->live.size()); }

void server::set_options(const server_options& options) {
  auto next = std::make_shared<server_options>(options);
  next->name = impl_->to->options->name;
  next->address = impl_->to->options->address;
  next->port = impl_->to->options->port;
  next->metrics = impl_->to->options->metrics;
  impl_->to->options = std::move(next);
}

}  // namespace recibo::http
