#include "listener.hpp"

#include "session.hpp"

#include "recibo/observe/log.hpp"
#include "recibo/observe/metrics.hpp"

#include <boost/asio/execution/context.hpp>
#include <boost/asio/query.hpp>

#include <algorithm>

namespace recibo::http {
namespace {

// Connections over the limit that are being told so at the same time; beyond them they are closed without a word.
constexpr int refused_most = 64;

boost::asio::execution_context& context_of(const boost::asio::any_io_executor& executor) {
  return boost::asio::query(executor, boost::asio::execution::context);
}

}  // namespace

listener::listener(boost::asio::any_io_executor e, server_options o, std::shared_ptr<service> b)
    : executor(std::move(e)),
      options(std::make_shared<server_options>(std::move(o))),
      behind(std::move(b)),
      shared(boost::asio::use_service<per_thread>(context_of(executor))),
      sessions_(executor),
      ticker_(executor) {}

void listener::take(boost::asio::ip::tcp::socket socket) {
  const bool over = static_cast<int>(live.size()) - refused_live_ >= options->connection_limit;
  if (over) refused("over_limit");
  if (over && refused_live_ >= refused_most) return;
  // Nothing can be said before a handshake, and there is no room for one.
  if (over && (options->tls || options->proxy_protocol)) return;
  auto one = std::make_unique<session>(shared_from_this(), std::move(socket));
  one->over_limit = over;
  enter(*one);
  if (over) {
    spawn(session::refuse(std::move(one)));
  } else if (one->opens()) {
    spawn(session::open(std::move(one)));
  } else {
    session::idle(std::move(one));
  }
}

void listener::spawn(boost::asio::awaitable<void> task) { sessions_.spawn("connection", std::move(task)); }

void listener::enter(session& one) {
  one.place = live.size();
  live.push_back(&one);
  refused_live_ += one.over_limit ? 1 : 0;
  if (options->metrics) options->metrics->http_connections(options->name, 1);
  if (!ticking_) tick();
}

void listener::leave(session& one) {
  live.back()->place = one.place;
  live[one.place] = live.back();
  live.pop_back();
  refused_live_ -= one.over_limit ? 1 : 0;
  if (options->metrics) options->metrics->http_connections(options->name, -1);
  // Without connections there is nothing to wait for; the context may run dry.
  if (live.empty()) ticker_.cancel();
}

void listener::answered(int status) noexcept {
  if (options->metrics) options->metrics->http_request(options->name, status);
}

void listener::refused(std::string_view reason) noexcept {
  if (options->metrics) options->metrics->http_refused(options->name, reason);
  log::debug("connection refused", {{"listener", options->name}, {"reason", reason}});
}

void listener::tick() {
  ticking_ = true;
  ticker_.expires_after(tick_length());
  ticker_.async_wait([self = shared_from_this()](const boost::system::error_code&) {
    self->ticking_ = false;
    if (self->live.empty()) return;
    const auto now = std::chrono::steady_clock::now();
    for (session* one : self->live) one->expire(now);
    self->tick();
  });
}

// A time-out is at most an eighth too long, and a quarter of a second.
std::chrono::milliseconds listener::tick_length() const noexcept {
  const auto shortest = std::min({options->header_timeout, options->body_timeout, options->idle_timeout});
  return std::clamp(shortest / 8, std::chrono::milliseconds(5), std::chrono::milliseconds(250));
}

void listener::drain() {
  draining = true;
  for (session* one : live) one->drain();
}

void listener::stop() {
  draining = true;
  stopped = true;
  for (session* one : live) one->cut();
  sessions_.emit(boost::asio::cancellation_type::terminal);
}

}  // namespace recibo::http
