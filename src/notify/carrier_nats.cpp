// Publishes to a stream of NATS JetStream (decision 31). The client library blocks, so that it works on threads of its own;
// nothing but finished outcomes comes back to the thread of the lane. Delivered is what the stream has acknowledged.
#include "carrier.hpp"

#include "recibo/async/deadline.hpp"
#include "recibo/notify/message.hpp"

#include <nats/nats.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <mutex>
#include <utility>

namespace recibo::notify {
namespace {

using boost::asio::awaitable;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Also what a drain may have to wait for: a connection that is being made cannot be cut off.
constexpr milliseconds broker_connect_most{3'000}, broker_ping{20'000};
// Threads that wait for acknowledgements, at most; each has one message under way.
constexpr int threads_most = 16;

// Everything that a thread needs, copied: settings may change meanwhile.
struct letter {
  // Where the broker is, by the address that was judged; and as whom.
  std::string url, host, user, ca;
  bool tls = false;
  secret password, token;
  // What.
  std::string subject, id, body;
  http::header_list headers;
  milliseconds timeout{};

  // Letters that may go over one connection.
  bool same_way(const letter& o) const {
    return url == o.url && host == o.host && user == o.user && ca == o.ca && tls == o.tls &&
           password.reveal() == o.password.reveal() && token.reveal() == o.token.reveal();
  }
};

struct options_deleter {
  void operator()(natsOptions* o) const noexcept { natsOptions_Destroy(o); }
};
struct message_deleter {
  void operator()(natsMsg* m) const noexcept { natsMsg_Destroy(m); }
};

// One connection to the broker. Shared by the threads; the library is safe for that.
class session {
 public:
  static std::pair<std::shared_ptr<session>, natsStatus> open(const letter& to);
  ~session() {
    jsCtx_Destroy(js_);
    natsConnection_Destroy(connection_);
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  bool usable() const { return natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED; }
  void close() { natsConnection_Close(connection_); }
  jsCtx* stream() const noexcept { return js_; }
  // The broker answers a message that may not be published by an error of the connection, and never with an acknowledgement.
  bool refused() const {
    const char* text = nullptr;
    return natsConnection_GetLastError(connection_, &text) == NATS_NOT_PERMITTED;
  }

 private:
  session() = default;
  // The library's own prints.
  static void quiet(natsConnection*, natsSubscription*, natsStatus, void*) {}

  natsConnection* connection_ = nullptr;
  jsCtx* js_ = nullptr;
};

std::pair<std::shared_ptr<session>, natsStatus> session::open(const letter& to) {
  const std::shared_ptr<session> made(new session);
  natsOptions* raw = nullptr;
  natsStatus status = natsOptions_Create(&raw);
  const std::unique_ptr<natsOptions, options_deleter> how(raw);
  const auto set = [&](auto&& one) {
    if (status == NATS_OK) status = one(how.get());
  };
  set([&](natsOptions* o) { return natsOptions_SetURL(o, to.url.c_str()); });
  set([](natsOptions* o) { return natsOptions_SetName(o, "recibo"); });
  set([&](natsOptions* o) { return natsOptions_SetTimeout(o, std::min(broker_connect_most, to.timeout).count()); });
  set([](natsOptions* o) { return natsOptions_SetPingInterval(o, broker_ping.count()); });
  // Another address is judged by us before anybody connects to it.
  set([](natsOptions* o) { return natsOptions_SetAllowReconnect(o, false); });
  set([](natsOptions* o) { return natsOptions_SetErrorHandler(o, quiet, nullptr); });
  if (to.tls) {
    set([](natsOptions* o) { return natsOptions_SetSecure(o, true); });
    set([&](natsOptions* o) { return natsOptions_SetExpectedHostname(o, to.host.c_str()); });
    if (!to.ca.empty()) set([&](natsOptions* o) { return natsOptions_SetCATrustedCertificates(o, to.ca.c_str()); });
  }
  const std::string password(to.password.reveal()), token(to.token.reveal());
  if (!to.user.empty()) set([&](natsOptions* o) { return natsOptions_SetUserInfo(o, to.user.c_str(), password.c_str()); });
  if (!token.empty()) set([&](natsOptions* o) { return natsOptions_SetToken(o, token.c_str()); });
  set([&](natsOptions* o) { return natsConnection_Connect(&made->connection_, o); });
  if (status == NATS_OK) status = natsConnection_JetStream(&made->js_, made->connection_, nullptr);
  if (status != NATS_OK) return {nullptr, status};
  return {made, NATS_OK};
}

judgement judge_connection(natsStatus why) {
  switch (why) {
    case NATS_CONNECTION_AUTH_FAILED: return {verdict::unauthorized, "unauthorized", false, {}};
    case NATS_SSL_ERROR:
    case NATS_SECURE_CONNECTION_WANTED:
    case NATS_SECURE_CONNECTION_REQUIRED: return {verdict::again, "tls_failed", true, {}};
    default: return {verdict::again, "connect_failed", true, {}};
  }
}

judgement judge_publication(natsStatus why, jsErrCode code) {
  switch (why) {
    case NATS_OK: return {verdict::delivered, "delivered", true, {}};
    case NATS_NOT_PERMITTED:
    case NATS_CONNECTION_AUTH_FAILED: return {verdict::unauthorized, "unauthorized", false, {}};
    case NATS_MAX_PAYLOAD: return {verdict::never, "too_large", false, {}};
    case NATS_INVALID_SUBJECT: return {verdict::never, "malformed_field", false, {}};
    // Nobody keeps what is published there; a stream may be made for it.
    case NATS_NO_RESPONDERS: return {verdict::again, "no_stream", true, {}};
    case NATS_NO_SERVER_SUPPORT: return {verdict::again, "no_stream", true, {}};
    default: break;
  }
  if (code == JSStreamMessageExceedsMaximumErr) return {verdict::never, "too_large", false, {}};
  if (code == JSInsufficientResourcesErr || code == JSStreamStoreFailedErr) return {verdict::again, "over_limit", true, {}};
  if (code != 0) return {verdict::again, "server_error", true, {}};
  return {verdict::again, "answer_unknown", true, {}};
}

// What the threads share: the one connection, and whether it is over.
class broker {
 public:
  sent publish(const letter& what);
  void stop() {
    const std::lock_guard held(lock_);
    stopped_ = true;
    if (session_) session_->close();
  }

 private:
  std::pair<std::shared_ptr<session>, natsStatus> session_for(const letter& what) {
    // Who comes while one connects waits for it, on its own thread.
    const std::lock_guard held(lock_);
    if (stopped_) return {nullptr, NATS_CONNECTION_CLOSED};
    if (session_ && session_->usable() && what.same_way(way_)) return {session_, NATS_OK};
    session_.reset();
    auto opened = session::open(what);
    session_ = opened.first;
    way_ = what;
    way_.body.clear();
    return opened;
  }

  std::mutex lock_;
  std::shared_ptr<session> session_;
  letter way_;
  bool stopped_ = false;
};

sent broker::publish(const letter& what) {
  sent out;
  const auto [over, connected] = session_for(what);
  if (!over) {
    out.judged = judge_connection(connected);
    out.excerpt = excerpt_of(natsStatus_GetText(connected));
    return out;
  }
  natsMsg* raw = nullptr;
  natsStatus status = natsMsg_Create(&raw, what.subject.c_str(), nullptr, what.body.data(), static_cast<int>(what.body.size()));
  const std::unique_ptr<natsMsg, message_deleter> message(raw);
  for (const auto& [name, value] : what.headers)
    if (status == NATS_OK) status = natsMsgHeader_Set(message.get(), name.c_str(), value.c_str());
  jsPubOptions how;
  jsPubOptions_Init(&how);
  how.MaxWait = what.timeout.count();
  how.MsgId = what.id.c_str();
  jsErrCode code{};
  // The acknowledgement may say that the stream had it already: that is delivered too.
  if (status == NATS_OK) status = js_PublishMsg(nullptr, over->stream(), message.get(), &how, &code);
  if (status == NATS_TIMEOUT && over->refused()) {
    status = NATS_NOT_PERMITTED;
    over->close();  // the error stays with the connection
  }
  out.judged = judge_publication(status, code);
  if (out.judged.what != verdict::delivered) out.excerpt = excerpt_of(natsStatus_GetText(status));
  return out;
}

class nats_carrier final : public carrier {
 public:
  nats_carrier(boost::asio::any_io_executor executor, const config::snapshot& settings)
      : executor_(std::move(executor)), settings_(settings), broker_(std::make_shared<broker>()) {}
  ~nats_carrier() override { broker_->stop(); }

  awaitable<sent> send(const config::destination& to, parcel one) override;
  void stop() override { broker_->stop(); }

 private:
  // What a thread says when it is done. Shared, because either may go first.
  struct flight {
    explicit flight(const boost::asio::any_io_executor& executor) : landed(executor, steady_clock::time_point::max()) {}
    boost::asio::steady_timer landed;
    std::optional<sent> outcome;
  };

  awaitable<result<ip_bytes>> place(const config::destination& to);

  boost::asio::any_io_executor executor_;
  const config::snapshot& settings_;
  std::shared_ptr<broker> broker_;
  std::shared_ptr<http::name_resolver> resolver_;
  // Ended, and waited for, before what they use.
  std::unique_ptr<boost::asio::thread_pool> threads_;
};

// The first address that may be reached: the rules of all that goes out (decision 21).
awaitable<result<ip_bytes>> nats_carrier::place(const config::destination& to) {
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
  for (const auto& one : all)
    if (may_reach(one, to.allow_networks)) co_return one;
  co_return error(permanent::address_refused, host + " leads to an address that may not be reached.");
}

awaitable<sent> nats_carrier::send(const config::destination& to, parcel one) {
  sent out;
  auto headers = headers_of(one.what, one.body, to.keys, recibo::now());
  if (!headers) {
    out.judged = {verdict::again, "no_valid_secret", false, {}};
    co_return out;
  }
  auto placing = place(to);
  const auto at = co_await std::move(placing);
  if (!at) {
    out.judged = judge(at.error());
    out.excerpt = excerpt_of(at.error().detail);
    co_return out;
  }
  const auto settings = settings_.get();
  letter what;
  const auto gateway = settings->outbound.connect_to.find(to.parsed_url.host);
  const bool moved = gateway != settings->outbound.connect_to.end() && gateway->second.port != 0;
  const std::string address = to_string(*at);
  what.url = std::string(to.parsed_url.tls ? "tls://" : "nats://") +
             (address.find(':') == std::string::npos ? address : '[' + address + ']') + ':' +
             std::to_string(moved ? gateway->second.port : to.parsed_url.port);
  what.host = to.parsed_url.host;
  what.tls = to.parsed_url.tls;
  what.ca = settings->outbound.ca;
  what.user = to.nats->user;
  what.password = to.nats->password;
  what.token = to.nats->token;
  what.subject = subject_of(to.nats->subject, one.what.type, one.provider, one.request_id);
  what.id = to_string(one.what.id);
  what.headers = std::move(*headers);
  what.body = std::move(one.body);
  what.timeout = to.timeout;
  if (!threads_)
    threads_ = std::make_unique<boost::asio::thread_pool>(static_cast<std::size_t>(std::min(to.concurrency, threads_most)));
  const auto flying = std::make_shared<flight>(executor_);
  boost::asio::post(*threads_, [flying, over = broker_, back = executor_, letter = std::move(what)] {
    auto came = over->publish(letter);
    boost::asio::post(back, [flying, came = std::move(came)]() mutable {
      flying->outcome = std::move(came);
      flying->landed.cancel();
    });
  });
  while (!flying->outcome) {
    co_await flying->landed.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    const auto state = co_await boost::asio::this_coro::cancellation_state;
    if (state.cancelled() != boost::asio::cancellation_type::none) break;
  }
  if (flying->outcome) {
    out = std::move(*flying->outcome);
  } else {
    out.judged = {verdict::again, "answer_unknown", true, {}};
  }
  co_return out;
}

}  // namespace

std::unique_ptr<carrier> make_nats_carrier(boost::asio::any_io_executor executor, const config::snapshot& settings) {
  return std::make_unique<nats_carrier>(std::move(executor), settings);
}

}  // namespace recibo::notify
