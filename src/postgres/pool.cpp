#include "recibo/postgres/pool.hpp"

#include "pool_node.hpp"
#include "recibo/async/task_group.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <algorithm>
#include <list>
#include <random>
#include <vector>

namespace recibo::postgres {

namespace asio = boost::asio;
using std::chrono::steady_clock;

namespace {

// How long somebody waits for a connection to come about while nobody uses one that could come back.
constexpr std::chrono::seconds patience{1};
// One attempt over all hosts; longer than the patience, for a first host that swallows packets.
constexpr std::chrono::seconds attempt_limit{3};

struct waiting {
  waiting(const asio::any_io_executor& executor, deadline until) : wake(executor), limit(until) {}
  asio::steady_timer wake;
  deadline limit;
  std::unique_ptr<connection> given;  // null in an answer: there is none
  bool answered = false;              // from then on it does not count as waiting
};

}  // namespace

struct pool::impl : std::enable_shared_from_this<impl> {
  impl(asio::any_io_executor e, secret u, int size) : executor(std::move(e)), url(std::move(u)), node(size), attempts(executor) {}

  // A connection in use; goes back by itself, also when its user is cancelled.
  class lease {
   public:
    lease() = default;
    lease(std::shared_ptr<impl> from, std::unique_ptr<connection> c) : from_(std::move(from)), connection_(std::move(c)) {}
    lease(lease&&) noexcept = default;
    lease& operator=(lease&&) = delete;
    ~lease() {
      if (from_) from_->take_back(std::move(connection_));
    }
    connection* operator->() const noexcept { return connection_.get(); }

   private:
    std::shared_ptr<impl> from_;
    std::unique_ptr<connection> connection_;
  };

  // A null connection inside when there is none; then `why` says so.
  asio::awaitable<result<lease>> check_out(deadline until);
  void take_back(std::unique_ptr<connection> c);
  void hand_on(std::unique_ptr<connection> c);
  void answer(waiting& w);
  void connect_if_wanted();
  asio::awaitable<void> attempt();
  void fail_waiting();
  void hurry_waiting();
  void close();
  error why_none() const;

  asio::any_io_executor executor;
  secret url;
  pool_node node;
  async::task_group attempts;
  std::vector<std::unique_ptr<connection>> idle;  // the last one used is the first taken
  std::list<waiting*> queue;                      // each stands in its own coroutine
  std::minstd_rand random{std::random_device{}()};
};

error pool::impl::why_none() const {
  if (node.closed()) return {transient::shutting_down, "the service is stopping"};
  if (node.nobody_returns()) return {transient::database_away, "the database cannot be reached"};
  return {transient::database_busy, "no database connection became free in time"};
}

asio::awaitable<result<pool::impl::lease>> pool::impl::check_out(deadline until) {
  const auto self = shared_from_this();
  switch (node.on_request()) {
    case pool_node::next::take: {
      if (until <= steady_clock::now()) co_return error(transient::database_busy, "the deadline had passed");
      auto c = std::move(idle.back());
      idle.pop_back();
      node.took();
      co_return lease(self, std::move(c));
    }
    case pool_node::next::fail: connect_if_wanted(); co_return why_none();
    case pool_node::next::wait: break;
  }
  // In the queue for as long as this frame lives.
  struct place {
    place(impl& p, waiting* w) : of(p), at(p.queue.insert(p.queue.end(), w)) { of.node.waits(); }
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    ~place() {
      auto given = std::move((*at)->given);
      if (!(*at)->answered) of.node.waits_no_more();
      of.queue.erase(at);
      if (given) of.take_back(std::move(given));  // cancelled just when one came
    }
    impl& of;
    std::list<waiting*>::iterator at;
  };
  waiting mine(executor, node.nobody_returns() ? std::min(until, steady_clock::now() + patience) : until);
  const place held(*this, &mine);
  connect_if_wanted();
  while (!mine.answered && steady_clock::now() < mine.limit) {
    mine.wake.expires_at(mine.limit);
    co_await mine.wake.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  if (mine.given && steady_clock::now() < until) co_return lease(self, std::move(mine.given));
  co_return why_none();  // one that came too late goes back
}

// Counted as busy until now.
void pool::impl::take_back(std::unique_ptr<connection> c) {
  if (!node.closed() && c && c->usable() && !c->in_transaction()) {
    node.came_back();
    hand_on(std::move(c));
    return;
  }
  c.reset();
  node.lost();
  if (node.nobody_returns()) node.away() ? fail_waiting() : hurry_waiting();
  connect_if_wanted();
}

// Counted as idle until now.
void pool::impl::hand_on(std::unique_ptr<connection> c) {
  const auto first = std::find_if(queue.begin(), queue.end(), [](const waiting* w) { return !w->answered; });
  if (first == queue.end()) {
    idle.push_back(std::move(c));
    return;
  }
  node.took();
  (*first)->given = std::move(c);
  answer(**first);
}

void pool::impl::answer(waiting& w) {
  node.waits_no_more();
  w.answered = true;
  w.wake.cancel();
}

void pool::impl::connect_if_wanted() {
  while (node.should_connect()) {
    node.connecting();
    attempts.spawn("database connection", attempt());
  }
}

asio::awaitable<void> pool::impl::attempt() {
  const auto self = shared_from_this();
  // Cancelled or not, an attempt that ends is not counted any more.
  struct counted {
    pool_node& node;
    bool over = false;
    ~counted() {
      if (!over) node.connect_stopped();
    }
  };
  counted mine{node};
  for (;;) {
    auto opened = co_await connection::open(executor, url, steady_clock::now() + attempt_limit);
    if (node.closed()) co_return;
    if (opened) {
      mine.over = true;
      node.connected();
      hand_on(std::move(*opened));
      connect_if_wanted();
      co_return;
    }
    const bool go_on = node.connect_failed();
    mine.over = !go_on;
    if (node.nobody_returns()) fail_waiting();
    if (!go_on) co_return;
    asio::steady_timer pause(executor, node.backoff(std::uniform_real_distribution<>(0, 1)(random)));
    co_await pause.async_wait(asio::as_tuple(asio::use_awaitable));
  }
}

void pool::impl::fail_waiting() {
  for (auto* w : queue) {
    if (w->answered) continue;
    answer(*w);
  }
}

// Nobody's connection can come back any more: from now on the wait is for an attempt.
void pool::impl::hurry_waiting() {
  const auto limit = steady_clock::now() + patience;
  for (auto* w : queue) {
    w->limit = std::min(w->limit, limit);
    w->wake.cancel();
  }
}

void pool::impl::close() {
  if (node.closed()) return;
  node.close();
  while (!idle.empty()) {
    idle.pop_back();
    node.idle_closed();
  }
  fail_waiting();
  attempts.emit(asio::cancellation_type::terminal);
}

pool::pool(asio::any_io_executor executor, secret url, int size)
    : impl_(std::make_shared<impl>(std::move(executor), std::move(url), std::max(size, 1))) {}

pool::~pool() { impl_->close(); }

void pool::close() { impl_->close(); }

pool::counts pool::state() const noexcept { return impl_->node.state(); }

asio::awaitable<result<rows>> pool::query(const statement& what, parameters with, deadline until) {
  const auto self = impl_;
  pipeline p;
  p.add(what, std::move(with));
  bool cut_off = false;
  for (;;) {
    auto got = co_await self->check_out(until);
    if (!got) co_return got.error();
    const auto lent = std::move(*got);
    auto out = co_await lent->run(p, until);
    if (out.ok()) co_return std::move(out.answers.front());
    if (out.timed_out) co_return error(transient::database_busy, "the database did not answer in time");
    if (!out.lost) co_return to_error(out);
    // Found dead before anything was sent: the next one, until a fresh one is tried. Cut off: once more, for it only reads.
    if (out.sync_sent && std::exchange(cut_off, true))
      co_return error(transient::database_away, "the connection to the database was lost");
  }
}

asio::awaitable<outcome> pool::run(const pipeline& what, deadline until) {
  const auto self = impl_;
  for (;;) {
    auto got = co_await self->check_out(until);
    if (!got) {
      outcome none;
      none.lost = true;
      none.timed_out = got.error().code == transient::database_busy;
      none.lost_why = got.error().detail;
      co_return none;
    }
    const auto lent = std::move(*got);
    auto out = co_await lent->run(what, until);
    if (out.lost && !out.sync_sent && !out.timed_out) continue;
    if (out.refused && lent->in_transaction()) co_await lent->rollback(until);
    co_return out;
  }
}

}  // namespace recibo::postgres
