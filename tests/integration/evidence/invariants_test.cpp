// The invariants of contract section 7 against a database that was changed behind the service's back.
#include "integration/api/api_bench.hpp"

#include <gtest/gtest.h>

namespace recibo::test {
namespace {

class Invariants : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const std::string id : {"r-1", "r-2"}) {
      ASSERT_EQ(
          api.accept(
                 R"({"provider":"p1","amount":"19.99","currency":"EUR","reference":"ref-)" + id +
                 R"(","items":[{"item_id":"i1"},{"item_id":"i2"}],"metadata":{"b":1.50,"a":"é"},"deadline":"2030-01-01T00:00:00Z","request_id":")" +
                 id + "\"}")
              .status,
          201);
      api.record(api.callback(id, "k-1", "processing"));
      api.record(api.callback(id, "k-1", "processing"));
      const auto resolved = api.raise(
          id, R"({"event":"resolve","reason":"seen","evidence":{"z":1e2,"a":[1.0,"x"]},"references":["later-)" + id + "\"]}",
          "ops");
      ASSERT_EQ(resolved.status, 200) << resolved.body;
      api.record(api.callback(id, "k-2", "failed"));
      api.record(api.callback(id, "k-1", "processing", "1.00"));
      const auto seen =
          api.db.sql("SELECT delivery FROM recibo.audit a JOIN recibo.operations o ON o.id = a.operation WHERE o.request_id = '" +
                     id + "' AND a.sequence = 2");
      ASSERT_EQ(api.get("/v1/deliveries/" + seen + "/payload", "ops").status, 200);
    }
    operation = api.db.sql("SELECT id FROM recibo.operations WHERE request_id = 'r-1'");
    delivery = api.db.sql("SELECT delivery FROM recibo.audit WHERE operation = '" + operation + "' AND sequence = 2");
  }
  std::string at(int sequence) const {
    return " WHERE operation = '" + operation + "' AND sequence = " + std::to_string(sequence);
  }
  std::string of_operation() const { return " WHERE operation = '" + operation + "'"; }

  // Does `change`, expects it to be noticed with `rule` for r-1, and undoes it.
  void expect_noticed(const std::string& table, const std::string& set, const std::string& where, const std::string& rule) {
    ASSERT_NE(api.db.sql("SELECT count(*) FROM recibo." + table + where), "0") << table << where;
    api.db.sql("CREATE TABLE public.kept AS SELECT * FROM recibo." + table);
    api.db.sql(set.empty() ? "DELETE FROM recibo." + table + where : "UPDATE recibo." + table + " SET " + set + where);
    const auto what = table + " " + (set.empty() ? "removed" : set) + where;
    for (const auto& only : {std::optional<std::string>(), std::optional<std::string>("r-1")}) {
      const auto found = api.violations(only);
      const auto named = [&](const std::string& line) {
        return line.rfind("r-1: " + rule, 0) == 0 || line.rfind(operation + ": " + rule, 0) == 0;
      };
      EXPECT_TRUE(std::any_of(found.begin(), found.end(), named)) << what << (only ? " (alone)" : "") << "\n"
                                                                  << ::testing::PrintToString(found);
      const auto other = [](const std::string& line) { return line.rfind("r-2", 0) == 0; };
      EXPECT_FALSE(std::any_of(found.begin(), found.end(), other)) << what << "\n" << ::testing::PrintToString(found);
    }
    EXPECT_EQ(api.violations("r-2"), std::vector<std::string>()) << what;
    api.db.sql("DELETE FROM recibo." + table + "; INSERT INTO recibo." + table +
               " SELECT * FROM public.kept; DROP TABLE public.kept");
    ASSERT_EQ(api.violations(), std::vector<std::string>()) << "undone: " << what;
  }

  api_bench api;
  std::string operation, delivery;
};

TEST_F(Invariants, HoldForWhatTheServiceWrote) {
  EXPECT_EQ(api.violations(), std::vector<std::string>());
  EXPECT_EQ(api.report->operations, 2);
  EXPECT_EQ(api.report->facts, 14);
  EXPECT_EQ(api.violations("r-1"), std::vector<std::string>());
  EXPECT_EQ(api.report->operations, 1);
  EXPECT_EQ(api.report->facts, 7);
}

TEST_F(Invariants, HoldWhateverThePagesAre) {
  for (const int operations : {1, 2, 3}) {
    for (const int facts : {1, 2, 7, 8}) {
      evidence::verify_options how;
      how.operations_per_page = operations;
      how.facts_per_page = facts;
      EXPECT_EQ(api.violations(std::nullopt, how), std::vector<std::string>());
      EXPECT_EQ(api.report->operations, 2);
      EXPECT_EQ(api.report->facts, 14);
    }
  }
}

TEST_F(Invariants, SayWhenThereIsNoSuchOperation) {
  EXPECT_EQ(api.violations("nothing"), std::vector<std::string>());
  EXPECT_FALSE(api.report->found);
}

TEST_F(Invariants, NoticeChangedOperations) {
  const auto where = " WHERE id = '" + operation + "'";
  expect_noticed("operations", "state = 'failed'", where, "transitions");
  expect_noticed("operations", "version = 1", where, "transitions");
  expect_noticed("operations", "sequence = 6", where, "chain");
  expect_noticed("operations", "chain_hash = sha256('x')", where, "chain");
  expect_noticed("operations", "provider = 'p2'", where, "deliveries");
  expect_noticed("operations", "review_open = false", where, "references");
  expect_noticed("operations", "workflow = 7", where, "workflows");
}

TEST_F(Invariants, NoticeChangedAuditRows) {
  for (const auto* set :
       {"digest = sha256('x')", "hash = sha256('x')", "at = at - interval '1 hour'", "kind = 'payload_access'"}) {
    for (int sequence = 1; sequence <= 6; ++sequence) expect_noticed("audit", set, at(sequence), "chain");
  }
  expect_noticed("audit", "actor = 'somebody'", at(1), "registration");
  expect_noticed("audit", "actor = 'somebody'", at(2), "deliveries");
  expect_noticed("audit", "actor = 'somebody'", at(4), "transitions");
  expect_noticed("audit", "actor = 'somebody'", at(7), "references");
  expect_noticed("audit", "delivery = NULL", at(2), "deliveries");
  for (int sequence = 1; sequence <= 7; ++sequence) expect_noticed("audit", "", at(sequence), "chain");
}

TEST_F(Invariants, NoticeChangedTransitions) {
  for (const auto* set : {"to_state = 'failed'", "from_state = 'unknown'", "event = 'fail'", "version = 5", "actor = 'somebody'",
                          "actor_kind = 'client'", "at = at - interval '1 hour'", "delivery = NULL"}) {
    expect_noticed("transitions", set, at(2), "transitions");
  }
  expect_noticed("transitions", "result = NULL", at(2), "chain");
  expect_noticed("transitions", "reason = 'other'", at(4), "chain");
  expect_noticed("transitions", "evidence = '{\"a\":[1.00,\"x\"],\"z\":100}'", at(4), "chain");
  expect_noticed("transitions", "evidence = NULL", at(4), "transitions");
  expect_noticed("transitions", "notifications = 2", at(4), "outbox");
  for (const int sequence : {2, 4}) expect_noticed("transitions", "", at(sequence), "transitions");
}

TEST_F(Invariants, NoticeChangedDeliveriesAndPayloads) {
  const auto where = " WHERE id = '" + delivery + "'";
  for (const auto* set : {"disposition = 'stale'", "secret = 'other'", "answer_status = 201"})
    expect_noticed("deliveries", set, where, "chain");
  for (const auto* set : {"provider = 'p2'", "received_at = received_at - interval '1 hour'", "operation = gen_random_uuid()"}) {
    expect_noticed("deliveries", set, where, "deliveries");
  }
  expect_noticed("deliveries", "body_digest = sha256('x')", where, "payloads");
  expect_noticed("deliveries", "key = 'x'", where, "claims");
  expect_noticed("deliveries", "", where, "deliveries");
  expect_noticed("payloads", "body = body || '\\x20'::bytea", where, "payloads");
  expect_noticed("payloads", "", where, "payloads");
}

TEST_F(Invariants, NoticeChangedRegistrations) {
  for (const auto* set : {"amount = '1.00'", "currency = 'USD'", "action = 'other'", "deadline = now()",
                          "metadata = '{\"a\":\"é\",\"b\":1.5}'", "intent = sha256('x')"}) {
    expect_noticed("registrations", set, of_operation(), "registration");
  }
  expect_noticed("registrations", "client = 'storefront'", of_operation(), "registration");
  expect_noticed("registrations", "", of_operation(), "registration");
  expect_noticed("aliases", "alias = 'other'", of_operation() + " AND alias = 'ref-r-1'", "registration");
  expect_noticed("aliases", "", of_operation() + " AND alias = 'ref-r-1'", "registration");
  expect_noticed("items", "item_id = 'i3'", of_operation() + " AND item_id = 'i1'", "registration");
  expect_noticed("items", "state = 'completed'", of_operation() + " AND item_id = 'i1'", "transitions");
}

TEST_F(Invariants, NoticeChangedClaimsOutboxAndAccesses) {
  const auto key = of_operation() + " AND delivery = '" + delivery + "'";
  expect_noticed("idempotency_keys", "", key, "claims");
  expect_noticed("idempotency_keys", "key = 'x'", key, "claims");
  expect_noticed("idempotency_keys", "delivery = gen_random_uuid()", key, "claims");
  expect_noticed("idempotency_keys", "disposition = 'stale'", key, "references");
  expect_noticed("idempotency_keys", "body_digest = sha256('x')", key, "references");
  expect_noticed("notifications", "", at(2), "outbox");
  expect_noticed("notifications", "type = 'operation.failed'", at(2), "outbox");
  expect_noticed("notifications", "sequence = 99", at(1), "references");
  expect_noticed("payload_accesses", "", of_operation(), "references");
  expect_noticed("payload_accesses", "actor = 'somebody'", of_operation(), "references");
}

TEST_F(Invariants, NoticeWhatIsLeftAlone) {
  const auto found_after = [&](const std::string& sql) {
    api.db.sql("CREATE TABLE public.kept AS SELECT * FROM recibo.operations");
    api.db.sql(sql);
    auto found = api.violations();
    api.db.sql("DROP TABLE public.kept");
    return ::testing::PrintToString(found);
  };
  EXPECT_NE(
      found_after("UPDATE recibo.notifications SET lease_until = now() - interval '2 minutes', leased_by = gen_random_uuid()" +
                  at(2))
          .find("r-1: leases: notification"),
      std::string::npos);
  api.db.sql("UPDATE recibo.notifications SET lease_until = NULL, leased_by = NULL");
  EXPECT_NE(found_after("UPDATE recibo.notifications SET leased_by = gen_random_uuid()" + at(2)).find("half leased"),
            std::string::npos);
  api.db.sql("UPDATE recibo.notifications SET lease_until = NULL, leased_by = NULL");
  EXPECT_NE(
      found_after("UPDATE recibo.workflow_versions SET definition = definition || ' '").find("workflows: the stored version"),
      std::string::npos);
  api.db.sql("UPDATE recibo.workflow_versions SET definition = trim(definition)");
  EXPECT_NE(found_after("UPDATE recibo.reviews SET delivery = gen_random_uuid() WHERE kind = 'conflict' AND operation = '" +
                        operation + "'")
                .find("which does not exist"),
            std::string::npos);
  const auto gone = found_after("DELETE FROM recibo.operations WHERE id = '" + operation + "'");
  for (const auto* what :
       {"registration without", "alias rows without", "item rows without", "claimed keys without", "outbox rows without",
        "transitions without", "audit rows without", "payload accesses without", "reviews without"}) {
    EXPECT_NE(gone.find(what), std::string::npos) << what << gone;
  }
}

TEST_F(Invariants, HoldForFailedCallbacksAndNoticeTheirChange) {
  auto broken = api.callback("r-1", "k-9", "succeeded");
  broken.unprocessable = error(permanent::missing_field, "no event");
  const auto failed = api.record(broken);
  EXPECT_EQ(api.violations(), std::vector<std::string>());
  api.db.sql("UPDATE recibo.payloads SET body = 'x' WHERE id = '" + to_string(failed.delivery) + "'");
  EXPECT_NE(::testing::PrintToString(api.violations()).find("r-1: payloads"), std::string::npos);
  api.db.sql("UPDATE recibo.failed_callbacks SET disposition = 'unmapped'");
  EXPECT_NE(::testing::PrintToString(api.violations()).find("failed callback"), std::string::npos);
}

TEST_F(Invariants, NoticeWhatBecomesOfParkedCallbacks) {
  const auto found = [&] { return ::testing::PrintToString(api.violations()); };
  const auto parked = to_string(api.record(api.callback("early", "k-1", "succeeded")).delivery);
  api.record(api.callback("early", "k-1", "succeeded"));
  api.record(api.callback("early", "k-1", "failed"));
  EXPECT_EQ(api.violations(), std::vector<std::string>());
  api.db.sql("CREATE TABLE public.kept AS SELECT * FROM recibo.parked; DELETE FROM recibo.parked WHERE id = '" + parked + "'");
  EXPECT_NE(found().find("early: parked: delivery " + parked + " was parked, and neither waits"), std::string::npos) << found();
  EXPECT_NE(found().find("which does not wait"), std::string::npos);
  api.db.sql(
      "DELETE FROM recibo.parked; INSERT INTO recibo.parked SELECT * FROM public.kept; UPDATE recibo.parked SET key = 'x' WHERE "
      "id = '" +
      parked + "'");
  EXPECT_NE(found().find("its delivery says otherwise"), std::string::npos) << found();
  api.db.sql("DELETE FROM recibo.parked; INSERT INTO recibo.parked SELECT * FROM public.kept");
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"early"})").status, 201);
  EXPECT_EQ(api.violations(), std::vector<std::string>());
  api.db.sql("INSERT INTO recibo.parked SELECT * FROM public.kept WHERE id = '" + parked + "'");
  EXPECT_NE(found().find("it is part of an operation already"), std::string::npos) << found();
  api.db.sql(
      "UPDATE recibo.parked SET parked_at = now() - interval '1 hour'; UPDATE recibo.registrations SET accepted_at = accepted_at "
      "- interval '1 hour'");
  EXPECT_NE(found().find("waits although its operation exists"), std::string::npos) << found();
}

TEST_F(Invariants, HoldForWhatACallbackRegisters) {
  api.record(api.callback("new", "k-1", "succeeded", "", "p2"));
  EXPECT_EQ(api.violations(), std::vector<std::string>());
  api.db.sql("UPDATE recibo.registrations SET intent = sha256('x') WHERE client = ''");
  EXPECT_NE(::testing::PrintToString(api.violations()).find("new: registration"), std::string::npos);
}

TEST_F(Invariants, RetiredMonthsAreNoViolation) {
  // The chain of an operation outlives the month in which its deliveries came.
  const auto month = api.db.sql("SELECT to_char(now(), 'YYYY_MM')"),
             before = api.db.sql("SELECT to_char(now() - interval '1 month', 'YYYY_MM')");
  for (const std::string table : {"deliveries", "payloads"}) {
    for (const auto& m : {before, month}) api.db.sql("DROP TABLE recibo." + table + "_" + m);
  }
  EXPECT_EQ(api.violations(), std::vector<std::string>());
  EXPECT_EQ(api.report->retired, 8);
  api.db.sql("UPDATE recibo.audit SET hash = sha256('x')" + at(3));
  EXPECT_NE(::testing::PrintToString(api.violations()).find("r-1: chain"), std::string::npos);
}

}  // namespace
}  // namespace recibo::test
