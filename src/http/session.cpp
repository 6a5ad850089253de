#include "session.hpp"

#include "answer.hpp"
#include "forwarded.hpp"
#include "proxy_header.hpp"

#include "recibo/http/problem.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/observe/trace.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>

namespace recibo::http {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using boost::system::error_code;
using std::chrono::steady_clock;

constexpr auto token = asio::as_tuple(asio::use_awaitable);

// How much of a body is taken on trust: beyond it the reservation grows with what has really arrived, so that a sender
// who only announces much holds little.
constexpr std::size_t first_step = 64 << 10;
// A refused request with a body up to this size does not cost its connection.
constexpr std::uint64_t skipped_body_most = 64 << 10;
// After an answer that ends the connection: how long and how much is read over, so that the answer is not destroyed by a reset
// before the sender has seen it.
constexpr std::chrono::seconds linger_time{2};
constexpr std::size_t linger_bytes = 8 << 20;

// How long a connection that was made while the listener drains may wait for its first request.
constexpr std::chrono::milliseconds last_moment{500};
// As much as one write of a head with its body is joined for: one TLS record.
constexpr std::size_t record_most = 16 << 10;

constexpr std::string_view plain_http_on_tls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: 26\r\nConnection: close\r\n\r\nThis "
    "listener speaks TLS.\n";

ip_bytes bytes_of(const asio::ip::address& address) {
  if (address.is_v6()) return address.to_v6().to_bytes();
  return asio::ip::make_address_v6(asio::ip::v4_mapped, address.to_v4()).to_bytes();
}

}  // namespace

session::session(std::shared_ptr<listener> of, asio::ip::tcp::socket socket)
    : of_(std::move(of)), options_(of_->options), stream_(std::move(socket)) {
  error_code ignored;
  peer_ = bytes_of(stream_.socket().remote_endpoint(ignored).address());
  expects_header_ = options_->proxy_protocol && contains(options_->trusted_proxies, peer_);
}

session::~session() { of_->leave(*this); }

void session::expire(time_point now) {
  if (now < until_) return;
  timed_out_ = true;
  error_code ignored;
  stream_.socket().cancel(ignored);
}

void session::drain() {
  if (!idle_) return;
  error_code ignored;
  stream_.socket().cancel(ignored);
}

void session::cut() {
  error_code ignored;
  stream_.socket().close(ignored);
}

awaitable<void> session::open(std::unique_ptr<session> self) {
  const time_point until = steady_clock::now() + self->options_->header_timeout;
  if (self->expects_header_) {
    const bool good = co_await self->read_proxy_header(until);
    if (!good) co_return;
  }
  if (self->options_->tls) {
    const bool good = co_await self->shake_hands(until);
    if (!good) co_return;
  }
  if (self->of_->draining && !self->stream_.pending()) {
    // Taken in the last moment: its request is under way, or there is none.
    const got soon = co_await self->wait(asio::socket_base::wait_read, steady_clock::now() + last_moment);
    if (soon != got::bytes) co_return;
  }
  idle(std::move(self));
}

awaitable<bool> session::read_proxy_header(time_point until) {
  proxy_header header;
  auto& scratch = of_->shared.scratch;
  for (;;) {
    // Looked at first, because what follows the header is not ours to take yet: it may be a handshake.
    const auto seen = stream_.peek(scratch.data(), proxy_header::binary_most);
    if (seen.state == byte_stream::state::done) {
      const std::size_t count = header.take({scratch.data(), seen.bytes});
      stream_.read_raw(scratch.data(), count);
      if (header.at() == proxy_header::state::done) break;
      if (header.at() == proxy_header::state::more) continue;
      of_->refused("proxy_header_malformed");
      co_return false;
    }
    if (seen.state == byte_stream::state::end) co_return false;
    const got woken = co_await wait(seen.state, until);
    if (woken == got::bytes) continue;
    if (woken == got::timed_out) of_->refused("proxy_header_timeout");
    co_return false;
  }
  if (header.source()) peer_ = *header.source();
  co_return true;
}

awaitable<bool> session::shake_hands(time_point until) {
  // Nothing is set up for a connection that says nothing.
  const got first = co_await wait(asio::socket_base::wait_read, until);
  if (first == got::timed_out) of_->refused("tls_timeout");
  if (first != got::bytes) co_return false;
  stream_.start_tls(*options_->tls);
  for (;;) {
    const auto step = stream_.handshake();
    if (step.state == byte_stream::state::done) co_return true;
    if (step.state == byte_stream::state::end) {
      const std::string_view reason = stream_.handshake_failure();
      of_->refused(reason);
      if (reason == "tls_plain_http") {
        error_code ignored;
        stream_.socket().write_some(asio::buffer(plain_http_on_tls), ignored);
      }
      // So that what was said, an alert too, is not destroyed by a reset.
      co_await linger();
      co_return false;
    }
    const got woken = co_await wait(step.state, until);
    if (woken == got::timed_out) of_->refused("tls_timeout");
    if (woken != got::bytes) co_return false;
  }
}

void session::idle(std::unique_ptr<session> self) {
  session& one = *self;
  std::string().swap(one.buffer_);
  one.answered_ = false;
  one.idle_ = true;
  one.timed_out_ = false;
  one.until_ = steady_clock::now() + one.options_->idle_timeout;
  one.stream_.socket().async_wait(asio::socket_base::wait_read, [self = std::move(self)](const error_code& ec) mutable {
    self->idle_ = false;
    self->until_ = time_point::max();
    if (!self->has_request(ec)) return;
    const std::shared_ptr<listener> of = self->of_;
    try {
      of->spawn(run(std::move(self)));
    } catch (const std::exception& e) {
      log::error("a connection is dropped", {{"listener", of->options->name}, {"what", e.what()}});
    }
  });
}

bool session::has_request(const error_code& waited) {
  if (of_->stopped || (waited && timed_out_)) return false;
  if (!waited && !of_->draining) return true;
  // Draining: what has already arrived is a request in hand.
  error_code ec;
  return stream_.pending() || stream_.socket().available(ec) > 0;
}

awaitable<void> session::run(std::unique_ptr<session> self) {
  for (;;) {
    const bool goes_on = co_await self->serve();
    if (!goes_on || self->of_->draining) break;
    if (self->buffer_.empty() && !self->stream_.pending()) co_return idle(std::move(self));
    // Pipelined. The others come first: one connection must not keep the thread.
    co_await asio::post(self->stream_.socket().get_executor(), asio::use_awaitable);
  }
  if (self->answered_) co_await self->linger();
}

awaitable<void> session::refuse(std::unique_ptr<session> self) {
  context about;
  about.trace_id = observe::new_trace_id();
  about.span_id = observe::new_span_id();
  const problem_context known{.trace_id = about.trace_id};
  const response busy = problem(error(transient::queue_full, "There are too many connections."), known);
  co_await self->answer(busy, about);
  co_await self->linger();
}

awaitable<session::got> session::wait(asio::socket_base::wait_type what, time_point until) {
  until_ = until;
  timed_out_ = false;
  const auto [ec] = co_await stream_.socket().async_wait(what, token);
  until_ = time_point::max();
  if (of_->stopped) co_return got::stopped;
  if (!ec) co_return got::bytes;
  co_return timed_out_ ? got::timed_out : got::end;
}

awaitable<session::got> session::wait(byte_stream::state blocked, time_point until) {
  const bool to_write = blocked == byte_stream::state::want_write;
  return wait(to_write ? asio::socket_base::wait_write : asio::socket_base::wait_read, until);
}

awaitable<session::got> session::fill(std::size_t most, time_point until) {
  auto& scratch = of_->shared.scratch;
  for (;;) {
    const auto read = stream_.read_some(scratch.data(), std::min(most, scratch.size()));
    if (read.state == byte_stream::state::done) {
      buffer_.append(scratch.data(), read.bytes);
      co_return steady_clock::now() < until ? got::bytes : got::timed_out;
    }
    if (read.state == byte_stream::state::end) co_return got::end;
    const got woken = co_await wait(read.state, until);
    if (woken != got::bytes) co_return woken;
  }
}

awaitable<bool> session::write(std::string_view head, std::string_view body) {
  std::string joined;
  if (stream_.tls() && !body.empty() && head.size() + body.size() <= record_most) {
    // One record, and one packet.
    joined.append(head).append(body);
    head = joined;
    body = {};
  }
  while (!head.empty() || !body.empty()) {
    const auto written = stream_.write_some(head, body);
    if (written.state == byte_stream::state::end) co_return false;
    if (written.state == byte_stream::state::done) {
      const std::size_t of_head = std::min(written.bytes, head.size());
      head.remove_prefix(of_head);
      body.remove_prefix(written.bytes - of_head);
      continue;
    }
    const got woken = co_await wait(written.state, steady_clock::now() + options_->body_timeout);
    if (woken != got::bytes) co_return false;
  }
  co_return true;
}

awaitable<bool> session::answer(const response& what, const context& about) {
  const observe::trace_parent trace{about.trace_id, about.span_id, static_cast<std::uint8_t>(about.flags)};
  const std::string trace_text = observe::make_traceparent(trace);
  const bool keep = about.keep && !what.close && !of_->draining && !of_->leaving;
  const answer_frame frame{of_->shared.date(), about.trace_id, trace_text, about.http_1_0, keep};
  const std::string head = head_of(what, frame);
  answered_ = true;
  of_->answered(what.status);
  const bool sent = co_await write(head, about.head_only || !may_have_body(what.status) ? std::string_view() : what.body);
  if (!sent) co_return false;
  co_return keep;
}

awaitable<bool> session::refuse(const refusal& why, context about) {
  about.keep = false;
  const problem_context known{.trace_id = about.trace_id};
  const response refused = problem(why.status, why.code, why.detail, known);
  log::debug("request refused",
             {{"listener", options_->name}, {"status", why.status}, {"code", why.code}, {"trace_id", about.trace_id}});
  co_return co_await answer(refused, about);
}

void session::describe(request& head, context& about) {
  about.trace_id.clear();
  if (count_header(head.headers, "traceparent") == 1) {
    if (auto parent = observe::parse_traceparent(*find_header(head.headers, "traceparent"))) {
      about.trace_id = std::move(parent->trace_id);
      about.flags = parent->flags;
    }
  }
  if (about.trace_id.empty()) about.trace_id = observe::new_trace_id();
  about.span_id = observe::new_span_id();
  head.trace_id = about.trace_id;
  head.span_id = about.span_id;
  client_view client = view_client(peer_, head.headers, options_->trusted_proxies, options_->forwarded);
  head.peer = to_string(client.address);
  head.origin = std::move(client.origin);
  about.head_only = head.method == "HEAD";
}

awaitable<bool> session::serve() {
  const reader::limits bounds{options_->header_limit, options_->body_limit};
  reader from(bounds);
  context about;
  request& whole = from.request();
  whole.arrived = steady_clock::now();

  const time_point head_until = whole.arrived + options_->header_timeout;
  from.read_head(buffer_);
  while (from.at() == reader::state::head) {
    // No more than the head may have: what a connection holds unasked stays small.
    const got arrived = co_await fill(options_->header_limit + 1 - std::min(buffer_.size(), options_->header_limit), head_until);
    if (arrived == got::end || arrived == got::stopped) co_return false;
    if (arrived == got::timed_out) {
      if (buffer_.empty()) co_return false;
      describe(whole, about);
      const refusal slow{408, "request_timeout", "The head of the request took too long to arrive."};
      co_return co_await refuse(slow, about);
    }
    from.read_head(buffer_);
  }
  describe(whole, about);
  if (from.at() == reader::state::refused) co_return co_await refuse(from.reason(), about);
  about.http_1_0 = from.http_1_0();
  about.keep = from.keep_alive();

  if (const std::optional<response> early = judge(whole)) {
    const bool small = from.at() == reader::state::done || (from.content_length() && *from.content_length() <= skipped_body_most);
    about.keep = about.keep && small && !(from.expects_continue() && from.at() == reader::state::body);
    const bool kept = co_await answer(*early, about);
    if (!kept) co_return false;
    co_return co_await skip_body(from);
  }

  reservation held(of_->shared, options_->in_flight_limit);
  if (from.at() == reader::state::body) {
    const bool complete = co_await read_body(from, held, about);
    if (!complete) co_return false;
  }
  const response result = co_await handle(whole);
  if (of_->stopped) co_return false;
  co_return co_await answer(result, about);
}

// True when the body is complete; otherwise whoever had to be told has been.
awaitable<bool> session::read_body(reader& from, reservation& held, context& about) {
  const auto length = from.content_length();
  const std::size_t announced = length ? static_cast<std::size_t>(std::min<std::uint64_t>(*length, options_->body_limit)) : 0;
  const auto full = [&] { return refusal{503, "unavailable", "Too many bytes are in flight."}; };
  // Refuses a body over the limit before it is asked for, and reads what has come with the head.
  from.read_body(buffer_);
  if (from.at() != reader::state::refused && !held.fits(announced)) {
    const refusal busy = full();
    co_return co_await refuse(busy, about);
  }
  if (from.at() == reader::state::body && from.expects_continue() && buffer_.empty() && from.received() == 0) {
    const bool asked = co_await write("HTTP/1.1 100 Continue\r\n\r\n", {});
    if (!asked) co_return false;
  }
  const time_point until = steady_clock::now() + options_->body_timeout;
  for (;;) {
    if (from.at() == reader::state::refused) co_return co_await refuse(from.reason(), about);
    const auto received = static_cast<std::size_t>(from.received());
    const std::size_t wanted = length ? std::min(announced, std::max(first_step, 2 * received)) : received;
    if (!held.cover(wanted)) {
      const refusal busy = full();
      co_return co_await refuse(busy, about);
    }
    if (from.at() == reader::state::done) co_return true;
    from.request().body.reserve(held.held());
    // Of a known length, what follows is the next request's: it stays in the socket.
    const got arrived = co_await fill(length ? announced - received : first_step, until);
    if (arrived == got::end || arrived == got::stopped) co_return false;
    if (arrived == got::timed_out) {
      const refusal slow{408, "request_timeout", "The body of the request took too long to arrive."};
      co_return co_await refuse(slow, about);
    }
    from.read_body(buffer_);
  }
}

std::optional<response> session::judge(const request& head) {
  try {
    return of_->behind->refuse_early(head);
  } catch (...) {
    return fault(head, std::current_exception());
  }
}

awaitable<response> session::handle(request& whole) {
  response result;
  std::exception_ptr failure;
  try {
    result = co_await of_->behind->handle(whole);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure) result = fault(whole, failure);
  co_return result;
}

// The last catch of a request.
response session::fault(const request& of, const std::exception_ptr& failure) {
  std::string what = "not a std::exception";
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& e) {
    what = e.what();
  } catch (...) {
  }
  // Told to stop, a handler ends by an exception as it should.
  if (!of_->stopped) log::error("a handler threw", {{"listener", options_->name}, {"trace_id", of.trace_id}, {"what", what}});
  return problem(error(transient::our_fault, "The request could not be finished."), {.trace_id = of.trace_id});
}

// Reads over the body of a request that has been answered, so that the next one can follow.
awaitable<bool> session::skip_body(reader& from) {
  from.discard_body();
  const time_point until = steady_clock::now() + options_->body_timeout;
  from.read_body(buffer_);
  while (from.at() == reader::state::body) {
    const got arrived = co_await fill(static_cast<std::size_t>(*from.content_length() - from.received()), until);
    if (arrived != got::bytes) co_return false;
    from.read_body(buffer_);
  }
  co_return from.at() == reader::state::done;
}

awaitable<void> session::linger() {
  if (!stream_.shutdown_send()) co_return;
  std::string().swap(buffer_);
  const time_point until = steady_clock::now() + linger_time;
  auto& scratch = of_->shared.scratch;
  for (std::size_t read_over = 0; read_over < linger_bytes;) {
    const auto read = stream_.read_raw(scratch.data(), scratch.size());
    if (read.state == byte_stream::state::done) {
      read_over += read.bytes;
      if (steady_clock::now() >= until) co_return;
      continue;
    }
    if (read.state == byte_stream::state::end) co_return;
    const got woken = co_await wait(read.state, until);
    if (woken != got::bytes) co_return;
  }
}

}  // namespace recibo::http
