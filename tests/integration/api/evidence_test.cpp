// Timeline, deliveries, payloads, reviews, failed callbacks and the rest of the reads, on a real PostgreSQL.
#include "integration/api/api_bench.hpp"

#include <gtest/gtest.h>

namespace recibo::test {
namespace {

class Evidence : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(api.violations(), std::vector<std::string>()); }
  void accepted(const std::string& id) {
    ASSERT_EQ(api.accept(R"({"provider":"p1","amount":"19.99","currency":"EUR","request_id":")" + id + "\"}").status, 201);
  }

  api_bench api;
};

TEST_F(Evidence, TheTimelineTellsEverythingOldestFirst) {
  accepted("r-1");
  const auto applied = api.record(api.callback("r-1", "k-1", "succeeded"));
  api.record(api.callback("r-1", "k-1", "succeeded"));
  api.record(api.callback("r-1", "k-2", "failed"));
  ASSERT_EQ(api.get("/v1/deliveries/" + to_string(applied.delivery) + "/payload", "ops").status, 200);
  const auto timeline = api.get("/v1/operations/r-1/timeline", "checkout");
  ASSERT_EQ(timeline.status, 200) << timeline.body;
  std::vector<std::string> kinds;
  std::string before;
  for (const auto& e : timeline.data()) {
    kinds.push_back(e.find("kind")->text);
    EXPECT_LE(before, e.find("at")->text);
    before = e.find("at")->text;
  }
  // The first delivery was received after the acceptance and before it was recorded; notifications bear the time of the record.
  EXPECT_EQ(kinds, (std::vector<std::string>{"accepted", "notification", "delivery", "transition", "notification", "delivery",
                                             "delivery", "notification", "review", "payload_access"}))
      << timeline.body;
  EXPECT_EQ(timeline.at("data/0/actor"), "checkout");
  EXPECT_EQ(timeline.at("data/2/disposition"), "applied");
  EXPECT_EQ(timeline.at("data/2/secret"), "secret-1");
  EXPECT_EQ(timeline.at("data/2/key"), "k-1");
  EXPECT_EQ(timeline.at("data/2/event"), "succeeded");
  EXPECT_EQ(timeline.at("data/2/delivery_id"), to_string(applied.delivery));
  EXPECT_EQ(timeline.at("data/3/from"), "accepted");
  EXPECT_EQ(timeline.at("data/3/to"), "completed");
  EXPECT_EQ(timeline.at("data/3/delivery_id"), to_string(applied.delivery));
  EXPECT_EQ(timeline.at("data/3/result/code"), "7");
  EXPECT_EQ(timeline.at("data/4/type"), "operation.completed");
  EXPECT_EQ(timeline.at("data/4/status"), "pending");
  EXPECT_EQ(timeline.at("data/8/review_kind"), "contradiction");
  EXPECT_EQ(timeline.at("data/9/actor"), "ops");
  EXPECT_EQ(timeline.at("next_cursor"), "null");
}

TEST_F(Evidence, TheTimelineComesInPages) {
  accepted("r-1");
  for (int i = 0; i < 5; ++i) api.record(api.callback("r-1", "k-" + std::to_string(i), "processing"));
  std::vector<std::string> sequences;
  std::string cursor;
  int pages = 0;
  do {
    const auto page = api.get("/v1/operations/r-1/timeline?limit=2" + (cursor.empty() ? "" : "&cursor=" + cursor));
    ASSERT_EQ(page.status, 200) << page.body;
    for (const auto& e : page.data()) {
      if (e.find("kind")->text == "delivery") sequences.push_back(e.find("sequence")->text);
    }
    cursor = page.at("next_cursor");
    ++pages;
  } while (cursor != "null");
  EXPECT_EQ(sequences, (std::vector<std::string>{"2", "3", "4", "5", "6"}));
  EXPECT_EQ(pages, 3);
}

TEST_F(Evidence, RepetitionsBeyondTheHundredthAreOneEntry) {
  accepted("r-1");
  for (int i = 0; i < 104; ++i) api.record(api.callback("r-1", "k-1", "succeeded"));
  const auto timeline = api.get("/v1/operations/r-1/timeline");
  int deliveries = 0;
  std::string beyond;
  for (const auto& e : timeline.data()) {
    if (e.find("kind")->text != "delivery") continue;
    if (const auto* count = e.find("count")) {
      beyond = count->text;
    } else {
      ++deliveries;
    }
  }
  EXPECT_EQ(deliveries, 101);
  EXPECT_EQ(beyond, "3");
}

TEST_F(Evidence, DeliveriesAreListedAndRead) {
  accepted("r-1");
  accepted("r-2");
  const auto one = api.record(api.callback("r-1", "k-1", "succeeded"));
  api.record(api.callback("r-1", "k-1", "succeeded"));
  api.record(api.callback("r-2", "k-1", "processing"));
  auto broken = api.callback("r-1", "k-3", "succeeded");
  broken.unprocessable = error(permanent::malformed_json, "a name stands twice");
  const auto failed = api.record(broken);

  EXPECT_EQ(api.get("/v1/deliveries").data().size(), 4U);
  EXPECT_EQ(api.get("/v1/deliveries?disposition=duplicate").at("data/0/request_id"), "r-1");
  EXPECT_EQ(api.get("/v1/deliveries?request_id=r-1").data().size(), 3U);
  EXPECT_EQ(api.get("/v1/deliveries?request_id=r-1&disposition=unprocessable").at("data/0/delivery_id"),
            to_string(failed.delivery));
  EXPECT_EQ(api.get("/v1/deliveries?request_id=r-9").at("data"), "[]");
  EXPECT_EQ(api.get("/v1/deliveries?provider=p2").at("data"), "[]");
  EXPECT_EQ(api.get("/v1/deliveries?disposition=nonsense").status, 422);
  const auto first = api.get("/v1/deliveries?limit=3");
  EXPECT_EQ(first.data().size(), 3U);
  const auto rest = api.get("/v1/deliveries?limit=3&cursor=" + first.at("next_cursor"));
  EXPECT_EQ(rest.at("data/0/delivery_id"), to_string(one.delivery));
  EXPECT_EQ(rest.at("next_cursor"), "null");

  const auto read = api.get("/v1/deliveries/" + to_string(one.delivery));
  ASSERT_EQ(read.status, 200) << read.body;
  const auto body = api.callback("r-1", "k-1", "succeeded").body;
  EXPECT_EQ(read.at("body_sha256"), to_hex(binary(sha256(body))));
  EXPECT_EQ(read.at("payload/size"), std::to_string(body.size()));
  EXPECT_EQ(read.at("payload/available"), "true");
  EXPECT_EQ(read.at("event"), "succeeded");
  EXPECT_EQ(read.at("_links/operation"), "/v1/operations/r-1");
  for (const auto* missing : {"nonsense", "01890000-0000-7000-8000-000000000000", "%00"}) {
    EXPECT_EQ(api.get(std::string("/v1/deliveries/") + missing).at("code"), "not_found");
    EXPECT_EQ(api.get(std::string("/v1/deliveries/") + missing + "/payload", "ops").at("code"), "not_found");
  }
}

TEST_F(Evidence, APayloadIsGivenOutOnlyWithItsRecord) {
  accepted("r-1");
  const auto made = api.record(api.callback("r-1", "k-1", "succeeded"));
  const auto path = "/v1/deliveries/" + to_string(made.delivery) + "/payload";
  const auto looks = [&] { return api.db.sql("SELECT count(*) FROM recibo.payload_accesses"); };
  EXPECT_EQ(api.get(path, "viewer").status, 403);
  EXPECT_EQ(api.get(path, "root").status, 403) << "an admin without the permission";
  EXPECT_EQ(looks(), "0");
  const auto body = api.callback("r-1", "k-1", "succeeded").body;
  const auto given = api.get(path, "ops");
  EXPECT_EQ(given.status, 200);
  EXPECT_EQ(given.body, body);
  EXPECT_EQ(given.content_type, "application/octet-stream");
  EXPECT_EQ(given.header("Repr-Digest"), "sha-256=:" + to_base64(binary(sha256(body))) + ":");
  EXPECT_NE(given.header("Content-Disposition").find("attachment"), std::string::npos);
  EXPECT_EQ(looks(), "1");
  EXPECT_EQ(api.db.sql("SELECT kind || ' ' || actor FROM recibo.audit ORDER BY sequence DESC LIMIT 1"), "payload_access ops");

  api.db.sql("CREATE TABLE public.kept AS SELECT * FROM recibo.payloads; TRUNCATE recibo.payloads");
  EXPECT_EQ(api.get(path, "ops").status, 404);
  EXPECT_EQ(api.get("/v1/deliveries/" + to_string(made.delivery)).at("payload/available"), "false");
  EXPECT_EQ(looks(), "1") << "what is not there was not looked at";
  api.db.sql("INSERT INTO recibo.payloads SELECT * FROM public.kept");
}

TEST_F(Evidence, AConflictLeadsToBothBodies) {
  accepted("r-1");
  const auto first = api.record(api.callback("r-1", "k-1", "succeeded", "19.99"));
  const auto other = api.record(api.callback("r-1", "k-1", "succeeded", "1.00"));
  const auto reviews = api.get("/v1/reviews?status=open&provider=p1");
  ASSERT_EQ(reviews.status, 200) << reviews.body;
  EXPECT_EQ(reviews.at("data/0/kind"), "conflict");
  const auto one = api.get("/v1/reviews/" + reviews.at("data/0/review_id"));
  EXPECT_EQ(one.at("deliveries/0/role"), "first") << one.body;
  EXPECT_EQ(one.at("deliveries/0/delivery_id"), to_string(first.delivery));
  EXPECT_EQ(one.at("deliveries/0/body_sha256"), to_hex(binary(sha256(api.callback("r-1", "k-1", "succeeded", "19.99").body))));
  EXPECT_EQ(one.at("deliveries/1/delivery_id"), to_string(other.delivery));
  EXPECT_NE(one.at("deliveries/0/content_sha256"), one.at("deliveries/1/content_sha256"));
  EXPECT_EQ(one.at("last_safe_state"), "completed");
  EXPECT_EQ(one.at("_links/operation"), "/v1/operations/r-1");
  EXPECT_EQ(api.get("/v1/operations/r-1").at("retry_safe/safe"), "false");
  EXPECT_EQ(api.get("/v1/reviews?status=resolved").at("data"), "[]");
  EXPECT_EQ(api.get("/v1/reviews?provider=p2").at("data"), "[]");
  EXPECT_EQ(api.get("/v1/reviews?request_id=r-1").data().size(), 1U);
  EXPECT_EQ(api.get("/v1/reviews/nonsense").status, 404);
}

TEST_F(Evidence, AParkedCallbackIsSeenBeforeAndAfterItsOperation) {
  const auto parked = api.record(api.callback("early", "k-1", "succeeded"));
  EXPECT_EQ(api.get("/v1/deliveries?request_id=early").at("data/0/disposition"), "parked");
  EXPECT_EQ(api.get("/v1/stats").at("parked"), "1");
  EXPECT_EQ(api.violations(), std::vector<std::string>());
  const auto made = api.accept(R"({"provider":"p1","request_id":"early"})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.at("state"), "completed") << "what is true, not what was asked for";
  EXPECT_EQ(made.at("last_stage"), "transitioned");
  EXPECT_EQ(api.get("/v1/deliveries?request_id=early").at("data/0/delivery_id"), to_string(parked.delivery));
  const auto timeline = api.get("/v1/operations/early/timeline");
  EXPECT_EQ(timeline.at("data/0/kind"), "delivery") << "it came first";
  EXPECT_EQ(timeline.at("data/0/disposition"), "parked");
  EXPECT_EQ(timeline.at("data/1/kind"), "accepted");
}

TEST_F(Evidence, AnOperationThatACallbackRegisteredIsNobodysClients) {
  api.record(api.callback("new", "k-1", "succeeded", "", "p2"));
  EXPECT_EQ(api.get("/v1/operations/new").at("state"), "completed");
  EXPECT_EQ(api.get("/v1/operations/new", "checkout").status, 404);
}

TEST_F(Evidence, FailedCallbacksAreListed) {
  auto broken = api.callback("r-1", "k-1", "succeeded");
  broken.unprocessable = error(permanent::missing_field, "no event");
  api.record(broken);
  api.record(api.callback("r-1", "k-2", "no such word"));
  const auto all = api.get("/v1/failed-callbacks");
  ASSERT_EQ(all.status, 200) << all.body;
  EXPECT_EQ(all.data().size(), 2U);
  const auto unmapped = api.get("/v1/failed-callbacks?disposition=unmapped");
  EXPECT_EQ(unmapped.at("data/0/event"), "no such word");
  const auto one = api.get("/v1/failed-callbacks/" + unmapped.at("data/0/failed_callback_id"));
  EXPECT_EQ(one.at("reason"), "unmapped");
  EXPECT_EQ(one.at("count"), "1");
  EXPECT_EQ(api.get("/v1/failed-callbacks/nonsense").status, 404);
}

TEST_F(Evidence, TheRestOfTheReadsAnswer) {
  accepted("r-1");
  const auto stats = api.get("/v1/stats");
  EXPECT_EQ(stats.at("operations"), R"([{"count":1,"provider":"p1","state":"accepted"}])");
  EXPECT_EQ(stats.at("exact"), "true");
  EXPECT_EQ(api.get("/v1/providers").at("data/0/unmatched"), "park");
  EXPECT_EQ(api.get("/v1/workflows").at("data/1/name"), "desk");
  EXPECT_EQ(api.get("/v1/workflows/desk").at("states/0/limit/after_s"), "900");
  EXPECT_EQ(api.get("/v1/workflows/nope").status, 404);
  const auto config = api.get("/v1/config", "ops");
  EXPECT_EQ(config.status, 200);
  EXPECT_EQ(config.body.find("ledger-secret-ledger"), std::string::npos);
  EXPECT_EQ(api.get("/metrics", "").body, "recibo_build_info 1\n");
  EXPECT_EQ(api.get("/livez", "").status, 200);
  EXPECT_EQ(api.get("/readyz", "").status, 200);
  EXPECT_EQ(api.get("/openapi.json", "").at("openapi"), "3.1.0");
}

TEST_F(Evidence, AReloadIsTakenOrRefusedWhole) {
  api.next_reload.taken = true;
  api.next_reload.digest = "abc";
  const auto taken = api.call("POST", "/v1/config/reload", "root");
  EXPECT_EQ(taken.status, 200);
  EXPECT_EQ(taken.at("digest"), "abc");
  EXPECT_EQ(api.reloads, std::vector<std::string>{"root"});
  api.next_reload.taken = false;
  api.next_reload.problems = {{"/etc/recibo/recibo.yaml", 12, 5, "no such workflow", config::severity::error}};
  const auto refused = api.call("POST", "/v1/config/reload", "root");
  EXPECT_EQ(refused.status, 422);
  EXPECT_EQ(refused.at("code"), "invalid_configuration");
  EXPECT_EQ(refused.at("errors/0/text"), "recibo.yaml:12:5: error: no such workflow");
}

TEST_F(Evidence, OperationsKeepTheTableTheyWereAcceptedUnder) {
  accepted("r-1");
  // The configuration moves on: the old table is read from the database.
  const auto other = config::load_text("fixture",
                                       "workflows:\n  desk:\n    initial: open\n    states: {open: {label: Open, limit: none, "
                                       "owner: ops}, shut: {label: Shut, terminal: true}}\n"
                                       "    transitions: [{from: open, event: shut, to: shut, by: client}]\n"
                                       "api:\n  tokens:\n    - {name: viewer, role: reader, sha256: '" +
                                           to_hex(binary(sha256("token-viewer"))) + "'}\n",
                                       ".");
  ASSERT_TRUE(other.settings) << config::to_string(other.problems.front());
  api.snapshot.set(other.settings);
  const auto read = api.get("/v1/operations/r-1");
  EXPECT_EQ(read.status, 200) << read.body;
  EXPECT_EQ(read.at("label"), "Accepted, waiting");
  EXPECT_EQ(read.at("allowed_events"), R"(["submitted","cancel"])");
  EXPECT_EQ(api.get("/v1/operations?overdue=true").status, 200);
}

}  // namespace
}  // namespace recibo::test
