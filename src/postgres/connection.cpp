#include "recibo/postgres/connection.hpp"

#include "resolve.hpp"
#include "server_text.hpp"
#include "session.hpp"

#include <algorithm>

namespace recibo::postgres {

namespace asio = boost::asio;
using std::chrono::steady_clock;

struct connection::impl {
  explicit impl(std::unique_ptr<session> reached) : s(std::move(reached)) {}
  std::unique_ptr<session> s;
};

namespace {

// What every session is set to (decision 12). Some of it is what our promises rest on, whatever role or database say:
// a commit is durable, a statement sees what was committed before it, warnings are told (write path, rule 8).
statement set_up(const conninfo& where, const session_options& how) {
  std::string sql = R"(SELECT pg_backend_pid(),
    set_config('timezone', 'UTC', false),
    set_config('datestyle', 'ISO, YMD', false),
    set_config('search_path', 'recibo, pg_temp', false),
    set_config('standard_conforming_strings', 'on', false),
    set_config('client_min_messages', 'notice', false),
    set_config('default_transaction_isolation', 'read committed', false),
    set_config('synchronous_commit', coalesce(nullif(current_setting('synchronous_commit'), 'off'), 'on'), false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('jit', 'off', false))";
  if (how.by_index)
    sql +=
        ", set_config('enable_seqscan', 'off', false), set_config('enable_hashjoin', 'off', false), "
        "set_config('enable_mergejoin', 'off', false)";
  if (!where.sets("idle_in_transaction_session_timeout")) {
    sql += ", set_config('idle_in_transaction_session_timeout', '5s', false)";
  }
  if (!where.sets("statement_timeout")) {
    sql += ", set_config('statement_timeout', '" + std::to_string(how.statement_timeout.count()) + "', false)";
  }
  return {"", std::move(sql), {}};
}

// This attempt's share of the time that is left, so that a host which swallows packets leaves time for the others.
deadline share(deadline until, std::size_t left, std::optional<int> connect_timeout) {
  const auto at = steady_clock::now();
  auto mine = at + (until - at) / static_cast<int>(std::max<std::size_t>(left, 1));
  if (connect_timeout) mine = std::min(mine, at + std::chrono::seconds(*connect_timeout));
  return std::min(mine, until);
}

// The process that serves us right now; 0: it did not answer.
asio::awaitable<int> serving_pid(session& s, const statement& asked, deadline until) {
  pipeline p;
  p.add(asked);
  const auto answer = co_await s.run(p, until);
  if (!answer.ok()) {
    if (answer.refused) log_server_text("no database session", answer.refused->message);
    co_return 0;
  }
  co_return answer.answers[0].int4(0, 0);
}

// Two sessions that are open at once and served by one process: a pooler deals the processes out by transaction. Then
// session settings, prepared statements and session locks are anybody's. A pooler is there when the process is not the
// one that the server's greeting named; without one this costs nothing.
asio::awaitable<bool> shares_processes(asio::any_io_executor executor, const conninfo& where, target at, std::string attrs,
                                       session& first, int first_pid, deadline until) {
  static const statement ask{"", "SELECT pg_backend_pid()", {}};
  // A pooler in session mode may have no process left for the second one: then it waits, and that says nothing.
  const auto half = share(until, 2, std::nullopt);
  int second_pid = 0;
  auto second = co_await connect(executor, where, at, attrs, half);
  if (second.reached) second_pid = co_await serving_pid(*second.reached, ask, half);
  const int first_again = co_await serving_pid(first, ask, until);
  co_return second_pid == first_pid || (first_again != 0 && first_again != first_pid);
}

constexpr const char* pooled =
    "the database URL leads to a pooler in transaction mode; a direct connection or a pooler in session mode is needed";

}  // namespace

connection::connection(std::unique_ptr<impl> i) : impl_(std::move(i)) {}
connection::~connection() = default;

asio::awaitable<result<std::unique_ptr<connection>>> connection::open(asio::any_io_executor executor, secret url,
                                                                      deadline until) {
  return open(std::move(executor), std::move(url), until, session_options{});
}

asio::awaitable<result<std::unique_ptr<connection>>> connection::open(asio::any_io_executor executor, secret url, deadline until,
                                                                      session_options how) {
  const auto parsed = conninfo::parse(url);
  if (!parsed) co_return parsed.error();
  const auto& where = *parsed;
  const auto attrs = where.passes();
  const auto& targets = where.targets();
  const auto set = set_up(where, how);
  bool answered = false;
  auto hosts_left = targets.size() * attrs.size();
  for (const auto& pass : attrs) {
    for (const auto& host : targets) {
      const auto host_until = share(until, hosts_left--, std::nullopt);
      const auto addresses = co_await resolve(executor, host, host_until);
      if (addresses.empty()) log_server_text("no database connection", "the host name " + host.host + " is not known");
      auto addresses_left = addresses.size();
      for (const auto& address : addresses) {
        const auto address_until = share(host_until, addresses_left--, where.connect_timeout());
        auto tried = co_await connect(executor, where, address, pass, address_until);
        answered |= tried.answered;
        if (!tried.reached) continue;
        auto& s = *tried.reached;
        const int pid = co_await serving_pid(s, set, address_until);
        if (pid == 0) continue;
        if (pid != PQbackendPID(s.pg)) {
          const bool shared = co_await shares_processes(executor, where, address, pass, s, pid, until);
          if (shared) co_return error(transient::database_away, pooled);
          if (s.lost) continue;
        }
        co_return std::unique_ptr<connection>(new connection(std::make_unique<impl>(std::move(tried.reached))));
      }
    }
  }
  co_return error(transient::database_away,
                  answered ? "a database server answered and refused the session" : "no database server could be reached");
}

asio::awaitable<outcome> connection::run(const pipeline& what, deadline until) { return impl_->s->run(what, until); }

asio::awaitable<outcome> connection::script(std::string sql, deadline until) { return impl_->s->script(std::move(sql), until); }

asio::awaitable<outcome> connection::listen(std::vector<std::string>& heard, deadline until) {
  return impl_->s->listen(heard, until);
}

asio::awaitable<outcome> connection::rollback(deadline until) {
  static const statement undo{"", "ROLLBACK", {}};
  pipeline p;
  p.add(undo);
  co_return co_await run(p, until);
}

bool connection::usable() const noexcept {
  const auto& s = *impl_->s;
  return !s.lost && !s.running && !s.read_only && PQstatus(s.pg) == CONNECTION_OK;
}

bool connection::in_transaction() const noexcept { return PQtransactionStatus(impl_->s->pg) != PQTRANS_IDLE; }

int connection::backend_pid() const noexcept { return PQbackendPID(impl_->s->pg); }

}  // namespace recibo::postgres
