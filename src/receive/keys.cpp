#include "recibo/receive/keys.hpp"

#include "key_request.hpp"

#include "recibo/async/task_group.hpp"
#include "recibo/observe/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <list>
#include <map>
#include <optional>

namespace recibo::receive {
namespace {

namespace asio = boost::asio;
using std::chrono::seconds;
using std::chrono::steady_clock;
using time_point = steady_clock::time_point;

// One fetch, and those who wait for it.
struct key_flight {
  std::optional<result<verify::fetched_key>> got;
  // Each ends with its own patience, or when the key has come.
  std::list<std::shared_ptr<asio::steady_timer>> waiting;

  void land(result<verify::fetched_key> what) {
    got = std::move(what);
    for (const auto& one : waiting) one->cancel();
    waiting.clear();
  }
};

struct key_entry {
  std::optional<verify::fetched_key> key;
  time_point fetched, used;
  std::shared_ptr<key_flight> flight;
  // Why it cannot be had, and when it is worth asking again.
  std::optional<error> why;
  time_point again{};
  int failures = 0;
};

seconds doubled(seconds first, seconds most, int failures) {
  auto out = first;
  for (int i = 1; i < failures && out < most; ++i) out *= 2;
  return std::min(out, most);
}

}  // namespace

class key_cache::impl : public std::enable_shared_from_this<key_cache::impl> {
 public:
  impl(asio::any_io_executor e, fetch_function f, options o)
      : executor_(std::move(e)), fetch_(std::move(f)), how_(std::move(o)), budget_(how_.budget), tasks_(executor_) {}

  static asio::awaitable<result<verify::fetched_key>> get(std::shared_ptr<impl> self,
                                                          std::shared_ptr<const config::settings> settings,
                                                          const config::provider& from, verify::needed_key what, std::string peer,
                                                          time_point until);
  void vouch(std::string_view provider, std::string_view peer) { budget_.vouch(provider, peer, steady_clock::now()); }
  void stop() { tasks_.emit(asio::cancellation_type::terminal); }
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  // What a fetch is about; the settings keep the provider alive.
  struct errand {
    std::string name;
    std::shared_ptr<const config::settings> settings;
    const config::provider* from;
    verify::needed_key what;
    std::shared_ptr<key_flight> flight;
  };

  static asio::awaitable<void> run(std::shared_ptr<impl> self, errand of);
  static asio::awaitable<result<verify::fetched_key>> fetch(std::shared_ptr<impl> self, const errand& of);
  // The flight may have landed when this returns: some errors need no network.
  std::shared_ptr<key_flight> start(key_entry& entry, errand of);
  void land(const errand& of, result<verify::fetched_key> got);
  bool make_room();

  asio::any_io_executor executor_;
  fetch_function fetch_;
  options how_;
  std::map<std::string, key_entry> entries_;
  key_budget budget_;
  async::task_group tasks_;
};

asio::awaitable<result<verify::fetched_key>> key_cache::impl::get(std::shared_ptr<impl> self,
                                                                  std::shared_ptr<const config::settings> settings,
                                                                  const config::provider& from, verify::needed_key what,
                                                                  std::string peer, time_point until) {
  const auto now = steady_clock::now();
  // A provider that is configured anew may be another one of that name.
  const std::string name = from.name + '\n' + from.key_source.url + '\n' + what.cache_key();
  auto at = self->entries_.find(name);
  const bool known = at != self->entries_.end() && at->second.key;
  if (at != self->entries_.end()) {
    key_entry& entry = at->second;
    entry.used = now;
    const bool usable =
        entry.key && now < entry.fetched + self->how_.usable && (!entry.key->until || self->how_.clock() < *entry.key->until);
    if (usable && (now < entry.fetched + self->how_.fresh || entry.flight || now < entry.again)) co_return *entry.key;
    if (usable) {
      verify::fetched_key kept = *entry.key;
      self->start(entry, {name, std::move(settings), &from, std::move(what), nullptr});
      co_return kept;
    }
    if (!entry.flight && now < entry.again && entry.why) co_return *entry.why;
  }
  std::shared_ptr<key_flight> mine = at == self->entries_.end() ? nullptr : at->second.flight;
  if (!mine) {
    // Known keys are asked for again whoever asks; what was never seen may be an invention.
    if (!known &&
        (!self->budget_.take(from.name, what.cache_key(), peer, now) || (at == self->entries_.end() && !self->make_room())))
      co_return error(transient::not_ready, "Too many keys that were never seen before are being asked for.");
    key_entry& entry = self->entries_[name];
    entry.used = now;
    mine = self->start(entry, {name, std::move(settings), &from, std::move(what), nullptr});
  }
  if (!mine->got) {
    const auto patience = std::make_shared<asio::steady_timer>(self->executor_, until);
    mine->waiting.push_back(patience);
    co_await patience->async_wait(asio::as_tuple(asio::use_awaitable));
    mine->waiting.remove(patience);
  }
  if (!mine->got) co_return error(transient::not_ready, "The key was not there in time.");
  co_return *mine->got;
}

std::shared_ptr<key_flight> key_cache::impl::start(key_entry& entry, errand of) {
  auto flight = std::make_shared<key_flight>();
  entry.flight = flight;
  of.flight = flight;
  tasks_.spawn("key", run(shared_from_this(), std::move(of)));
  return flight;
}

asio::awaitable<void> key_cache::impl::run(std::shared_ptr<impl> self, errand of) {
  // Whatever happens, nobody waits for ever.
  struct lander {
    impl& of;
    const errand& about;
    result<verify::fetched_key> got = error(transient::shutting_down, "The fetch of the key was ended.");
    ~lander() { of.land(about, std::move(got)); }
  };
  lander last{*self, of};
  last.got = co_await fetch(self, of);
}

asio::awaitable<result<verify::fetched_key>> key_cache::impl::fetch(std::shared_ptr<impl> self, const errand& of) {
  auto question = ask_for_key(*of.from, of.what);
  if (!question) co_return question.error();
  const std::string host = question->request.url.origin();
  auto asking = self->fetch_(std::move(question->request), std::move(question->rules));
  const auto answer = co_await std::move(asking);
  result<verify::fetched_key> got = error(transient::not_ready, "The provider could not be asked for the key.");
  if (answer) got = read_key_answer(*of.from, of.what, *answer, self->how_.authorities, self->how_.clock());
  if (got) {
    log::info("key fetched", {{"provider", of.from->name}, {"from", host}});
    co_return got;
  }
  const error& why = answer ? got.error() : answer.error();
  // A server that is away comes back by itself; addresses, certificates and answers that are none are for a person to mend.
  log::write(!answer && why.is_permanent() ? log::level::error : log::level::warn, "a key cannot be fetched",
             {{"provider", of.from->name}, {"from", host}, {"reason", code_word(why.code)}, {"detail", why.detail}});
  co_return got;
}

void key_cache::impl::land(const errand& of, result<verify::fetched_key> got) {
  const auto now = steady_clock::now();
  const auto at = entries_.find(of.name);
  if (at != entries_.end() && at->second.flight == of.flight) {
    key_entry& entry = at->second;
    entry.flight.reset();
    if (got) {
      entry.key = *got;
      entry.fetched = now;
      entry.why.reset();
      entry.again = {};
      entry.failures = 0;
    } else {
      ++entry.failures;
      entry.why = got.error();
      const bool absent = got.error().is_permanent();
      // Gone at the provider is gone here. What could not be asked leaves a key that is kept in use.
      if (absent) entry.key.reset();
      entry.again = now + (absent ? doubled(how_.absent_first, how_.absent_most, entry.failures)
                                  : doubled(how_.failed_first, how_.failed_most, entry.failures));
    }
  }
  of.flight->land(std::move(got));
}

// What nobody has asked for longest goes, refusals before keys.
bool key_cache::impl::make_room() {
  if (entries_.size() < how_.entries_most) return true;
  auto oldest = entries_.end();
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (at->second.flight) continue;
    const auto rank = [](const key_entry& e) { return std::pair(e.key.has_value(), e.used); };
    if (oldest == entries_.end() || rank(at->second) < rank(oldest->second)) oldest = at;
  }
  if (oldest == entries_.end()) return false;
  entries_.erase(oldest);
  return true;
}

key_cache::key_cache(asio::any_io_executor executor, fetch_function fetch, options how)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(fetch), std::move(how))) {}

key_cache::~key_cache() { impl_->stop(); }

asio::awaitable<result<verify::fetched_key>> key_cache::get(std::shared_ptr<const config::settings> settings,
                                                            const config::provider& from, verify::needed_key what,
                                                            std::string peer, time_point until) {
  return impl::get(impl_, std::move(settings), from, std::move(what), std::move(peer), until);
}

void key_cache::vouch(std::string_view provider, std::string_view peer) { impl_->vouch(provider, peer); }

void key_cache::stop() { impl_->stop(); }
std::size_t key_cache::size() const noexcept { return impl_->size(); }

}  // namespace recibo::receive
