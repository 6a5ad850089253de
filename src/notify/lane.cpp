#include "lane.hpp"

#include "recibo/evidence/case_view.hpp"
#include "recibo/notify/message.hpp"
#include "recibo/observe/log.hpp"

#include <algorithm>
#include <utility>

namespace recibo::notify {
namespace {

using namespace std::chrono_literals;
using boost::asio::awaitable;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using next = storage::attempt_outcome::next;

constexpr milliseconds round_every = 200ms, look_every = 1s, sweep_every = 10s, database_limit = 5s;
// Attempts that are answered by a pause come again as soon as it ends.
constexpr auto after_pause = 1s;
// What was given back is not claimed again at once: whatever was in the way is hardly gone.
constexpr auto after_return = 1s;
// An answer beyond it is cut: only its status counts.
constexpr std::size_t answer_most = 4 << 10;

// A fact may be committed that much later than others that were made at its time; the sweep finds what was later still.
constexpr auto due_margin = 60s;

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
      random_(std::random_device{}()) {}

awaitable<void> lane::stop(time_point until) {
  stopping_ = true;
  co_await worker_.stop(until);
  const bool gone = co_await tasks_.wait_empty(until);
  if (!gone) {
    tasks_.emit(boost::asio::cancellation_type::terminal);
    const time_point ever = time_point::max();
    co_await tasks_.wait_empty(ever);
  }
  const bool recorded = co_await settle();
  if (!recorded) log::warn("outcomes of notifications are left to their leases", {{"destination", name_}});
}

awaitable<bool> lane::round() {
  const bool settled = co_await settle();
  if (!settled) co_return false;
  const auto settings = parts_.settings.get();
  const auto to = settings->destinations.find(name_);
  if (stopping_ || to == settings->destinations.end()) co_return false;
  const auto now = steady_clock::now();
  if (in_flight_ > 0 && now - beat_ > settings->outbox.lease / 3) {
    beat_ = now;
    const auto lease = lease_for(*settings, to->second);
    co_await storage::extend_leases(parts_.pool, name_, by_, lease, now + database_limit);
  }
  const bool open = co_await look(to->second);
  if (!open) co_return false;
  co_return co_await claim(settings);
}

// Whether something may be sent.
awaitable<bool> lane::look(const config::destination& to) {
  const auto now = steady_clock::now();
  if (now - looked_ > look_every || row_.breaker != "closed") {
    auto seen = co_await storage::read_destination(parts_.pool, name_, now + database_limit);
    if (!seen) co_return false;
    row_ = std::move(*seen);
    looked_ = now;
    parts_.counts.state(name_, row_.breaker, row_.paused_at.has_value());
  }
  if (now - swept_ > sweep_every) {
    swept_ = now;
    due_since_.reset();
    co_await storage::release_held(parts_.pool, name_, to.on_dead == config::on_dead::hold, now + database_limit);
  }
  if (row_.paused_at) co_return false;
  co_return row_.breaker == "closed" || (row_.retry_due && in_flight_ == 0);
}

awaitable<bool> lane::claim(settings_ptr settings) {
  const config::destination& to = settings->destinations.find(name_)->second;
  storage::claim_query what;
  what.destination = name_;
  what.limit = to.concurrency - in_flight_;
  what.by = by_;
  what.hold = to.on_dead == config::on_dead::hold;
  what.due_since = due_since_;
  what.lease = lease_for(*settings, to);
  const auto until = steady_clock::now() + database_limit;
  probing_ = row_.breaker != "closed";
  if (probing_) {
    const auto mine = co_await storage::take_probe(parts_.pool, name_, what.lease, until);
    if (!mine || !*mine) co_return false;
    what.limit = 1;
  }
  if (what.limit <= 0) co_return false;
  const int wanted = what.limit;
  auto claimed = co_await storage::claim_notifications(parts_.pool, std::move(what), until);
  if (!claimed) {
    log::warn("notifications could not be claimed", {{"destination", name_}, {"code", code_word(claimed.error().code)}});
    co_return false;
  }
  const bool more = static_cast<int>(claimed->size()) == wanted && !probing_;
  if (claimed->empty()) co_return false;
  if (more) due_since_ = oldest(*claimed) - due_margin;
  if (in_flight_ == 0) beat_ = steady_clock::now();
  auto parcels = co_await pack(settings, std::move(*claimed));
  for (auto& one : parcels) {
    ++in_flight_;
    tasks_.spawn("notification", deliver(settings, std::move(one)));
  }
  co_return more&& in_flight_ < to.concurrency;
}

// Reads the operations of all at once. What cannot be packed goes back.
awaitable<std::vector<lane::parcel>> lane::pack(settings_ptr settings, std::vector<storage::claimed_notification> claimed) {
  std::vector<parcel> out;
  std::vector<operation_id> ids;
  for (const auto& one : claimed) ids.push_back(one.operation);
  const auto until = steady_clock::now() + database_limit;
  auto operations = co_await storage::find_operations(parts_.pool, ids, until);
  for (auto& one : claimed) {
    storage::operation_view* o = nullptr;
    if (operations) {
      const auto found =
          std::find_if(operations->begin(), operations->end(), [&](const auto& x) { return x.id == one.operation; });
      if (found != operations->end()) o = &*found;
    }
    evidence::workflow_ptr table;
    if (o != nullptr) {
      auto read = co_await workflows_.get(parts_.pool, settings, o->workflow, until);
      if (read) table = std::move(*read);
    }
    if (!table) {
      give_back(one);
      continue;
    }
    auto then = *o;
    put_back(then, one, *table);
    auto body = body_of(one, then, {*table, *settings});
    out.push_back({std::move(one), std::move(body)});
  }
  co_return out;
}

// Ends an attempt, however it ends: what was cut off by a stop goes back.
class lane::sending {
 public:
  sending(lane& in, const storage::claimed_notification& what) : in_(in), what_(what) {}
  ~sending() {
    --in_.in_flight_;
    if (!ended_) in_.give_back(what_);
    in_.worker_.wake();
  }
  void end(storage::attempt_outcome outcome, bool passed) {
    ended_ = true;
    in_.take(std::move(outcome), passed);
  }

 private:
  lane& in_;
  const storage::claimed_notification& what_;
  bool ended_ = false;
};

awaitable<void> lane::deliver(settings_ptr settings, parcel one) {
  sending attempt(*this, one.what);
  const config::destination& to = settings->destinations.find(name_)->second;
  auto outcome = outcome_for(one.what);
  const auto began = steady_clock::now();
  judgement judged;
  auto headers = headers_of(one.what, one.body, to.keys, recibo::now());
  if (headers) {
    http::outbound_request request;
    request.method = "POST";
    request.url = to.parsed_url;
    request.headers = std::move(*headers);
    request.body = std::move(one.body);
    // It is at-least-once anyway, and carries its ID.
    request.repeatable = true;
    http::outbound_rules rules;
    rules.timeout = to.timeout;
    rules.connect_timeout = std::min<milliseconds>(rules.connect_timeout, to.timeout);
    rules.body_limit = answer_most;
    rules.cut_body = true;
    rules.plain_http = !to.parsed_url.tls;
    rules.allow = to.allow_networks;
    auto pending = parts_.client.send(std::move(request), std::move(rules));
    const auto answer = co_await std::move(pending);
    if (answer) {
      outcome.answer_status = answer->status;
      judged = judge(answer->status, http::find_header(answer->headers, "Retry-After").value_or(""), recibo::now());
      if (judged.what != verdict::delivered) outcome.excerpt = excerpt_of(answer->body);
    } else {
      if (stopping_) co_return;  // cut off by the drain: it goes back
      judged = judge(answer.error());
      outcome.excerpt = excerpt_of(answer.error().detail);
    }
  } else {
    judged = {verdict::again, "no_valid_secret", false, {}};
  }
  outcome.duration = std::chrono::duration_cast<milliseconds>(steady_clock::now() - began);
  outcome.reason = judged.reason;
  outcome.theirs = judged.theirs;
  switch (judged.what) {
    case verdict::delivered: outcome.what = next::delivered; break;
    case verdict::never: outcome.what = next::dead; break;
    case verdict::unauthorized:
    case verdict::gone:
      outcome.wait = after_pause;
      stopped_for_ = judged.reason;
      break;
    case verdict::again: {
      const auto wait = next_wait(to.retry, one.what.attempts - one.what.attempts_before, judged, random());
      outcome.what = wait ? next::retry : next::dead;
      outcome.wait = wait.value_or(milliseconds(0));
      break;
    }
  }
  // A refusal of this one says nothing about the destination: it answered.
  const bool passed = judged.what == verdict::delivered || judged.what == verdict::never;
  attempt.end(std::move(outcome), passed);
}

void lane::give_back(const storage::claimed_notification& one) {
  auto outcome = outcome_for(one);
  outcome.what = next::returned;
  outcome.wait = after_return;
  outcome.reason = "returned";
  done_.push_back(std::move(outcome));
}

void lane::take(storage::attempt_outcome outcome, bool passed) {
  recent_.add(passed, steady_clock::now());
  if (probing_) probed_ = passed;
  parts_.counts.attempt(name_, outcome.reason);
  if (outcome.what == next::delivered || outcome.what == next::dead) parts_.counts.settled(name_, outcome.attempt);
  if (outcome.what == next::dead)
    log::warn("a notification is dead", {{"destination", name_},
                                         {"notification_id", to_string(outcome.id)},
                                         {"reason", outcome.reason},
                                         {"attempts", outcome.attempt}});
  done_.push_back(std::move(outcome));
}

awaitable<bool> lane::settle() {
  if (!done_.empty()) {
    // A copy stays until it is on record.
    auto batch = std::exchange(done_, {});
    const auto recorded = co_await storage::record_attempts(parts_.pool, name_, by_, batch, steady_clock::now() + database_limit);
    if (!recorded) {
      log::warn("outcomes of notifications could not be recorded",
                {{"destination", name_}, {"code", code_word(recorded.error().code)}});
      done_.insert(done_.begin(), std::make_move_iterator(batch.begin()), std::make_move_iterator(batch.end()));
      co_return false;
    }
  }
  co_await heed_trouble();
  co_return true;
}

// What the outcomes say about the destination as a whole.
awaitable<void> lane::heed_trouble() {
  const auto now = steady_clock::now();
  if (!stopped_for_.empty()) {
    const auto paused =
        co_await storage::pause_destination(parts_.pool, name_, "recibo", std::string(stopped_for_), now + database_limit);
    if (!paused) co_return;
    if (*paused) log::error("a destination is paused: it needs a person", {{"destination", name_}, {"reason", stopped_for_}});
    stopped_for_ = {};
    looked_ = {};
  }
  if (probed_) {
    const bool passed = *std::exchange(probed_, std::nullopt);
    probing_ = false;
    recent_.clear();
    if (passed) {
      co_await storage::close_breaker(parts_.pool, name_, now + database_limit);
      log::info("a breaker closed", {{"destination", name_}});
    } else {
      co_await storage::open_breaker(parts_.pool, name_, breaker_wait(row_.openings + 1, random()), now + database_limit);
    }
    looked_ = {};
  } else if (row_.breaker == "closed" && recent_.out_of_order(now)) {
    recent_.clear();
    co_await storage::open_breaker(parts_.pool, name_, breaker_wait(1, random()), now + database_limit);
    log::warn("a breaker opened", {{"destination", name_}});
    looked_ = {};
  }
}

}  // namespace recibo::notify
