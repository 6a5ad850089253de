// The system's resolver, off the I/O thread: getaddrinfo blocks, for half a minute when a server of names is silent.
#include "recibo/http/client.hpp"

#include "recibo/observe/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <netdb.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace recibo::http {
namespace {

namespace asio = boost::asio;

// Names that are being looked up at a time; the next ones wait for their turn.
constexpr std::size_t threads_most = 16;
// More addresses of one name are not tried.
constexpr std::size_t addresses_most = 16;

struct found {
  std::vector<ip_bytes> addresses;
  std::string why;
};

found ask_system(const std::string& host) {
  found out;
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (const int failure = getaddrinfo(host.c_str(), nullptr, &hints, &list); failure != 0) {
    out.why = gai_strerror(failure);
    return out;
  }
  for (const addrinfo* one = list; one != nullptr && out.addresses.size() < addresses_most; one = one->ai_next) {
    ip_bytes address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    if (one->ai_family == AF_INET) {
      std::memcpy(address.data() + 12, &reinterpret_cast<const sockaddr_in*>(one->ai_addr)->sin_addr, 4);
    } else if (one->ai_family == AF_INET6) {
      std::memcpy(address.data(), &reinterpret_cast<const sockaddr_in6*>(one->ai_addr)->sin6_addr, 16);
    } else {
      continue;
    }
    if (std::find(out.addresses.begin(), out.addresses.end(), address) == out.addresses.end()) out.addresses.push_back(address);
  }
  freeaddrinfo(list);
  if (out.addresses.empty()) out.why = "it has no address";
  return out;
}

// Those who wait for one name.
struct flight {
  explicit flight(const asio::any_io_executor& executor) : done(executor, asio::steady_timer::time_point::max()) {}
  asio::steady_timer done;
  std::optional<found> got;
};

class system_resolver final : public name_resolver {
 public:
  explicit system_resolver(asio::any_io_executor executor)
      : executor_(std::move(executor)), state_(std::make_shared<state>()), mail_(std::make_shared<mailbox>()) {
    mail_->executor = executor_;
    mail_->to = state_;
  }

  // A thread may still be asking; what it learns then is dropped.
  ~system_resolver() override {
    const std::lock_guard lock(mail_->mutex);
    mail_->executor = {};
  }

  asio::awaitable<result<std::vector<ip_bytes>>> resolve(std::string host) override {
    std::shared_ptr<flight> mine = state_->flights[host];
    if (!mine) {
      mine = std::make_shared<flight>(executor_);
      state_->flights[host] = mine;
      state_->waiting.push_back(host);
      start(*state_, mail_);
    }
    if (!mine->got) co_await mine->done.async_wait(asio::as_tuple(asio::use_awaitable));
    if (!mine->got) co_return error(transient::resolve_failed, "The look-up of " + host + " was given up.");
    if (mine->got->addresses.empty())
      co_return error(transient::resolve_failed, "There is no address for " + host + ": " + mine->got->why + ".");
    co_return mine->got->addresses;
  }

 private:
  // On the I/O thread only.
  struct state {
    std::map<std::string, std::shared_ptr<flight>> flights;
    std::deque<std::string> waiting;
    std::size_t running = 0;
  };
  // What a thread knows of us. The executor is used under the mutex, and empty once its context may be gone.
  struct mailbox {
    std::mutex mutex;
    asio::any_io_executor executor;
    std::weak_ptr<state> to;
  };

  static void start(state& of, const std::shared_ptr<mailbox>& mail) {
    while (!of.waiting.empty() && of.running < threads_most) {
      std::string host = std::move(of.waiting.front());
      of.waiting.pop_front();
      ++of.running;
      try {
        // Detached: a look-up cannot be stopped, and nobody is to wait for it at the end.
        std::thread([mail, host] { deliver(mail, host, ask_system(host)); }).detach();
      } catch (const std::exception& e) {
        log::error("a name cannot be looked up", {{"what", e.what()}});
        arrived(of, mail, host, {{}, "no thread can be started"});
      }
    }
  }

  static void deliver(const std::shared_ptr<mailbox>& mail, const std::string& host, found what) {
    const std::lock_guard lock(mail->mutex);
    if (!mail->executor) return;
    asio::post(mail->executor, [mail, host, what = std::move(what)]() mutable {
      const auto of = mail->to.lock();
      if (of) arrived(*of, mail, host, std::move(what));
    });
  }

  static void arrived(state& of, const std::shared_ptr<mailbox>& mail, const std::string& host, found what) {
    --of.running;
    const auto at = of.flights.find(host);
    const std::shared_ptr<flight> landed = at->second;
    of.flights.erase(at);
    landed->got = std::move(what);
    landed->done.cancel();
    start(of, mail);
  }

  asio::any_io_executor executor_;
  std::shared_ptr<state> state_;
  std::shared_ptr<mailbox> mail_;
};

}  // namespace

std::shared_ptr<name_resolver> make_system_resolver(asio::any_io_executor executor) {
  return std::make_shared<system_resolver>(std::move(executor));
}

}  // namespace recibo::http
