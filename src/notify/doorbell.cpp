#include "doorbell.hpp"

#include "recibo/observe/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <utility>

namespace recibo::notify {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// What is committed within so short a time is told at once: to the lanes of this replica, which it costs a look, and to the
// others, which it costs a transaction.
constexpr auto own_every = 10ms, others_every = 100ms;
// Without anything to tell the workers sleep; to listen again after the session was lost.
constexpr auto ring_idle = 60s, listen_again = 1s;
constexpr auto bell_connect_limit = 3s, bell_limit = 5s, listen_step = 30s;
// PostgreSQL takes payloads below 8,000 bytes.
constexpr std::size_t word_most = 7'000;

}  // namespace

std::vector<std::string> read_word(std::string_view word, std::string_view own) {
  std::vector<std::string> out;
  const auto colon = word.find(':');
  if (colon == std::string_view::npos || word.substr(0, colon) == own) return out;
  for (std::string_view rest = word.substr(colon + 1); !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    if (comma > 0) out.emplace_back(rest.substr(0, comma));
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return out;
}

std::string write_word(std::string_view own, const destination_names& names) {
  std::string out = std::string(own) + ':';
  bool first = true;
  for (const auto& name : names) {
    if (!std::exchange(first, false)) out += ',';
    out += name;
  }
  return out.size() <= word_most ? out : std::string(own) + ":*";
}

doorbell::doorbell(boost::asio::any_io_executor executor, secret database_url, postgres::pool& pool, storage::dispatcher_id own,
                   std::function<bool()> ready, heard_function heard)
    : executor_(executor),
      url_(std::move(database_url)),
      pool_(pool),
      own_(to_string(own)),
      ready_(std::move(ready)),
      heard_(std::move(heard)),
      telling_own_(executor, "wake lanes", ring_idle, [this] { return tell_own(); }),
      telling_others_(executor, "wake other replicas", ring_idle, [this] { return tell_others(); }),
      listening_(executor) {}

void doorbell::start() {
  telling_own_.start();
  telling_others_.start();
  listening_.spawn("listen for notifications", keep_listening());
}

void doorbell::ring(const destination_names& names) {
  for_own_.insert(names.begin(), names.end());
  for_others_.insert(names.begin(), names.end());
  telling_own_.wake();
  telling_others_.wake();
}

awaitable<void> doorbell::stop(time_point until) {
  stopping_ = true;
  const auto soon = std::min(until, steady_clock::now() + 2 * others_every);
  co_await telling_own_.stop(soon);
  co_await telling_others_.stop(soon);
  // Nothing is lost with a session that only listens.
  co_await listening_.end();
}

awaitable<void> doorbell::pause(milliseconds how_long) {
  boost::asio::steady_timer timer(executor_, how_long);
  co_await timer.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
}

awaitable<bool> doorbell::tell_own() {
  if (for_own_.empty() || stopping_) co_return false;
  const auto names = std::exchange(for_own_, {});
  for (const auto& name : names) heard_(name);
  co_await pause(own_every);
  co_return !for_own_.empty();
}

awaitable<bool> doorbell::tell_others() {
  if (for_others_.empty() || stopping_) co_return false;
  const auto names = std::exchange(for_others_, {});
  // Should it fail, they look for themselves.
  co_await storage::ring_outbox(pool_, write_word(own_, names), steady_clock::now() + bell_limit);
  co_await pause(others_every);
  co_return !for_others_.empty();
}

awaitable<void> doorbell::keep_listening() {
  while (!stopping_) {
    co_await listen();
    if (stopping_) co_return;
    co_await pause(listen_again);
  }
}

// As long as the session lasts.
awaitable<void> doorbell::listen() {
  if (!ready_()) co_return;
  auto opened = co_await postgres::connection::open(executor_, url_, steady_clock::now() + bell_connect_limit);
  if (!opened) co_return;
  const auto session = std::move(*opened);
  const bool listens = co_await storage::listen_to_outbox(*session, steady_clock::now() + bell_limit);
  if (!listens) co_return;
  log::debug("listening for notifications");
  heard_("*");  // what was said before this
  while (!stopping_) {
    std::vector<std::string> words;
    const auto came = co_await session->listen(words, steady_clock::now() + listen_step);
    for (const auto& word : words)
      for (const auto& name : read_word(word, own_)) heard_(name);
    if (!came.ok()) co_return;
  }
}

}  // namespace recibo::notify
