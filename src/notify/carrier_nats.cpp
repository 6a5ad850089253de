// Publishes to a stream of NATS JetStream (decision 31). The client library blocks, so that it works on threads of its own;
// nothing but finished outcomes comes back to the thread of the lane. Delivered is what the stream has acknowledged.
#include "broker.hpp"
#include "carrier.hpp"
#include "crew.hpp"

#include "recibo/async/deadline.hpp"
#include "recibo/notify/message.hpp"
#include "recibo/observe/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace recibo::notify {
namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Threads that wait for acknowledgements, at most; each has one message under way.
constexpr std::size_t threads_most = 16;
// How often it is looked whether the threads have gone.
constexpr milliseconds threads_look{10};

// Where an outcome comes down. The thread that brings it may come after everybody has left, so that it holds nothing of theirs.
class landing : public std::enable_shared_from_this<landing> {
 public:
  // `timer` is awaited by whoever holds on until leave().
  landing(const boost::asio::any_io_executor& back, boost::asio::steady_timer& timer) : back_(back), timer_(&timer) {}

  // From any thread.
  void bring(sent came) {
    const std::lock_guard held(lock_);
    if (!back_) return;
    boost::asio::post(*back_, [self = shared_from_this(), came = std::move(came)]() mutable {
      if (self->timer_ == nullptr) return;
      self->outcome = std::move(came);
      self->timer_->cancel();
    });
  }
  // On the lane's thread.
  void leave() {
    const std::lock_guard held(lock_);
    back_.reset();
    timer_ = nullptr;
  }
  std::optional<sent> outcome;

 private:
  std::mutex lock_;
  std::optional<boost::asio::any_io_executor> back_;
  boost::asio::steady_timer* timer_;
};

class nats_carrier final : public carrier {
 public:
  nats_carrier(boost::asio::any_io_executor executor, const config::snapshot& settings)
      : executor_(std::move(executor)), settings_(settings), broker_(std::make_shared<broker>()) {}
  ~nats_carrier() override { stop(); }

  awaitable<sent> send(const config::destination& to, parcel one) override;
  void stop() override;
  awaitable<void> wait(steady_clock::time_point until) override;

 private:
  awaitable<result<std::vector<ip_bytes>>> places(const config::destination& to);

  boost::asio::any_io_executor executor_;
  const config::snapshot& settings_;
  std::shared_ptr<broker> broker_;
  std::shared_ptr<http::name_resolver> resolver_;
  std::unique_ptr<crew> threads_;
  bool stopped_ = false;
};

void nats_carrier::stop() {
  if (std::exchange(stopped_, true)) return;
  broker_->stop();
  if (!threads_) return;
  // The last of the connection goes there too.
  threads_->add_apart([over = std::move(broker_)] { over->close(); });
  threads_->end();
}

awaitable<void> nats_carrier::wait(steady_clock::time_point until) {
  boost::asio::steady_timer timer(executor_);
  while (threads_ && threads_->live() > 0 && steady_clock::now() < until) {
    timer.expires_after(threads_look);
    co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  }
  if (threads_ && threads_->live() > 0) log::warn("a broker does not let go: its connection is left behind");
}

// The addresses that may be reached: the rules of all that goes out (decision 21).
awaitable<result<std::vector<ip_bytes>>> nats_carrier::places(const config::destination& to) {
  const auto settings = settings_.get();
  const std::string& host = to.parsed_url.host;
  std::vector<ip_bytes> all;
  if (const auto literal = parse_ip(host)) {
    all.push_back(*literal);
  } else if (const auto at = settings->outbound.connect_to.find(host); at != settings->outbound.connect_to.end()) {
    all.push_back(at->second.address);
  } else {
    if (!resolver_) resolver_ = http::make_system_resolver(executor_);
    auto asking = resolver_->resolve(host);
    auto found = co_await async::with_deadline(std::move(asking), steady_clock::now() + broker_connect_most);
    if (!found) co_return error(transient::resolve_failed, "There is no address for " + host + ".");
    all = std::move(*found);
  }
  std::erase_if(all, [&](const ip_bytes& one) { return !may_reach(one, to.allow_networks); });
  if (!all.empty()) co_return all;
  co_return error(permanent::address_refused, host + " leads to an address that may not be reached.");
}

awaitable<sent> nats_carrier::send(const config::destination& to, parcel one) {
  sent out;
  auto headers = headers_of(one.what, one.body, to.keys, recibo::now());
  if (!headers) {
    out.judged = {verdict::unsigned_now, "no_valid_secret", false, {}};
    out.unsent = true;
    co_return out;
  }
  auto placing = places(to);
  const auto at = co_await std::move(placing);
  if (!at) {
    out.judged = judge(at.error());
    out.unsent = !out.judged.theirs;
    out.excerpt = excerpt_of_ours(at.error().detail);
    co_return out;
  }
  const auto settings = settings_.get();
  letter what;
  const auto gateway = settings->outbound.connect_to.find(to.parsed_url.host);
  const bool moved = gateway != settings->outbound.connect_to.end() && gateway->second.port != 0;
  what.addresses = *at;
  what.port = moved ? gateway->second.port : to.parsed_url.port;
  what.host = to.parsed_url.host;
  what.tls = to.parsed_url.tls;
  what.ca = settings->outbound.ca;
  what.user = to.nats->user;
  what.password = to.nats->password;
  what.token = to.nats->token;
  what.jwt = to.nats->jwt;
  what.seed = to.nats->seed;
  what.subject = subject_of(to.nats->subject, one.what.type, one.provider, one.request_id);
  what.id = to_string(one.what.id);
  what.headers = std::move(*headers);
  what.body = std::move(one.body);
  what.timeout = to.timeout;
  if (stopped_) {
    out.judged = {verdict::again, "connect_failed", true, {}};
    co_return out;
  }
  if (!threads_)
    threads_ = std::make_unique<crew>(std::min(static_cast<std::size_t>(to.concurrency), threads_most), nats_ReleaseThreadMemory);
  // A thread that hangs is not waited for any longer than one that works may take.
  what.begin_by = steady_clock::now() + broker_connect_most + std::chrono::seconds(1);
  boost::asio::steady_timer timer(executor_, what.begin_by + to.timeout);
  const auto flight = std::make_shared<landing>(executor_, timer);
  struct departure {
    landing& from;
    ~departure() { from.leave(); }
  };
  const departure mine{*flight};
  threads_->add([flight, over = broker_, letter = std::move(what)] { flight->bring(over->publish(letter)); });
  if (!flight->outcome) co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
  if (flight->outcome) {
    out = std::move(*flight->outcome);
  } else {
    out.judged = {verdict::again, "answer_unknown", true, {}};
    if (threads_ && !stopped_) threads_->add_apart([over = broker_] { over->cut(); });
  }
  co_return out;
}

}  // namespace

std::unique_ptr<carrier> make_nats_carrier(boost::asio::any_io_executor executor, const config::snapshot& settings) {
  return std::make_unique<nats_carrier>(std::move(executor), settings);
}

}  // namespace recibo::notify
