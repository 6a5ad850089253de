#include "recibo/http/client.hpp"

#include "answer_reader.hpp"
#include "idle_links.hpp"
#include "link.hpp"
#include "outbound_head.hpp"
#include "trust.hpp"

#include "recibo/async/deadline.hpp"

#include <boost/asio/error.hpp>
#include <boost/asio/steady_timer.hpp>

#include <algorithm>

namespace recibo::http {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using boost::system::error_code;
using std::chrono::steady_clock;
using link_ptr = std::unique_ptr<link>;

// What became of one attempt on one connection.
struct attempt {
  result<outbound_answer> got;
  bool keep = false;    // the connection is good for more
  bool silent = false;  // it ended, by itself, before a single byte of an answer
};

bool may_repeat(const outbound_request& what) { return what.repeatable || what.method == "GET" || what.method == "HEAD"; }

// `wire` outlives the await.
awaitable<attempt> converse(link& with, const std::string& wire, bool to_head, answer_reader::limits bounds) {
  attempt out;
  const auto sent = co_await with.write(wire);
  out.got = error(uncertain::answer_unknown, "The request was cut off.");
  if (sent.code == asio::error::operation_aborted) co_return out;
  // A server may answer, and hang up, before it has read everything: what it said is still to be read.
  answer_reader from(bounds, to_head);
  std::string buffer;
  bool any = false;
  while (from.at() != answer_reader::state::done && from.at() != answer_reader::state::refused) {
    const auto come = co_await with.read(buffer);
    any = any || come.bytes > 0;
    from.read(buffer);
    if (!come.code) continue;
    if (come.code == asio::error::operation_aborted && from.at() != answer_reader::state::done) {
      out.got = error(uncertain::answer_unknown, "The answer did not come in time.");
      // Who wants the status only has it.
      if (from.at() != answer_reader::state::body || !bounds.cut_body) co_return out;
    }
    from.end(come.code == asio::error::eof);
  }
  if (from.at() == answer_reader::state::done) {
    out.got = std::move(from.answer());
  } else {
    out.got = from.why();
  }
  out.keep = from.keep_alive() && !sent.code;
  out.silent = !any;
  co_return out;
}

}  // namespace

class client::impl : public std::enable_shared_from_this<client::impl> {
 public:
  using time_point = steady_clock::time_point;

  impl(asio::any_io_executor e, client_options o)
      : executor_(std::move(e)), options_(std::move(o)), idle_(options_), ticker_(executor_) {
    if (!options_.trust) options_.trust = load_tls_trust({}).value();
    if (!options_.resolver) options_.resolver = make_system_resolver(executor_);
  }

  static awaitable<result<outbound_answer>> send(std::shared_ptr<impl> self, outbound_request what, outbound_rules rules);

  void close() {
    closed_ = true;
    idle_.clear();
    ticker_.cancel();
  }
  std::size_t idle() const noexcept { return idle_.size(); }

 private:
  static awaitable<result<outbound_answer>> exchange(std::shared_ptr<impl> self, const outbound_request& what,
                                                     const outbound_rules& rules, const std::string& wire, time_point until);
  awaitable<result<link_ptr>> open(const http_url& url, const outbound_rules& rules, time_point until);
  awaitable<result<std::vector<ip_endpoint>>> places(const http_url& url, const outbound_rules& rules, time_point until);
  void keep(const std::string& origin, link_ptr one, const outbound_rules& rules);
  void tick();

  asio::any_io_executor executor_;
  client_options options_;
  idle_links idle_;
  asio::steady_timer ticker_;
  bool ticking_ = false, closed_ = false;
};

awaitable<result<outbound_answer>> client::impl::send(std::shared_ptr<impl> self, outbound_request what, outbound_rules rules) {
  const auto wire = wire_of(what, rules.plain_http);
  if (!wire) co_return wire.error();
  const time_point until = steady_clock::now() + rules.timeout;
  auto work = exchange(self, what, rules, *wire, until);
  co_return co_await async::with_deadline(std::move(work), until);
}

awaitable<result<outbound_answer>> client::impl::exchange(std::shared_ptr<impl> self, const outbound_request& what,
                                                          const outbound_rules& rules, const std::string& wire,
                                                          time_point until) {
  const std::string origin = what.url.origin();
  const answer_reader::limits bounds{rules.head_limit, rules.body_limit, rules.cut_body};
  const bool to_head = what.method == "HEAD";
  link_ptr with = self->idle_.take(origin, rules.allow, steady_clock::now());
  if (with) {
    attempt first = co_await converse(*with, wire, to_head, bounds);
    if (first.keep) self->keep(origin, std::move(with), rules);
    if (!first.silent || !may_repeat(what)) co_return std::move(first.got);
    with.reset();
  }
  auto opened = co_await self->open(what.url, rules, std::min(until, steady_clock::now() + rules.connect_timeout));
  if (!opened) co_return opened.error();
  with = std::move(*opened);
  attempt only = co_await converse(*with, wire, to_head, bounds);
  if (only.keep) self->keep(origin, std::move(with), rules);
  co_return std::move(only.got);
}

awaitable<result<std::vector<ip_endpoint>>> client::impl::places(const http_url& url, const outbound_rules& rules,
                                                                 time_point until) {
  std::vector<ip_endpoint> all;
  if (const auto literal = parse_ip(url.host)) {
    all.push_back({*literal, url.port});
  } else if (const auto at = options_.connect_to.find(url.host); at != options_.connect_to.end()) {
    all.push_back({at->second.address, at->second.port == 0 ? url.port : at->second.port});
  } else {
    auto asking = options_.resolver->resolve(url.host);
    auto found = co_await async::with_deadline(std::move(asking), until);
    if (!found && found.error().code == transient::deadline_passed)
      co_return error(transient::resolve_failed, "The look-up of " + url.host + " took too long.");
    if (!found) co_return found.error();
    for (const ip_bytes& one : *found) all.push_back({one, url.port});
  }
  if (all.empty()) co_return error(transient::resolve_failed, "There is no address for " + url.host + ".");
  const ip_bytes first = all.front().address;
  std::erase_if(all, [&](const ip_endpoint& one) { return !may_reach(one.address, rules.allow); });
  if (all.empty())
    co_return error(permanent::address_refused, url.host + " leads to " + to_string(first) + ", which may not be reached.");
  // What is not encrypted goes to nobody but those who were named.
  if (!url.tls) std::erase_if(all, [&](const ip_endpoint& one) { return !contains(rules.allow, one.address); });
  if (all.empty())
    co_return error(permanent::address_refused,
                    url.host + " leads to " + to_string(first) + ", and plain http only to what was allowed by name.");
  co_return all;
}

awaitable<result<link_ptr>> client::impl::open(const http_url& url, const outbound_rules& rules, time_point until) {
  const auto to = co_await places(url, rules, until);
  if (!to) co_return to.error();
  link_ptr made;
  error last(transient::connect_failed, "No connection to " + url.host + ".");
  for (std::size_t i = 0; i < to->size() && !made; ++i) {
    // An address that is silent must leave time for the next.
    const auto now = steady_clock::now();
    if (now >= until) break;
    auto one = std::make_unique<link>(executor_);
    auto connecting = one->connect((*to)[i].address, (*to)[i].port);
    const auto slice = now + (until - now) / static_cast<int>(to->size() - i);
    const auto connected = co_await async::with_deadline(std::move(connecting), slice);
    if (connected) {
      made = std::move(one);
    } else if (connected.error().code == transient::deadline_passed) {
      last = error(transient::connect_failed, "No connection to " + to_string((*to)[i].address) + " in time.");
    } else {
      last = connected.error();
    }
  }
  if (!made) co_return last;
  if (!url.tls) co_return std::move(made);
  auto securing = made->secure(*options_.trust, url.host);
  const auto secured = co_await async::with_deadline(std::move(securing), until);
  if (secured) co_return std::move(made);
  if (secured.error().code == transient::deadline_passed)
    co_return error(transient::tls_failed, "TLS with " + url.host + " was not established in time.");
  co_return secured.error();
}

void client::impl::keep(const std::string& origin, link_ptr one, const outbound_rules& rules) {
  if (closed_) return;
  idle_.put(origin, std::move(one), steady_clock::now(), rules.keep_idle);
  if (idle_.size() > 0 && !ticking_) tick();
}

void client::impl::tick() {
  ticking_ = true;
  ticker_.expires_after(std::clamp(options_.idle_timeout / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(5'000)));
  ticker_.async_wait([weak = weak_from_this()](const error_code&) {
    const auto self = weak.lock();
    if (!self) return;
    self->ticking_ = false;
    self->idle_.expire(steady_clock::now());
    // Without connections there is nothing to wait for; the context may run dry.
    if (self->idle_.size() > 0) self->tick();
  });
}

client::client(asio::any_io_executor executor, client_options options)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(options))) {}

client::~client() { impl_->close(); }

awaitable<result<outbound_answer>> client::send(outbound_request what, outbound_rules rules) {
  return impl::send(impl_, std::move(what), std::move(rules));
}

std::size_t client::idle() const noexcept { return impl_->idle(); }
void client::close_idle() { impl_->close(); }

}  // namespace recibo::http
