#include "recibo/record/recorder.hpp"

#include "recibo/async/task_group.hpp"
#include "recibo/observe/log.hpp"
#include "writer.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <random>

namespace recibo::record {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr auto quietly = boost::asio::as_tuple(boost::asio::use_awaitable);
constexpr milliseconds reconnect_first{50}, reconnect_max{1'000};
// Bodies in one batch, so that a statement stays small.
constexpr std::size_t batch_bytes_max = 8u << 20;

}  // namespace

struct recorder::impl : std::enable_shared_from_this<recorder::impl> {
  impl(boost::asio::any_io_executor e, options o)
      : executor(std::move(e)),
        how(std::move(o)),
        shared(queue::bounds{.entries = static_cast<std::size_t>(how.queue),
                             .bytes = how.queue_bytes,
                             .per_operation = std::max<std::size_t>(64, static_cast<std::size_t>(how.queue) / 16),
                             .per_provider = std::max<std::size_t>(64, static_cast<std::size_t>(how.queue) * 3 / 4)}),
        tasks(executor),
        held_wake(executor) {
    shared.metrics = how.metrics;
    shared.told = how.told;
    shared.wake = [this] { wake_writers(); };
    for (int i = 0; i < how.writers; ++i) writers.push_back(std::make_unique<seat>(executor, how.database_url, shared));
    waiting = std::make_unique<seat>(executor, how.database_url, shared);
    parking = std::make_unique<seat>(executor, how.database_url, shared);
  }

  struct seat {
    seat(const boost::asio::any_io_executor& executor, const secret& url, desk& shared)
        : works(executor, url, shared), wake(executor) {}
    writer works;
    boost::asio::steady_timer wake;
    bool idle = false;
  };

  std::size_t rows() const { return static_cast<std::size_t>(how.batch); }

  // The first writer takes whatever waits; each further one only a backlog that passes the batches before it.
  bool has_turn(std::size_t seat_number) const { return shared.queue.waiting() > seat_number * rows(); }

  void wake_writers() {
    for (std::size_t i = 0; i < writers.size(); ++i)
      if (writers[i]->idle && has_turn(i)) writers[i]->wake.cancel();
    held_wake.cancel();
    if (waiting->idle && shared.queue.lane_waits()) waiting->wake.cancel();
    if (parking->idle && shared.queue.parking_waits()) parking->wake.cancel();
  }

  boost::asio::awaitable<void> run_writer(std::size_t number) {
    auto self = shared_from_this();
    auto& me = *writers[number];
    auto pause = reconnect_first;
    while (!stopping || shared.queue.size() > 0) {
      if (number == 0 || has_turn(number)) {
        const bool reachable = co_await me.works.connect();
        if (!reachable) {
          co_await sleep(me, pause + milliseconds(std::uniform_int_distribution<int>(0, 50)(random)));
          pause = std::min(pause * 2, reconnect_max);
          continue;
        }
        pause = reconnect_first;
      }
      auto entries =
          has_turn(number) ? shared.queue.take(rows(), batch_bytes_max, steady_clock::now()) : std::vector<entry_ptr>();
      if (how.metrics) how.metrics->queue_depth(shared.queue.size());
      if (entries.empty()) {
        if (stopping && shared.queue.waiting() == 0 && number != 0) break;
        me.idle = true;
        co_await sleep(me, milliseconds(stopping ? 20 : 1'000));
        me.idle = false;
        continue;
      }
      co_await carry(me, std::move(entries), lane::batches);
      wake_writers();  // what was passed over because this writer had its operation
    }
    me.works.close();
  }

  // The last catch of a writer: a bug of ours costs the work in hand its answer, and neither the seat nor the queue.
  boost::asio::awaitable<void> carry(seat& me, std::vector<entry_ptr> entries, lane which) {
    const auto in_hand = entries;
    std::string failure;
    try {
      co_await me.works.process(std::move(entries), which);
    } catch (const std::exception& e) {
      failure = e.what();
      if (failure.empty()) failure = "unknown";
    }
    if (failure.empty()) co_return;
    log::error("recording threw", {{"entries", in_hand.size()}, {"error", failure}});
    me.works.close();
    shared.culprits.push_back(steady_clock::now());
    for (const auto& e : in_hand) {
      if (!e->begun || e->answer) continue;
      e->finish(error(uncertain::commit_unknown, "not known to be recorded because of a fault of ours"));
      shared.queue.done(e);
    }
  }

  boost::asio::awaitable<void> sleep(seat& me, milliseconds how_long) {
    me.wake.expires_after(how_long);
    co_await me.wake.async_wait(quietly);
  }

  boost::asio::awaitable<void> run_held() {
    auto self = shared_from_this();
    while (!stopping || shared.queue.size() > 0) {
      const auto waiting_before = shared.queue.waiting();
      const auto next = shared.queue.release_held(steady_clock::now());
      if (shared.queue.waiting() != waiting_before)
        for (std::size_t i = 0; i < writers.size(); ++i)
          if (writers[i]->idle && has_turn(i)) writers[i]->wake.cancel();
      held_wake.expires_at(next.value_or(steady_clock::now() + milliseconds(stopping ? 20 : 1'000)));
      co_await held_wake.async_wait(quietly);
    }
  }

  // The two lanes beside the batches. Their sessions are opened when there is work for them.
  boost::asio::awaitable<void> run_lane(lane which) {
    auto self = shared_from_this();
    auto& me = which == lane::waiting ? *waiting : *parking;
    while (!stopping || shared.queue.size() > 0) {
      const auto now = steady_clock::now();
      auto entries = which == lane::waiting ? shared.queue.take_from_lane(rows(), now) : shared.queue.take_parking(rows(), now);
      if (!entries.empty()) {
        co_await carry(me, std::move(entries), which);
        wake_writers();
        // A row that is free and still cannot be had (another lock is missing) must not make the lane spin.
        if (which == lane::waiting) co_await sleep(me, milliseconds(10));
        continue;
      }
      me.idle = true;
      co_await sleep(me, milliseconds(stopping ? 20 : 1'000));
      me.idle = false;
    }
    me.works.close();
  }

  boost::asio::any_io_executor executor;
  options how;
  desk shared;
  async::task_group tasks;
  std::vector<std::unique_ptr<seat>> writers;
  std::unique_ptr<seat> waiting, parking;
  boost::asio::steady_timer held_wake;
  bool started = false, stopping = false;
  std::minstd_rand random{std::random_device{}()};
};

recorder::recorder(boost::asio::any_io_executor executor, options o)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(o))) {}

recorder::~recorder() { impl_->tasks.emit(boost::asio::cancellation_type::terminal); }

void recorder::start() {
  if (impl_->started) return;
  impl_->started = true;
  for (std::size_t i = 0; i < impl_->writers.size(); ++i) impl_->tasks.spawn("writer", impl_->run_writer(i));
  impl_->tasks.spawn("held work", impl_->run_held());
  impl_->tasks.spawn("waiting lane", impl_->run_lane(lane::waiting));
  impl_->tasks.spawn("park lane", impl_->run_lane(lane::parking));
}

boost::asio::awaitable<void> recorder::drain(std::chrono::steady_clock::time_point until) {
  auto self = impl_;
  self->stopping = true;
  for (auto& w : self->writers) w->wake.cancel();
  self->held_wake.cancel();
  self->waiting->wake.cancel();
  self->parking->wake.cancel();
  const bool empty = co_await self->tasks.wait_empty(until);
  if (!empty) {
    log::warn("recorder drained late", {{"waiting", self->shared.queue.size()}});
    self->shared.queue.fail_all(error(transient::shutting_down, "the service is stopping"));
    self->tasks.emit(boost::asio::cancellation_type::terminal);
  }
}

boost::asio::awaitable<result<outcome>> recorder::record(work what, std::chrono::steady_clock::time_point until) {
  auto self = impl_;
  if (self->stopping) co_return error(transient::shutting_down, "the service is stopping");
  if (!self->started) co_return error(transient::not_ready, "the service is starting");
  auto& shared = self->shared;
  if (shared.away) co_return error(transient::database_away, "the database cannot be reached");
  const auto now = steady_clock::now();
  if (shared.rate > 0 && shared.queue.waiting() > self->rows()) {
    // Refused at the door rather than after a wait in vain (rule 9).
    const std::chrono::duration<double> expected(static_cast<double>(shared.queue.waiting()) / shared.rate);
    if (now + expected > until) co_return error(transient::queue_full, "the wait would be longer than the time that is left");
  }
  const auto e = std::make_shared<entry>(self->executor, std::move(what), until);
  const auto pushed = shared.queue.push(e);
  if (!pushed) co_return pushed.error();
  for (std::size_t i = 0; i < self->writers.size(); ++i)
    if (self->writers[i]->idle && self->has_turn(i)) self->writers[i]->wake.cancel();
  co_await e->wake.async_wait(quietly);
  if (e->answer) co_return std::move(*e->answer);
  e->abandoned = true;
  if (e->begun) co_return error(uncertain::commit_unknown, "not known to be recorded in time");
  co_return error(transient::deadline_passed, "not recorded in time");
}

recorder::counts recorder::state() const noexcept {
  return {impl_->shared.queue.size(), impl_->shared.queue.bytes(), impl_->shared.writers_connected};
}

bool recorder::healthy() const noexcept {
  auto& shared = impl_->shared;
  return impl_->started && !impl_->stopping && !shared.away && !shared.in_doubt && shared.ever_connected &&
         !shared.too_many_culprits(steady_clock::now());
}

}  // namespace recibo::record
