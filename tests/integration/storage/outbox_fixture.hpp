// A database of its own with notifications for "ledger", and words to claim them and to say what became of them.
#pragma once

#include "recibo/storage/outbox.hpp"
#include "support/cluster.hpp"
#include "support/run_coro.hpp"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

namespace recibo::storage {

class outbox_fixture : public ::testing::Test {
 protected:
  // One pending notification of operation number `operation`, due a while ago.
  void add(int operation, int sequence = 1, const std::string& status = "pending") {
    db.sql(
        "INSERT INTO recibo.notifications (id, operation, sequence, destination, type, created_at, status, dead_at, reason) "
        "SELECT gen_random_uuid(), '" +
        key(operation) + "', " + std::to_string(sequence) + ", 'ledger', 'operation.accepted', now() - interval '1 minute', '" +
        status + "', CASE WHEN '" + status + "' = 'dead' THEN now() END, CASE WHEN '" + status +
        "' = 'dead' THEN 'server_error' END");
  }
  static std::string key(int operation) {
    return "01900000-0000-7000-8000-0000000000" + std::string(operation < 10 ? "0" : "") + std::to_string(operation);
  }
  std::string of(int operation, const std::string& what, int sequence = 1) {
    return db.sql("SELECT coalesce((" + what + ")::text, '-') FROM recibo.notifications WHERE operation = '" + key(operation) +
                  "' AND sequence = " + std::to_string(sequence));
  }
  std::string destination(const std::string& what) {
    return db.sql("SELECT coalesce((" + what + ")::text, '-') FROM recibo.destinations WHERE name = 'ledger'");
  }
  void run(const std::function<boost::asio::awaitable<void>(postgres::pool&)>& body) {
    boost::asio::io_context context;
    const auto all = [&]() -> boost::asio::awaitable<void> {
      postgres::pool pool(context.get_executor(), db.service_url(), 2);
      co_await body(pool);
    };
    test::run_coro(context, all);
  }
  static claim_query any(int limit = 10, bool probe = false) {
    claim_query what;
    what.limit = limit;
    what.probe = probe;
    return what;
  }
  static attempt_outcome outcome(const claimed_notification& of, attempt_outcome::next what, std::optional<bool> taken) {
    attempt_outcome out;
    out.id = of.id;
    out.operation = of.operation;
    out.sequence = of.sequence;
    out.attempt = of.attempts;
    out.what = what;
    out.wait = std::chrono::hours(what == attempt_outcome::next::retry ? 1 : 0);
    out.reason = what == attempt_outcome::next::delivered ? "delivered" : "server_error";
    out.taken = taken;
    return out;
  }
  const dispatcher_id mine = make_id<dispatcher_id>(now()), other = make_id<dispatcher_id>(now());
  test::database db;
};

}  // namespace recibo::storage
