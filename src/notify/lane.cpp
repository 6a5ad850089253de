#include "lane.hpp"

#include "recibo/observe/log.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <utility>

namespace recibo::notify {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using next = storage::attempt_outcome::next;

// Rounds come when there is a reason; in between a lane looks for what it was not told.
constexpr milliseconds round_every = 1s, look_every = 1s, look_in_trouble = 200ms, sweep_every = 10s, database_limit = 5s;
// Attempts that are answered by a pause come again as soon as it ends.
constexpr auto after_pause = 1s;
// What was given back is not claimed again at once: whatever was in the way is hardly gone.
constexpr auto after_return = 1s;
// The database's clock began to count a little later than ours.
constexpr auto due_margin = 20ms;
// What is put off and not remembered here is found by looking.
constexpr std::size_t due_most = 10'000;
// A step of the sweep, and of the look for what waits behind an attempt that is put off: some milliseconds of the database.
constexpr int sweep_most = 2'000, behind_most = 1'000;
// Claimed beyond what is being sent, so that nobody waits for the database; it is a fraction of a second's work.
constexpr int ahead_most = 256;

// An outcome whose row somebody holds is said again that much later; at the end a few times.
constexpr auto after_busy = 200ms;
constexpr int busy_tries = 5;
// What is cut off needs a moment to end.
constexpr auto carrier_grace = 500ms;

// A fact may be committed that much later than others that were made at its time. Usually it is looked for from the narrow bound
// on, once a second from the wide one, and the sweep finds what was later still.
constexpr auto narrow_margin = 2s, wide_margin = 60s;

sys_micros oldest(const std::vector<storage::claimed_notification>& all) {
  return std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.due_at < b.due_at; })->due_at;
}

// Longer than an attempt may take, so that it runs out only when its holder has.
milliseconds lease_for(const config::settings& settings, const config::destination& to) {
  return std::max<milliseconds>(settings.outbox.lease, to.timeout + 5s);
}

storage::attempt_outcome outcome_for(const storage::claimed_notification& n) {
  storage::attempt_outcome out;
  out.id = n.id;
  out.operation = n.operation;
  out.sequence = n.sequence;
  out.attempt = n.attempts;
  return out;
}

}  // namespace

lane::lane(boost::asio::any_io_executor executor, dispatcher::parts p, storage::dispatcher_id by, std::string name)
    : parts_(std::move(p)),
      by_(by),
      name_(std::move(name)),
      tasks_(executor),
      worker_(executor, "notifications", round_every, [this] { return round(); }),
      random_(std::random_device{}()),
      http_(make_http_carrier(parts_.client)),
      nats_(make_nats_carrier(executor, parts_.settings)),
      due_timer_(executor) {}

void lane::begin_stop() {
  stopping_ = true;
  due_timer_.cancel();
}

awaitable<void> lane::stop(time_point until) {
  begin_stop();
  co_await worker_.stop(until);
  give_back_ready();
  const bool gone = co_await tasks_.wait_empty(until);
  nats_->stop();
  if (!gone) co_await tasks_.end();
  give_back_ready();
  co_await heed_trouble();
  boost::asio::steady_timer pause(due_timer_.get_executor());
  for (int i = 0; i < busy_tries && (i == 0 || (!done_.empty() && steady_clock::now() < until)); ++i) {
    if (i > 0) {
      pause.expires_after(after_busy);
      co_await pause.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
    }
    co_await exchange(parts_.settings.get(), false);
  }
  co_await nats_->wait(std::max(until, steady_clock::now() + carrier_grace));
  if (!done_.empty()) log::warn("outcomes of notifications are left to their leases", {{"destination", name_}});
}

awaitable<bool> lane::round() {
  const auto settings = parts_.settings.get();
  const auto to = settings->destinations.find(name_);
  const bool heeded = co_await heed_trouble();
  bool open = !stopping_ && to != settings->destinations.end();
  if (open) {
    co_await extend(*settings, to->second);
    open = heeded && co_await look(to->second);
  }
  if (!open) give_back_ready();
  co_return co_await exchange(settings, open);
}

std::vector<storage::held_claim> lane::in_hand() const {
  std::vector<storage::held_claim> out;
  for (const auto& one : ready_) out.push_back({one.what.operation, one.what.sequence, one.what.attempts});
  for (const auto* one : sending_) out.push_back({one->operation, one->sequence, one->attempts});
  for (const auto& one : done_) out.push_back({one.operation, one.sequence, one.attempt});
  return out;
}

awaitable<void> lane::extend(const config::settings& settings, const config::destination& to) {
  const auto now = steady_clock::now();
  if (now - beat_ <= settings.outbox.lease / 3) co_return;
  auto held = in_hand();
  if (held.empty()) co_return;
  beat_ = now;
  const auto lease = lease_for(settings, to);
  const auto extended = co_await storage::extend_leases(parts_.pool, name_, by_, std::move(held), lease, now + database_limit);
  if (!extended) beat_ = now - settings.outbox.lease / 3;  // with the next round
}

// Whether something may be sent.
awaitable<bool> lane::look(const config::destination& to) {
  const auto now = steady_clock::now();
  if (now - looked_ > (row_.breaker == "closed" ? look_every : look_in_trouble)) {
    auto seen = co_await storage::read_destination(parts_.pool, name_, now + database_limit);
    if (!seen) co_return false;
    // What failed before somebody closed it says nothing any more.
    if (row_.breaker != "closed" && seen->breaker == "closed") recent_.clear();
    row_ = std::move(*seen);
    looked_ = now;
    parts_.counts.state(name_, row_.breaker, row_.paused_at.has_value());
  }
  if (now - swept_ > sweep_every) {
    swept_ = now;
    due_since_.reset();
    if (!sweep_place_) sweep_place_.emplace();
  }
  if (sweep_place_ && now - stepped_ > look_every) {
    const bool hold = to.on_dead == config::on_dead::hold;
    const auto step = co_await storage::release_held(parts_.pool, name_, hold, *sweep_place_, sweep_most, now + database_limit);
    if (step) sweep_place_ = step->next;
    if (!step || step->freed == 0) stepped_ = now;
  }
  // Until the database has taken what it asked for, it is kept to here.
  if (row_.paused_at || now < asked_until_) co_return false;
  co_return row_.breaker == "closed" || (row_.retry_due && !probe_until_ && senders_ == 0 && ready_.empty());
}

// From where on it is looked for what is due: keeps the look out of what is dead in the index (decision 6).
std::optional<sys_micros> lane::lower_bound(time_point now) {
  if (!due_since_) return std::nullopt;
  const bool back = now - looked_back_ > look_every;
  if (back) looked_back_ = now;
  return *due_since_ - (back ? wide_margin : narrow_margin);
}

std::optional<storage::claim_query> lane::next_claim(const config::settings& settings, const config::destination& to) {
  storage::claim_query what;
  what.probe = row_.breaker != "closed";
  what.limit = what.probe ? 1 : to.concurrency + ahead_ - senders_ - static_cast<int>(ready_.size());
  what.hold = to.on_dead == config::on_dead::hold;
  what.lease = lease_for(settings, to);
  if (what.limit <= 0) return std::nullopt;
  const auto now = steady_clock::now();
  what.due_since = lower_bound(now);
  if (now - sorted_ > look_every) what.put_behind = behind_most;
  return what;
}

awaitable<bool> lane::exchange(settings_ptr settings, bool claims) {
  std::optional<storage::claim_query> what;
  const auto to = settings->destinations.find(name_);
  if (claims) what = next_claim(*settings, to->second);
  if (done_.empty() && !what) co_return false;
  // A copy stays until it is on record, whatever ends this.
  auto batch = std::exchange(done_, {});
  bool on_record = false;
  struct keeper {
    std::vector<storage::attempt_outcome>&done, &batch;
    const bool& on_record;
    ~keeper() {
      if (!on_record) done.insert(done.begin(), std::make_move_iterator(batch.begin()), std::make_move_iterator(batch.end()));
    }
  };
  const keeper kept{done_, batch, on_record};
  auto came = co_await storage::exchange_outbox(parts_.pool, name_, by_, batch, what, steady_clock::now() + database_limit);
  if (!came) {
    log::warn("the outbox could not be read or written", {{"destination", name_}, {"code", code_word(came.error().code)}});
    co_return false;
  }
  on_record = true;
  // Where there were many, there are more.
  if (what && what->put_behind > 0 && came->put_behind < behind_most / 2) sorted_ = steady_clock::now();
  for (auto& one : batch) {
    const bool busy = std::any_of(came->busy.begin(), came->busy.end(), [&](const auto& row) {
      return row.operation == one.operation && row.sequence == one.sequence;
    });
    if (!busy) {
      if (one.wait > milliseconds(0)) wake_after(one.wait);
      continue;
    }
    one.taken.reset();  // what it says of the destination is noted
    done_.push_back(std::move(one));
  }
  if (!came->busy.empty()) wake_after(after_busy);
  auto claimed = std::move(came->all);
  if (!what || claimed.empty()) co_return false;
  if (what->probe) {
    probe_until_ = came->probe_until;
    row_.breaker = "half_open";
    row_.retry_due = false;
  }
  const bool more = static_cast<int>(claimed.size()) == what->limit && !what->probe;
  if (more) {
    due_since_ = oldest(claimed);
    ahead_ = std::min(ahead_most, std::max(to->second.concurrency, ahead_ * 2));
  }
  if (senders_ == 0 && ready_.empty()) beat_ = steady_clock::now();
  co_await pack(settings, std::move(claimed));
  start_senders(what->probe ? 1 : to->second.concurrency);
  co_return more&& static_cast<int>(ready_.size()) < ahead_;
}

void lane::start_senders(int concurrency) {
  if (stopping_) return give_back_ready();
  // A sender begins within spawn(), and may have ended there, when nothing that it does has to wait: so as many are started as
  // there are to start now, whatever becomes of them.
  for (int more = std::min(concurrency - senders_, static_cast<int>(ready_.size())); more > 0 && !ready_.empty(); --more) {
    ++senders_;
    tasks_.spawn("notification", send_what_is_ready());
  }
}

awaitable<void> lane::send_what_is_ready() {
  struct seat {
    lane& in;
    ~seat() {
      --in.senders_;
      in.worker_.wake();
    }
  };
  const seat mine{*this};
  while (!ready_.empty() && !stopping_) {
    parcel one = std::move(ready_.front());
    ready_.pop_front();
    auto sending = deliver(std::move(one));
    co_await std::move(sending);
  }
}

// Ends an attempt, however it ends: what was cut off by a stop goes back.
class lane::attempt_in_hand {
 public:
  attempt_in_hand(lane& in, const storage::claimed_notification& what) : in_(in), what_(what) { in_.sending_.insert(&what_); }
  attempt_in_hand(const attempt_in_hand&) = delete;
  attempt_in_hand& operator=(const attempt_in_hand&) = delete;
  ~attempt_in_hand() {
    in_.sending_.erase(&what_);
    if (!ended_) in_.give_back(what_);
    in_.worker_.wake();
  }
  void end(storage::attempt_outcome outcome) {
    ended_ = true;
    in_.take(std::move(outcome));
  }

 private:
  lane& in_;
  const storage::claimed_notification& what_;
  bool ended_ = false;
};

awaitable<void> lane::deliver(parcel one) {
  const auto what = one.what;
  attempt_in_hand attempt(*this, what);
  const auto settings = parts_.settings.get();
  const auto found = settings->destinations.find(name_);
  if (found == settings->destinations.end()) co_return;
  const config::destination& to = found->second;
  auto outcome = outcome_for(what);
  const auto began = steady_clock::now();
  auto sending = carrier_for(to).send(to, std::move(one));
  auto came = co_await std::move(sending);
  const auto& judged = came.judged;
  if (stopping_ && !came.answer_status && judged.what == verdict::again) co_return;  // cut off by the drain: it goes back
  outcome.answer_status = came.answer_status;
  outcome.excerpt = std::move(came.excerpt);
  outcome.duration = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
  outcome.reason = judged.reason;
  outcome.theirs = judged.theirs;
  const auto ended = steady_clock::now();
  // One that nobody is there for is its own fault; most of them are the destination's.
  if (judged.of_address) recent_.add_astray(ended);
  const bool astray = judged.of_address && (row_.breaker != "closed" || recent_.out_of_order(ended));
  switch (astray ? verdict::again : judged.what) {
    case verdict::delivered: outcome.what = next::delivered; break;
    case verdict::never: outcome.what = next::dead; break;
    case verdict::unauthorized:
    case verdict::gone:
      outcome.wait = after_pause;
      stopped_for_ = judged.reason;
      break;
    case verdict::unsigned_now:
      outcome.what = next::returned;
      outcome.wait = after_pause;
      stopped_for_ = judged.reason;
      break;
    case verdict::again: {
      const auto wait = next_wait(to.retry, what.attempts - what.attempts_before, judged, random());
      outcome.what = wait ? next::retry : next::dead;
      outcome.wait = wait.value_or(milliseconds(0));
      heed_wish(came, to);
      break;
    }
  }
  // A refusal of this one says nothing against the destination: it answered. One that cannot be sent, or signed, says nothing at
  // all, and neither does one that nobody was there for.
  if (judged.what == verdict::unsigned_now) {
    outcome.taken.reset();
  } else if (astray) {
    outcome.taken = false;
  } else if (judged.what != verdict::never || (!came.unsent && !judged.of_address)) {
    outcome.taken = judged.what == verdict::delivered || judged.what == verdict::never;
    recent_.add(*outcome.taken, ended);
  }
  attempt.end(std::move(outcome));
}

carrier& lane::carrier_for(const config::destination& to) { return to.nats ? *nats_ : *http_; }

void lane::give_back(const storage::claimed_notification& one) {
  auto outcome = outcome_for(one);
  outcome.what = next::returned;
  outcome.wait = after_return;
  outcome.reason = "returned";
  if (probe_until_ && !probed_) probe_unused_ = true;
  done_.push_back(std::move(outcome));
}

void lane::give_back_ready() {
  for (const auto& one : ready_) give_back(one.what);
  ready_.clear();
  ahead_ = 0;
}

void lane::take(storage::attempt_outcome outcome) {
  const auto passed = outcome.taken;
  if (passed) failing_ = !*passed;
  if (!passed.value_or(false)) ahead_ = 0;
  if (probe_until_ && passed) probed_ = passed;
  if (probe_until_ && !passed) probe_unused_ = true;
  parts_.counts.attempt(name_, outcome.reason);
  if (outcome.what == next::delivered || outcome.what == next::dead) parts_.counts.settled(name_, outcome.attempt);
  if (outcome.what == next::dead)
    log::warn("a notification is dead", {{"destination", name_},
                                         {"notification_id", to_string(outcome.id)},
                                         {"reason", outcome.reason},
                                         {"attempts", outcome.attempt}});
  done_.push_back(std::move(outcome));
}

void lane::wake_after(milliseconds wait) {
  if (due_.size() >= due_most) return;
  const auto at = steady_clock::now() + wait + due_margin;
  const bool first = due_.empty() || at < due_.top();
  due_.push(at);
  if (first) arm_due();
}

void lane::arm_due() {
  due_timer_.expires_at(due_.top());
  due_timer_.async_wait([this, alive = std::weak_ptr(alive_)](boost::system::error_code cancelled) {
    if (cancelled || alive.expired() || stopping_) return;
    const auto now = steady_clock::now();
    while (!due_.empty() && due_.top() <= now) due_.pop();
    worker_.wake();
    if (!due_.empty()) arm_due();
  });
}

}  // namespace recibo::notify
