#include "writer.hpp"

#include "group.hpp"
#include "park.hpp"
#include "recibo/observe/log.hpp"
#include "recibo/postgres/sqlstate.hpp"

#include <algorithm>
#include <set>

namespace recibo::record {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Opening a session; a host that does not answer is given up after it.
constexpr milliseconds connect_deadline{2'000};
// One round trip. The server's statement_timeout is just below; COMMIT has no other bound than this (rule 8).
constexpr milliseconds run_deadline{4'500};
// How long the waiting lane waits for a row.
constexpr std::int32_t lane_lock_timeout_ms = 1'000;
// Lost races in a row before the batch is split.
constexpr int races_max = 3;
// Times that an entry goes back to the queue because its session failed before anything was written.
constexpr int failures_max = 2;
constexpr std::size_t culprits_max = 5;
constexpr std::chrono::seconds culprits_window{10};

namespace oid = postgres::oid;

const postgres::statement still_there{"still_there", "SELECT 1", {}};
const postgres::statement lane_timeout{"lane_timeout", "SELECT set_config('lock_timeout', $1, true)", {oid::text}};

bool proven(const postgres::outcome& o, const storage::checked_pipeline& what) {
  if (!o.ok() || o.noticed || o.answers.size() != what.expected.size()) return false;
  if (o.answers.back().tag() != "COMMIT") return false;
  for (std::size_t i = 0; i < what.expected.size(); ++i)
    if (what.expected[i] >= 0 && o.answers[i].affected() != what.expected[i]) return false;
  return true;
}

// All operations of one request, in the one order that all replicas keep: none waits for another in a circle.
void append_lock_waiting(storage::checked_pipeline& to, const callback_group& g) {
  std::set<std::string_view> request_ids;
  std::set<std::string_view> references;
  for (const auto& c : g.parts) {
    if (!c.request_id.empty()) {
      request_ids.insert(c.request_id);
    } else if (!c.references.empty()) {
      references.insert(c.references.front());
    }
  }
  for (const auto id : request_ids) storage::append_lock_waiting(to, id);
  for (const auto r : references) storage::append_lock_waiting(to, storage::alias_name{g.parts.front().provider->name, r});
}

void append_lock_waiting(storage::checked_pipeline& to, const work& w) {
  if (const auto* g = std::get_if<callback_group>(&w)) return append_lock_waiting(to, *g);
  if (const auto* c = std::get_if<callback>(&w); c && c->request_id.empty()) {
    if (!c->references.empty()) storage::append_lock_waiting(to, storage::alias_name{c->provider->name, c->references.front()});
    return;
  }
  if (const auto* c = std::get_if<callback>(&w)) storage::append_lock_waiting(to, c->request_id);
  if (const auto* r = std::get_if<registration>(&w)) storage::append_lock_waiting(to, r->request_id);
  if (const auto* e = std::get_if<event>(&w)) storage::append_lock_waiting(to, e->request_id);
  if (const auto* l = std::get_if<look_up>(&w)) storage::append_lock_waiting(to, l->request_id);
  if (const auto* p = std::get_if<payload_access>(&w)) storage::append_lock_waiting(to, p->request_id);
  if (const auto* m = std::get_if<workflow_change>(&w)) storage::append_lock_waiting(to, m->request_id);
  if (const auto* m = std::get_if<rematch>(&w)) storage::append_lock_waiting(to, m->request_id);
  if (const auto* a = std::get_if<review_action>(&w)) storage::append_lock_waiting(to, a->request_id);
  if (const auto* t = std::get_if<timer_due>(&w)) storage::append_lock_waiting(to, t->request_id);
  if (const auto* v = std::get_if<review_due>(&w)) storage::append_lock_waiting(to, v->request_id);
}

// Only what is ours, or was stored before, is left of it.
void make_unstorable(callback& c) {
  c.unprocessable = error(permanent::malformed_field, "a value cannot be stored");
  c.event_raw.clear();
  c.items.clear();
  c.occurred_at.reset();
  if (!c.looked_up) {
    c.request_id.clear();
    c.key.clear();
    return;
  }
  // Whose it is was known before it was asked for, and the look-up is settled with it. It uses up no key of an answer, so that
  // it counts once it can be stored.
  canonical key;
  key.add(c.key).add(to_string(c.looked_up->id));
  c.key = key.bytes();
  c.references.clear();
  c.unproven_references.clear();
  c.named_instead.reset();
  c.sequence.reset();
  c.amount.reset();
  c.currency.reset();
  c.account.reset();
  c.result.clear();
}

}  // namespace

bool desk::too_many_culprits(steady_time now) {
  while (!culprits.empty() && culprits.front() + culprits_window < now) culprits.pop_front();
  return culprits.size() > culprits_max;
}

writer::writer(boost::asio::any_io_executor executor, secret url, desk& shared)
    : executor_(std::move(executor)), url_(std::move(url)), desk_(shared) {}

boost::asio::awaitable<bool> writer::connect() {
  if (connected() && !desk_.away && !desk_.in_doubt) co_return true;
  if (connected()) {
    // Another session was lost, or given up because nothing answered; whether this one still works is to be seen.
    postgres::pipeline question;
    question.add(still_there);
    const auto answer = co_await session_->run(question, steady_clock::now() + connect_deadline);
    if (answer.ok()) {
      if (desk_.away) log::info("database answers again", {{"part", "recorder"}});
      desk_.away = desk_.in_doubt = false;
      co_return true;
    }
  }
  lose_session();
  auto opened = co_await postgres::connection::open(executor_, url_, steady_clock::now() + connect_deadline);
  if (!opened) {
    if (!desk_.away) log::warn("database away", {{"part", "recorder"}, {"detail", opened.error().detail}});
    desk_.away = true;
    desk_.queue.fail_all(error(transient::database_away, "the database cannot be reached"));
    co_return false;
  }
  session_ = std::move(*opened);
  if (desk_.away || !desk_.ever_connected) log::info("database connected", {{"part", "recorder"}});
  // It may be another server than before, which need not have what the last one had.
  desk_.workflows.forget_stored();
  desk_.away = desk_.in_doubt = false;
  desk_.ever_connected = true;
  ++desk_.writers_connected;
  co_return true;
}

void writer::lose_session() {
  if (!session_) return;
  session_.reset();
  --desk_.writers_connected;
}

void writer::close() { lose_session(); }

void writer::finish_all(std::vector<entry_ptr>& entries, const error& why) {
  for (const auto& e : entries) {
    e->finish(why);
    desk_.queue.done(e);
  }
  entries.clear();
}

void writer::give_back(std::vector<entry_ptr>& entries, const error& why) {
  std::vector<entry_ptr> again;
  for (const auto& e : entries) {
    if (++e->failures <= failures_max && !desk_.away) {
      again.push_back(e);
    } else {
      e->finish(why);
      desk_.queue.done(e);
    }
  }
  desk_.queue.put_back(again);
  entries.clear();
  desk_.wake();
}

boost::asio::awaitable<void> writer::process(std::vector<entry_ptr> entries, lane which) {
  for (int races = 0; !entries.empty();) {
    const bool careful = races > 0;
    const auto ended = co_await attempt(entries, which, careful);
    if (ended == end::settled) co_return;
    if (ended == end::again && ++races < races_max) continue;
    if (ended == end::again && entries.size() == 1) {
      give_back(entries, error(transient::database_busy, "others were faster several times"));
      co_return;
    }
    // Halves, until the one that fails stands alone (rule 7).
    const auto middle = entries.begin() + static_cast<std::ptrdiff_t>(entries.size() / 2);
    std::vector<entry_ptr> first(entries.begin(), middle), second(middle, entries.end());
    const bool first_reachable = co_await connect();
    if (!first_reachable) {
      finish_all(entries, error(transient::database_away, "the database cannot be reached"));
      co_return;
    }
    co_await process(std::move(first), which);
    co_await process(desk_.queue.keep_order(std::move(second)), which);
    co_return;
  }
}

boost::asio::awaitable<writer::end> writer::attempt(std::vector<entry_ptr>& entries, lane which, bool careful) {
  const bool reachable = co_await connect();
  if (!reachable) {
    finish_all(entries, error(transient::database_away, "the database cannot be reached"));
    co_return end::settled;
  }
  const auto began = steady_clock::now();
  std::vector<const work*> works;
  works.reserve(entries.size());
  for (const auto& e : entries) works.push_back(&e->what);
  std::unique_ptr<plan> planned;
  if (which == lane::parking) {
    planned = std::make_unique<park>(std::move(works));
  } else {
    planned = std::make_unique<batch>(std::move(works), desk_.workflows, careful);
  }
  auto& b = *planned;

  storage::checked_pipeline first;
  first.add(storage::begin, {});
  if (which == lane::waiting) {
    postgres::parameters timeout;
    timeout.text(std::to_string(lane_lock_timeout_ms));
    first.add(lane_timeout, std::move(timeout));
    append_lock_waiting(first, entries.front()->what);
  }
  const auto looks_from = first.statements.steps().size();
  b.append_first_look(first);
  auto seen = co_await session_->run(first.statements, steady_clock::now() + run_deadline);
  if (!seen.ok()) co_return co_await failed(entries, seen, false, which);
  b.take_first_look(seen.answers, looks_from);

  for (;;) {
    storage::checked_pipeline next;
    if (!b.append_next_look(next)) break;
    auto more = co_await session_->run(next.statements, steady_clock::now() + run_deadline);
    if (!more.ok()) co_return co_await failed(entries, more, false, which);
    const auto taken = b.take_next_look(more.answers, 0);
    if (!taken) {
      co_await session_->rollback(steady_clock::now() + run_deadline);
      if (entries.size() > 1) co_return end::split;
      finish_all(entries, taken.error());
      co_return end::settled;
    }
  }

  b.decide(now());
  if (entries.front()->alone) {
    const auto taken_back = co_await session_->rollback(steady_clock::now() + run_deadline);
    if (!taken_back.ok() || !session_->usable()) lose_session();
    settle(entries, b.verdicts());
    co_return end::settled;
  }
  storage::checked_pipeline writes;
  b.append_writes(writes);
  writes.add(storage::commit, {});
  auto written = co_await session_->run(writes.statements, steady_clock::now() + run_deadline);
  if (!written.ok()) co_return co_await failed(entries, written, true, which);
  if (!proven(written, writes)) {
    // COMMIT was answered, but not as decided: what is in the database is not known to be what we would answer (rule 8).
    log::error("commit without proof", {{"entries", entries.size()},
                                        {"tag", written.answers.empty() ? "" : written.answers.back().tag()},
                                        {"noticed", written.noticed}});
    lose_session();
    finish_all(entries, error(uncertain::commit_unknown, "the database did not prove the commit"));
    co_return end::settled;
  }
  b.committed(desk_.metrics);
  if (desk_.told && !b.told().empty()) desk_.told(b.told());
  const std::chrono::duration<double> took = steady_clock::now() - began;
  if (desk_.metrics) {
    desk_.metrics->record_batch(entries.size());
    for (const auto& e : entries) {
      if (e->provider.empty()) continue;
      desk_.metrics->stage(e->provider, "queue", std::chrono::duration<double>(began - e->arrived).count());
      desk_.metrics->stage(e->provider, "commit", took.count());
    }
  }
  // Only what came as it comes tells how fast we are: a lane waits for a lock, an idle batch is one callback.
  if (which == lane::batches && entries.size() > 1) {
    const double rate = static_cast<double>(entries.size()) / std::max(took.count(), 1e-4);
    desk_.rate = desk_.rate == 0 ? rate : 0.9 * desk_.rate + 0.1 * rate;
  }
  settle(entries, b.verdicts());
  co_return end::settled;
}

void writer::settle(std::vector<entry_ptr>& entries, const std::vector<verdict>& verdicts) {
  const auto now = steady_clock::now();
  bool held = false;
  std::vector<entry_ptr> known;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    auto& e = entries[i];
    const auto& v = verdicts[i];
    switch (v.is) {
      case verdict::kind::decided:
        e->finish(v.outcome);
        desk_.queue.cleared(e);
        desk_.queue.done(e);
        break;
      case verdict::kind::refused:
        e->finish(v.why);
        desk_.queue.done(e);
        break;
      case verdict::kind::busy:
        desk_.queue.hold(e, now);
        held = true;
        break;
      case verdict::kind::absent:
        desk_.queue.to_parking(e);
        held = true;
        break;
      case verdict::kind::known:
        if (auto* g = std::get_if<callback_group>(&e->what)) {
          // What was parked of it is committed; the rest is decided with the operations that are there.
          g->settled = v.settled;
          g->payload = v.payload;
        }
        known.push_back(e);
        held = true;
        break;
      case verdict::kind::undecided:
        e->finish(error(transient::our_fault, "not decided"));
        desk_.queue.done(e);
        break;
    }
  }
  desk_.queue.put_back(known);
  entries.clear();
  if (held) desk_.wake();
}

boost::asio::awaitable<writer::end> writer::failed(std::vector<entry_ptr>& entries, postgres::outcome& o, bool wrote,
                                                   lane which) {
  const auto why = postgres::to_error(o);
  if (o.lost) {
    log::warn("database session lost", {{"part", "recorder"},
                                        {"entries", entries.size()},
                                        {"wrote", wrote},
                                        {"timed_out", o.timed_out},
                                        {"detail", o.lost_why}});
    lose_session();
    desk_.in_doubt = true;
    if (o.timed_out) {
      // Nothing answers any more: what waits would wait in vain.
      desk_.away = true;
      desk_.queue.suspect(entries, steady_clock::now());
      finish_all(entries, wrote && o.sync_sent ? error(uncertain::commit_unknown, "no answer to the commit")
                                               : error(transient::database_away, "the database does not answer"));
      desk_.queue.fail_all(error(transient::database_away, "the database does not answer"));
      co_return end::settled;
    }
    if (wrote && o.sync_sent) {
      desk_.queue.suspect(entries, steady_clock::now());
      finish_all(entries, error(uncertain::commit_unknown, "the connection was lost in the commit"));
    } else {
      desk_.queue.suspect(entries, steady_clock::now());
      give_back(entries, error(transient::database_away, "the connection to the database was lost"));
    }
    co_return end::settled;
  }

  const auto kind = postgres::classify(o);
  const auto rolled_back = co_await session_->rollback(steady_clock::now() + run_deadline);
  if (!rolled_back.ok() || !session_->usable()) lose_session();
  // RC001: a row that was to be changed has gone, so somebody else was faster there too (recibo.expect_rows).
  if (kind == postgres::fault::race || o.refused->sqlstate == "RC001") {
    log::debug("another transaction was faster", {{"constraint", o.refused->constraint}});
    co_return end::again;
  }
  if (kind == postgres::fault::transient) {
    if (which == lane::waiting && o.refused->sqlstate == "55P03") {
      // The row is still held: the next operation of the lane has its turn.
      const auto at = steady_clock::now();
      for (const auto& e : entries) desk_.queue.hold(e, at);
      entries.clear();
      desk_.wake();
      co_return end::settled;
    }
    log::warn("database refused for now", {{"part", "recorder"}, {"sqlstate", o.refused->sqlstate}, {"entries", entries.size()}});
    give_back(entries, why);
    co_return end::settled;
  }
  if (kind == postgres::fault::uncertain) {
    finish_all(entries, why);
    co_return end::settled;
  }

  const auto at = steady_clock::now();
  if (entries.size() > 1 && !desk_.too_many_culprits(at)) co_return end::split;
  // Class 22 quotes the value that it is about, which is the sender's: its message stays out of the log (R29).
  const bool quotes = o.refused->sqlstate.starts_with("22");
  log::error("database refused", {{"part", "recorder"},
                                  {"sqlstate", o.refused->sqlstate},
                                  {"constraint", o.refused->constraint},
                                  {"message", quotes ? std::string_view() : std::string_view(o.refused->message)},
                                  {"entries", entries.size()}});
  if (entries.size() > 1) {
    finish_all(entries, error(transient::our_fault, "recording fails repeatedly"));
    co_return end::settled;
  }
  co_await settle_culprit(entries.front(), kind);
  entries.clear();
  co_return end::settled;
}

boost::asio::awaitable<void> writer::settle_culprit(entry_ptr e, postgres::fault why) {
  // The sender's data, proven by standing alone: kept with its raw body, and answered 422 (rule 6). Of several events of
  // one request nobody can say which it is.
  std::vector<callback*> unstorable;
  if (auto* c = std::get_if<callback>(&e->what); c && !c->unprocessable) unstorable.push_back(c);
  if (auto* g = std::get_if<callback_group>(&e->what)) {
    for (std::size_t i = 0; i < g->parts.size(); ++i)
      if (!is_settled(*g, i) && !g->parts[i].unprocessable) unstorable.push_back(&g->parts[i]);
  }
  if (why == postgres::fault::senders_data && !unstorable.empty()) {
    std::for_each(unstorable.begin(), unstorable.end(), [](callback* c) { make_unstorable(*c); });
    std::vector<entry_ptr> alone{e};
    co_await process(std::move(alone));
    co_return;
  }
  if (why == postgres::fault::senders_data) {
    e->finish(error(permanent::malformed_field, "a value cannot be stored"));
  } else {
    desk_.culprits.push_back(steady_clock::now());
    std::vector<entry_ptr> alone{e};
    desk_.queue.suspect(alone, steady_clock::now());
    e->finish(error(transient::our_fault, "not recorded because of a fault of ours"));
  }
  desk_.queue.done(e);
}

}  // namespace recibo::record
