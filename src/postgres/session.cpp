#include "session.hpp"

#include "server_text.hpp"

#include <boost/asio/this_coro.hpp>

#include <cstdio>
#include <cstdlib>

namespace recibo::postgres {

namespace asio = boost::asio;

namespace {

// So long a plan is used. The server makes it for the size that the tables have, and keeps it until their statistics change: one
// made while they were tiny would be used long after.
constexpr std::chrono::seconds plans_kept{10};
const statement discard_plans{"", "DISCARD PLANS", {}};

// Prepared statement is gone (somebody said DISCARD); its result type changed under it (a migration).
constexpr std::string_view statement_gone = "26000", plan_outdated = "0A000", read_only_transaction = "25006";

std::string field(const PGresult* r, int code) {
  const char* text = PQresultErrorField(r, code);
  return text ? text : "";
}

server_error refusal(const PGresult* r) {
  return {field(r, PG_DIAG_SQLSTATE), field(r, PG_DIAG_CONSTRAINT_NAME), field(r, PG_DIAG_MESSAGE_PRIMARY)};
}

}  // namespace

session::~session() {
  io.unwatch();
  PQfinish(pg);
}

void session::begin_run() {
  if (running || lost) {
    std::fprintf(stderr, "recibo: broken invariant: a connection was used %s\n",
                 running ? "twice at a time" : "after it was lost");
    std::abort();
  }
  running = true;
}

asio::awaitable<outcome> session::run(const pipeline& what, deadline until) {
  begin_run();
  outcome out;
  // From here on a cancellation must not throw, or nobody would learn whether the sync had been sent.
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  io.arm(until);
  bool ready = in_time(out, until) && alive(out);
  const auto now = std::chrono::steady_clock::now();
  if (ready && now - planned_ > plans_kept && PQtransactionStatus(pg) == PQTRANS_IDLE) {
    planned_ = now;
    pipeline again;
    again.add(discard_plans);
    // What is lost with it has not been sent.
    outcome done;
    if (send(again, done)) {
      const auto all = [&] { return take(again, done); };
      co_await exchange(done, all);
    }
    ready = !lost;
    out.lost = lost;
    out.timed_out = done.timed_out;
    out.lost_why = std::move(done.lost_why);
  }
  if (ready && send(what, out)) {
    const auto all = [&] { return take(what, out); };
    co_await exchange(out, all);
  }
  io.disarm();
  running = false;
  co_await asio::this_coro::throw_if_cancelled(throws);
  co_return out;
}

asio::awaitable<outcome> session::script(std::string sql, deadline until) {
  begin_run();
  outcome out;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  io.arm(until);
  if (in_time(out, until) && alive(out)) {
    notices = 0;
    // The simple protocol knows no pipeline. Nothing is under way, so leaving it cannot fail but for a lost session.
    PQgetResult(pg);
    out.sync_sent = true;
    if (PQexitPipelineMode(pg) != 1 || PQsendQuery(pg, sql.c_str()) != 1) {
      lose(out, PQerrorMessage(pg));
    } else {
      const auto all = [&] { return take_script(out); };
      co_await exchange(out, all);
      if (!lost && PQenterPipelineMode(pg) != 1) lose(out, PQerrorMessage(pg));
    }
  }
  io.disarm();
  running = false;
  co_await asio::this_coro::throw_if_cancelled(throws);
  co_return out;
}

asio::awaitable<outcome> session::listen(std::vector<std::string>& heard, deadline until) {
  begin_run();
  outcome out;
  const bool throws = co_await asio::this_coro::throw_if_cancelled();
  co_await asio::this_coro::throw_if_cancelled(false);
  io.arm(until);
  while (!take_notifications(heard, out)) {
    const auto woken = co_await io.readable();
    if (woken == wake::ready) continue;
    if (woken == wake::cancelled) lose(out, "cancelled", true);
    break;
  }
  io.disarm();
  running = false;
  co_await asio::this_coro::throw_if_cancelled(throws);
  co_return out;
}

bool session::take_notifications(std::vector<std::string>& heard, outcome& out) {
  if (!alive(out)) return true;
  while (PGnotify* one = PQnotifies(pg)) {
    heard.emplace_back(one->extra);
    PQfreemem(one);
  }
  return !heard.empty();
}

template <class Take>
asio::awaitable<void> session::exchange(outcome& out, Take all_taken) {
  for (;;) {
    const int unsent = PQflush(pg);
    if (unsent < 0) {
      lose(out, PQerrorMessage(pg));
      co_return;
    }
    if (all_taken()) co_return;
    // Not one expression: GCC 12 is not to be trusted with co_await inside ?:.
    auto woken = wake::ready;
    if (unsent) {
      woken = co_await io.readable_or_writable();
    } else {
      woken = co_await io.readable();
    }
    if (woken != wake::ready) {
      out.timed_out = woken == wake::expired;
      lose(out, out.timed_out ? "the deadline passed" : "cancelled", woken == wake::cancelled);
      co_return;
    }
    if (!PQconsumeInput(pg)) {
      lose(out, PQerrorMessage(pg));
      co_return;
    }
  }
}

bool session::in_time(outcome& out, deadline until) {
  if (std::chrono::steady_clock::now() < until) return true;
  out.timed_out = true;
  lose(out, "the deadline had passed before anything was sent");
  return false;
}

bool session::alive(outcome& out) {
  if (!PQconsumeInput(pg)) {
    lose(out, PQerrorMessage(pg));
    return false;
  }
  PQisBusy(pg);             // parses what came while we were idle, so that its notices are not this run's
  if (!farewell.empty()) {  // the end of the stream may not have arrived yet
    lose(out, farewell);
    return false;
  }
  return true;
}

bool session::send(const pipeline& what, outcome& out) {
  notices = 0;
  synced_ = false;
  silences_ = 0;
  next_ = 0;
  expected_.clear();
  out.answers.reserve(what.steps().size());

  bool sent = true;
  for (std::size_t i = 0; sent && i < what.steps().size(); ++i) {
    const auto& step = what.steps()[i];
    // The server acts on COMMIT when it reads it, not when it reads the sync: from the last statement on, it may be done.
    if (i + 1 == what.steps().size()) out.sync_sent = true;
    if (!step.what->name.empty()) {
      auto& e = prepared_.of(*step.what);
      if (!e.there && !e.asked) {
        e.asked = true;
        expected_.push_back({i, true});
        sent = PQsendPrepare(pg, e.as.c_str(), e.sql.c_str(), static_cast<int>(step.what->types.size()),
                             step.what->types.data()) == 1;
      }
    }
    expected_.push_back({i, false});
    sent = sent && send_step(step);
  }
  if (sent && PQpipelineSync(pg) == 1) return true;
  lose(out, PQerrorMessage(pg));
  return false;
}

bool session::send_step(const pipeline::step& step) {
  values_.clear();
  lengths_.clear();
  for (const auto& v : step.with.values()) {
    values_.push_back(v ? v->data() : nullptr);
    lengths_.push_back(v ? static_cast<int>(v->size()) : 0);
  }
  const auto count = values_.size();
  if (formats_.size() < count) formats_.resize(count, 1);
  const auto& what = *step.what;
  const int n = static_cast<int>(count);
  if (what.name.empty()) {
    return PQsendQueryParams(pg, what.sql.c_str(), n, what.types.data(), values_.data(), lengths_.data(), formats_.data(), 1) ==
           1;
  }
  return PQsendQueryPrepared(pg, prepared_.of(what).as.c_str(), n, values_.data(), lengths_.data(), formats_.data(), 1) == 1;
}

bool session::take(const pipeline& what, outcome& out) {
  while (!PQisBusy(pg)) {
    PGresult* r = PQgetResult(pg);
    if (r) {
      silences_ = 0;
      take_one(r, what, out);
      out.noticed = notices > 0;
      if (synced_ || lost) return true;
      continue;
    }
    // Each statement's results end with a null. Several in a row mean that nothing more will come.
    if (++silences_ > 2) {
      lose(out, PQstatus(pg) == CONNECTION_BAD ? PQerrorMessage(pg) : "the server's answers are out of step");
      return true;
    }
  }
  return false;
}

bool session::take_script(outcome& out) {
  while (!PQisBusy(pg)) {
    PGresult* r = PQgetResult(pg);
    if (!r) {
      out.noticed = notices > 0;
      return true;
    }
    const rows owned(r);
    const auto status = PQresultStatus(r);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY || out.refused) continue;
    out.refused = refusal(r);
    if (out.refused->sqlstate.empty()) {
      lose(out, PQresultErrorMessage(r));
      return true;
    }
  }
  return false;
}

void session::take_one(PGresult* r, const pipeline& what, outcome& out) {
  rows owned(r);
  const auto status = PQresultStatus(r);
  if (status == PGRES_PIPELINE_SYNC) {
    synced_ = true;
    // An error without a result for the one that was expected: nothing is proven.
    if (!out.refused && out.answers.size() != what.steps().size()) lose(out, "the server's answers are out of step");
    return;
  }
  if (next_ >= expected_.size()) return;
  const auto mine = expected_[next_++];
  const auto& step = *what.steps()[mine.step].what;
  if (mine.prepare) prepared_.of(step).asked = false;
  if (status == PGRES_PIPELINE_ABORTED) return;
  if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK || status == PGRES_EMPTY_QUERY) {
    if (mine.prepare) {
      prepared_.of(step).there = true;
    } else {
      out.answers.push_back(std::move(owned));
    }
    return;
  }
  if (out.refused) return;
  out.refused = refusal(r);
  const std::string_view state = out.refused->sqlstate;
  if (state.empty()) {  // not the server but libpq: the socket broke, or memory ran out
    lose(out, PQresultErrorMessage(r));
    return;
  }
  if (state == statement_gone || state == plan_outdated) prepared_.forget(step);
  if (state == read_only_transaction) read_only = true;
}

void session::lose(outcome& out, std::string why, bool cancelled) {
  lost = true;
  out.lost = true;
  // Exactly one of three: what the server may have said last goes into the reason.
  if (out.refused && !out.refused->sqlstate.empty()) why = out.refused->sqlstate + " " + out.refused->message + "; " + why;
  out.refused.reset();
  out.lost_why = one_line(why);
  if (!cancelled) log_server_text("database connection lost", out.lost_why);
}

}  // namespace recibo::postgres
