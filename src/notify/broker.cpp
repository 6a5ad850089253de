#include "broker.hpp"

#include "recibo/core/ascii.hpp"
#include "recibo/notify/message.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/crypto.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>

namespace recibo::notify {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Who failed to connect is left alone for a moment, by everybody.
constexpr milliseconds broker_connect_pause{500}, broker_connect_least{500}, broker_ping{20'000};
// One that has not come back by then never will.
constexpr std::chrono::seconds broker_connect_lost{5};

// The library gives no handle to a connection before it is made. So it is found among our sockets, by its peer.
std::set<int> sockets_to(const ip_bytes& address, std::uint16_t port) {
  std::set<int> out;
  std::error_code failed;
  for (std::filesystem::directory_iterator at("/proc/self/fd", failed), end; !failed && at != end; at.increment(failed)) {
    const std::string name = at->path().filename();
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    char text[INET6_ADDRSTRLEN] = {};
    std::uint16_t peer_port = 0;
    if (peer.ss_family == AF_INET) {
      const auto& four = reinterpret_cast<const sockaddr_in&>(peer);
      ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
      peer_port = ntohs(four.sin_port);
    } else if (peer.ss_family == AF_INET6) {
      const auto& six = reinterpret_cast<const sockaddr_in6&>(peer);
      ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
      peer_port = ntohs(six.sin6_port);
    }
    if (peer_port == port && parse_ip(text) == address) out.insert(fd);
  }
  return out;
}

struct options_deleter {
  void operator()(natsOptions* o) const noexcept { natsOptions_Destroy(o); }
};
struct message_deleter {
  void operator()(natsMsg* m) const noexcept { natsMsg_Destroy(m); }
};
struct acknowledgement_deleter {
  void operator()(jsPubAck* a) const noexcept { jsPubAck_Destroy(a); }
};

bool is_of_a_stream(const jsPubAck* a) noexcept {
  return a != nullptr && a->Stream != nullptr && *a->Stream != '\0' && a->Sequence > 0;
}

// What the broker has refused over one connection. It says so by an error of the connection that names the subject, at a time of
// its own, and never by an acknowledgement: so each publication that is under way is asked for by its subject.
class refusals {
 public:
  struct publication {
    std::string subject, refused;  // in the broker's words
  };
  void begin(publication& one) {
    const std::lock_guard held(lock_);
    under_way_.insert(&one);
  }
  // Who is refused as a whole: no acknowledgement can come over this connection.
  std::string end(publication& one) {
    const std::lock_guard held(lock_);
    under_way_.erase(&one);
    return one.refused.empty() ? deaf_ : one.refused;
  }
  bool deaf() const {
    const std::lock_guard held(lock_);
    return !deaf_.empty();
  }
  // "Permissions Violation for Publish to \"subject\"". Source: nats-server, client.go.
  void heard(std::string_view text) {
    constexpr std::string_view publish = "publish to \"", subscription = "subscription to \"";
    const std::string lower_text = lower(text);
    const std::lock_guard held(lock_);
    if (lower_text.find(subscription) != std::string::npos) deaf_ = text;
    const auto at = lower_text.find(publish);
    if (at == std::string::npos) return;
    const auto begin = at + publish.size(), end = text.find('"', begin);
    const auto subject = text.substr(begin, end == std::string_view::npos ? end : end - begin);
    for (auto* one : under_way_)
      if (one->subject == subject) one->refused = text;
  }

 private:
  mutable std::mutex lock_;
  std::set<publication*> under_way_;
  std::string deaf_;
};

// The library tells errors to a function, on a thread of its own, perhaps after the connection has gone here: so by its address,
// which is nobody else's before that.
class known_connections {
 public:
  void add(natsConnection* of, std::shared_ptr<refusals> to) {
    const std::lock_guard held(lock_);
    all_[of] = std::move(to);
  }
  void remove(natsConnection* of) {
    const std::lock_guard held(lock_);
    all_.erase(of);
  }
  std::shared_ptr<refusals> find(natsConnection* of) {
    const std::lock_guard held(lock_);
    const auto it = all_.find(of);
    return it == all_.end() ? nullptr : it->second;
  }
  // Never destroyed: the library's threads may outlive main().
  static known_connections& all() {
    static auto* const one = new known_connections;
    return *one;
  }

 private:
  std::mutex lock_;
  std::map<natsConnection*, std::shared_ptr<refusals>> all_;
};

// Who we are by a JWT and the key that it names. The library frees what it is given.
struct identity {
  std::string jwt, seed;

  static natsStatus name(char** jwt, char**, void* of) {
    *jwt = ::strdup(static_cast<identity*>(of)->jwt.c_str());
    return *jwt == nullptr ? NATS_NO_MEMORY : NATS_OK;
  }
  static natsStatus sign(char**, unsigned char** signature, int* length, const char* nonce, void* of) {
    return nats_Sign(static_cast<identity*>(of)->seed.c_str(), nonce, signature, length);
  }
};

}  // namespace

// One connection to the broker. Shared by the threads; the library is safe for that. Made, used and ended on those threads alone:
// each of that may block.
class nats_session {
 public:
  // `within`: how long it may take, where the library keeps to it.
  static std::pair<std::shared_ptr<nats_session>, natsStatus> open(const letter& to, const ip_bytes& address,
                                                                   milliseconds within);
  ~nats_session() {
    jsCtx_Destroy(js_);
    known_connections::all().remove(connection_);
    natsConnection_Destroy(connection_);
    OPENSSL_cleanse(who_.seed.data(), who_.seed.size());
  }
  nats_session(const nats_session&) = delete;
  nats_session& operator=(const nats_session&) = delete;

  bool usable() const { return natsConnection_Status(connection_) == NATS_CONN_STATUS_CONNECTED && !refused_->deaf(); }
  void close() { natsConnection_Close(connection_); }
  jsCtx* stream() const noexcept { return js_; }
  refusals& refused() const noexcept { return *refused_; }

 private:
  nats_session() = default;
  // The library's own prints.
  static void heard(natsConnection* of, natsSubscription*, natsStatus status, void*) {
    if (status != NATS_NOT_PERMITTED) return;
    const auto to = known_connections::all().find(of);
    if (!to) return;
    // The error of this very call, else the connection's last one.
    const char* text = nats_GetLastError(nullptr);
    if (text == nullptr || *text == 0) natsConnection_GetLastError(of, &text);
    if (text != nullptr) to->heard(text);
  }

  identity who_;
  natsConnection* connection_ = nullptr;
  jsCtx* js_ = nullptr;
  const std::shared_ptr<refusals> refused_ = std::make_shared<refusals>();
};

std::pair<std::shared_ptr<nats_session>, natsStatus> nats_session::open(const letter& to, const ip_bytes& address,
                                                                        milliseconds within) {
  const std::string text = to_string(address);
  const std::string url = std::string(to.tls ? "tls://" : "nats://") +
                          (text.find(':') == std::string::npos ? text : '[' + text + ']') + ':' + std::to_string(to.port);
  const std::shared_ptr<nats_session> made(new nats_session);
  natsOptions* raw = nullptr;
  natsStatus status = natsOptions_Create(&raw);
  const std::unique_ptr<natsOptions, options_deleter> how(raw);
  const auto set = [&](auto&& one) {
    if (status == NATS_OK) status = one(how.get());
  };
  set([&](natsOptions* o) { return natsOptions_SetURL(o, url.c_str()); });
  set([](natsOptions* o) { return natsOptions_SetName(o, "recibo"); });
  set([&](natsOptions* o) { return natsOptions_SetTimeout(o, within.count()); });
  set([&](natsOptions* o) { return natsOptions_SetWriteDeadline(o, to.timeout.count()); });
  set([](natsOptions* o) { return natsOptions_SetPingInterval(o, broker_ping.count()); });
  // Another address is judged by us before anybody connects to it.
  set([](natsOptions* o) { return natsOptions_SetAllowReconnect(o, false); });
  set([](natsOptions* o) { return natsOptions_SetErrorHandler(o, heard, nullptr); });
  if (to.tls) {
    set([](natsOptions* o) { return natsOptions_SetSecure(o, true); });
    set([&](natsOptions* o) { return natsOptions_SetExpectedHostname(o, to.host.c_str()); });
    if (!to.ca.empty()) set([&](natsOptions* o) { return natsOptions_SetCATrustedCertificates(o, to.ca.c_str()); });
  }
  const std::string password(to.password.reveal()), token(to.token.reveal());
  if (!to.user.empty()) set([&](natsOptions* o) { return natsOptions_SetUserInfo(o, to.user.c_str(), password.c_str()); });
  if (!token.empty()) set([&](natsOptions* o) { return natsOptions_SetToken(o, token.c_str()); });
  if (!to.jwt.empty()) {
    made->who_ = {std::string(to.jwt.reveal()), std::string(to.seed.reveal())};
    auto* const who = &made->who_;
    set([&](natsOptions* o) { return natsOptions_SetUserCredentialsCallbacks(o, identity::name, who, identity::sign, who); });
  }
  set([&](natsOptions* o) { return natsConnection_Connect(&made->connection_, o); });
  if (status != NATS_OK) return {nullptr, status};
  known_connections::all().add(made->connection_, made->refused_);
  status = natsConnection_JetStream(&made->js_, made->connection_, nullptr);
  if (status != NATS_OK) return {nullptr, status};
  return {made, NATS_OK};
}

namespace {

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

}  // namespace

void broker::stop() {
  stopped_ = true;
  const std::lock_guard held(lock_);
  changed_.notify_all();
}

void broker::cut() {
  ip_bytes at{};
  std::uint16_t port = 0;
  std::set<int> others;
  {
    const std::lock_guard held(lock_);
    if (!connecting_) return;
    at = at_;
    port = way_.port;
    others = others_;
  }
  // At worst it is another destination's, which makes it again.
  for (const int fd : sockets_to(at, port))
    if (!others.contains(fd)) ::shutdown(fd, SHUT_RDWR);
}

void broker::close() {
  cut();
  std::shared_ptr<nats_session> last;
  {
    const std::lock_guard held(lock_);
    last = std::move(session_);
  }
  if (last) last->close();
}

broker::attempt broker::session_for(const letter& what) {
  std::unique_lock held(lock_);
  for (;;) {
    if (stopped_) return {nullptr, NATS_CONNECTION_CLOSED};
    const bool same = what.same_way(way_);
    const bool there = std::find(what.addresses.begin(), what.addresses.end(), at_) != what.addresses.end();
    if (session_ && same && there && session_->usable()) return {session_, NATS_OK};
    const auto now = steady_clock::now();
    if (!connecting_) {
      // One has just failed for all who wait to get there.
      if (same && failed_ != NATS_OK && now - failed_at_ < broker_connect_pause) return {nullptr, failed_};
      return connect(what, held);
    }
    if (now - began_ <= broker_connect_lost) {
      changed_.wait_until(held, began_ + broker_connect_lost + milliseconds(1));
      continue;
    }
    held.unlock();
    cut();
    held.lock();
    changed_.wait_for(held, broker_connect_pause);
  }
}

broker::attempt broker::connect(const letter& what, std::unique_lock<std::mutex>& held) {
  connecting_ = true;
  began_ = steady_clock::now();
  way_ = what;
  way_.body.clear();
  auto before = std::exchange(session_, nullptr);
  held.unlock();
  before.reset();
  held.lock();
  // One that is silent leaves time for the next.
  const auto within = std::max<milliseconds>(
      std::min(broker_connect_most, what.timeout) / static_cast<int>(what.addresses.size()), broker_connect_least);
  attempt came{nullptr, NATS_NO_SERVER};
  for (const auto& address : what.addresses) {
    began_ = steady_clock::now();
    at_ = address;
    held.unlock();
    auto others = sockets_to(address, what.port);
    held.lock();
    others_ = std::move(others);
    held.unlock();
    came = nats_session::open(what, address, within);
    held.lock();
    // Who answers, whatever he says, is who it is for.
    if (came.first || stopped_ || judge_connection(came.second).reason != "connect_failed") break;
  }
  connecting_ = false;
  failed_ = came.second;
  failed_at_ = steady_clock::now();
  session_ = came.first;
  changed_.notify_all();
  if (!stopped_) return came;
  // Whoever stopped may have looked for it before it was there.
  session_.reset();
  held.unlock();
  return {nullptr, NATS_CONNECTION_CLOSED};
}

sent broker::publish(const letter& what) {
  sent out;
  auto [over, connected] = session_for(what);
  if (over && steady_clock::now() > what.begin_by) {
    over.reset();
    connected = NATS_TIMEOUT;
  }
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
  refusals::publication mine{what.subject, {}};
  over->refused().begin(mine);
  // The acknowledgement may say that the stream had it already: that is delivered too. One that names no stream, or no place in
  // it, is somebody else's answer: whoever may listen on the subject can give one.
  jsPubAck* told = nullptr;
  if (status == NATS_OK) status = js_PublishMsg(&told, over->stream(), message.get(), &how, &code);
  const std::unique_ptr<jsPubAck, acknowledgement_deleter> acknowledged(told);
  if (status == NATS_OK && !is_of_a_stream(acknowledged.get())) status = NATS_ERR;
  const std::string refused = over->refused().end(mine);
  if (status == NATS_TIMEOUT && !refused.empty()) status = NATS_NOT_PERMITTED;
  out.judged = judge_publication(status, code);
  if (out.judged.what != verdict::delivered)
    out.excerpt = excerpt_of(status == NATS_NOT_PERMITTED && !refused.empty() ? refused : natsStatus_GetText(status));
  return out;
}

}  // namespace recibo::notify
