// Accepting, reading, listing and moving operations through the API, on a real PostgreSQL.
#include "integration/api/api_bench.hpp"

#include <gtest/gtest.h>

#include <set>

namespace recibo::test {
namespace {

class Operations : public ::testing::Test {
 protected:
  void TearDown() override { EXPECT_EQ(api.violations(), std::vector<std::string>()); }
  std::string count(const std::string& what) { return api.db.sql("SELECT count(*) FROM recibo." + what); }

  api_bench api;
};

TEST_F(Operations, AcceptingShowsTheOperationAsItIsThenRead) {
  const auto made = api.accept(
      R"({"request_id":"a:b@c&d=e+f;g\"<h>\\i'","provider":"p1","action":"pay","reference":"ref-1","references":["ref-2"],"amount":"19.90","currency":"EUR","deadline":"2030-01-01T01:00:00+01:00","items":[{"item_id":"i1"},{"item_id":"i2"}],"metadata":{"order":"A-1","n":1.50}})");
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.header("ETag"), "\"1\"");
  EXPECT_EQ(made.header("Location"), "/v1/operations/a%3Ab%40c%26d%3De%2Bf%3Bg%22%3Ch%3E%5Ci%27");
  EXPECT_EQ(made.at("request_id"), "a:b@c&d=e+f;g\"<h>\\i'");
  EXPECT_EQ(made.at("workflow"), "desk");
  EXPECT_EQ(made.at("state"), "accepted");
  EXPECT_EQ(made.at("label"), "Accepted, waiting");
  EXPECT_EQ(made.at("terminal"), "false");
  EXPECT_EQ(made.at("version"), "0");
  EXPECT_EQ(made.at("deadline"), "2030-01-01T00:00:00.000000Z");
  EXPECT_EQ(made.at("overdue"), "false");
  EXPECT_EQ(made.at("reference"), "ref-1");
  EXPECT_EQ(made.at("references"), R"(["ref-1","ref-2"])");
  EXPECT_EQ(made.at("amount"), "19.90");
  EXPECT_EQ(made.at("result"), "null");
  EXPECT_EQ(made.at("last_stage"), "accepted");
  EXPECT_EQ(made.at("items_summary"), R"({"by_state":{"accepted":2},"needs_attention":0,"total":2})");
  EXPECT_EQ(made.at("items/1/item_id"), "i2");
  EXPECT_EQ(made.at("items/1/label"), "Accepted, waiting");
  EXPECT_EQ(made.at("reconciled"), "null");
  EXPECT_EQ(made.at("allowed_events"), R"(["submitted","cancel"])");
  EXPECT_EQ(made.at("retry_safe/safe"), "false");
  EXPECT_EQ(made.at("metadata"), R"({"n":1.50,"order":"A-1"})");
  EXPECT_EQ(made.at("_links/timeline"), made.header("Location") + "/timeline");

  const auto read = api.get(made.header("Location"), "checkout");
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.body, made.body);
  EXPECT_EQ(read.header("ETag"), "\"1\"");
  EXPECT_EQ(api.call("HEAD", made.header("Location"), "checkout").status, 200);
}

TEST_F(Operations, TheSameAgainIsTheSameAndShowsWhatIsTrueNow) {
  const std::string body = R"({"request_id":"r-1","provider":"p1","amount":"1.0","currency":"EUR"})";
  ASSERT_EQ(api.accept(body).status, 201);
  api.record(api.callback("r-1", "k-1", "succeeded"));
  const auto again = api.accept(R"({"currency":"EUR","amount":"1.00","provider":"p1","request_id":"r-1"})");
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.header("Idempotent-Replayed"), "true");
  EXPECT_EQ(again.at("state"), "completed");
  EXPECT_EQ(again.at("result"), R"({"code":"7"})");
  EXPECT_EQ(again.at("retry_safe/safe"), "false");
  EXPECT_EQ(again.at("last_stage"), "transitioned");
  EXPECT_EQ(count("operations"), "1");
}

TEST_F(Operations, WhatIsDurableIsSaidEvenWhenItCannotBeReadBack) {
  const std::string body =
      R"({"request_id":"r-1","provider":"p1","reference":"x","items":[{"item_id":"i1"}],"metadata":{"b":1,"a":2}})";
  const auto usual = api.accept(body);
  ASSERT_EQ(usual.status, 201) << usual.body;
  api.pool.close();
  auto other = body;
  other.replace(other.find("r-1"), 3, "r-2").replace(other.find("\"x\""), 3, "\"y\"");
  const auto made = api.accept(other);
  ASSERT_EQ(made.status, 201) << made.body;
  for (const auto* field : {"state", "label", "version", "overdue", "items_summary", "allowed_events", "last_stage",
                            "items/0/item_id", "items/0/state", "metadata", "result", "amount"}) {
    EXPECT_EQ(made.at(field), usual.at(field)) << field;
  }
  EXPECT_EQ(made.at("references"), R"(["y"])");
  const auto away = api.get("/v1/operations/r-2");
  EXPECT_EQ(away.status, 503);
  EXPECT_EQ(away.at("retryable"), "true");
  EXPECT_NE(away.header("Retry-After"), "");
  EXPECT_EQ(api.accept(body).status, 503) << "what it is now can only be read";
}

TEST_F(Operations, AnotherIntentIsAConflictAndOnlyItsClientSeesTheState) {
  ASSERT_EQ(api.accept(R"({"request_id":"r-1","provider":"p1"})").status, 201);
  const auto own = api.accept(R"({"request_id":"r-1","provider":"p2"})");
  EXPECT_EQ(own.status, 409);
  EXPECT_EQ(own.at("code"), "intent_conflict");
  EXPECT_EQ(own.at("state"), "accepted");
  EXPECT_EQ(own.at("operation"), "/v1/operations/r-1");
  EXPECT_EQ(own.at("request_id"), "r-1");
  EXPECT_EQ(own.at("trace_id"), "4bf92f3577b34da6a3ce929d0e0e4736");
  const auto foreign = api.accept(R"({"request_id":"r-1","provider":"p1"})", "storefront");
  EXPECT_EQ(foreign.status, 409);
  EXPECT_EQ(foreign.at("state"), "(absent)");
  EXPECT_EQ(count("operations"), "1");
}

TEST_F(Operations, AnIdempotencyKeyFindsTheOperationAgain) {
  const api_bench::headers key{{"Idempotency-Key", "key-1"}};
  const auto first = api.accept(R"({"provider":"p1"})", "checkout", key);
  ASSERT_EQ(first.status, 201) << first.body;
  const auto again = api.accept(R"({"provider":"p1"})", "checkout", key);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.at("request_id"), first.at("request_id"));
  EXPECT_EQ(api.accept(R"({"provider":"p2"})", "checkout", key).at("code"), "idempotency_key_reused");
  EXPECT_EQ(api.accept(R"({"provider":"p1","request_id":"another"})", "checkout", key).at("code"), "idempotency_key_reused");
  EXPECT_EQ(api.accept(R"({"provider":"p1"})", "storefront", key).status, 201);
  for (const auto& bad :
       {api_bench::headers{{"Idempotency-Key", ""}}, api_bench::headers{{"Idempotency-Key", "a"}, {"Idempotency-Key", "b"}},
        api_bench::headers{{"Idempotency-Key", std::string(256, 'x')}}}) {
    EXPECT_EQ(api.accept(R"({"provider":"p1"})", "checkout", bad).status, 422);
  }
  EXPECT_EQ(count("operations"), "2");
}

TEST_F(Operations, WhatIsWrongIsNamedAndLeavesNothing) {
  struct wrong {
    std::string body;
    int status;
    std::string code, detail;
  };
  const wrong cases[] = {
      {"{", 400, "malformed_json", ""},
      {R"({"provider":"p1","provider":"p2"})", 400, "malformed_json", "two members of the same name"},
      {R"({"provider":"p1","metadata":{"a":"\u0000"}})", 400, "malformed_json", "U+0000"},
      {"[]", 422, "malformed_field", "object"},
      {"{}", 422, "missing_field", "/provider"},
      {R"({"provider":"nope"})", 422, "unknown_provider", "/provider"},
      {R"({"provider":"p1","workflow":"nope"})", 422, "unknown_workflow", "/workflow"},
      {R"({"provider":"p1","colour":"red"})", 422, "unknown_field", "/colour"},
      {R"({"provider":"p1","amount":19.99,"currency":"EUR"})", 422, "malformed_field", "/amount"},
      {R"({"provider":"p1","amount":"19.99"})", 422, "missing_field", "/currency"},
      {R"({"provider":"p1","request_id":"a/b"})", 422, "malformed_field", "request_id"},
      {R"({"provider":"p1","request_id":""})", 422, "malformed_field", "request_id"},
      {R"({"provider":"p1","items":[{"item_id":"a"},{"item_id":"a"}]})", 422, "malformed_field", "/items/1/item_id"},
      {R"({"provider":"p1","metadata":[]})", 422, "malformed_field", "/metadata"},
      {R"({"provider":"p1","metadata":{"a":")" + std::string(20'000, 'x') + "\"}}", 422, "malformed_field", "/metadata"},
      {R"({"provider":"p1","metadata":{"a":1e500}})", 422, "malformed_field", "/metadata"},
  };
  for (const auto& c : cases) {
    const auto came = api.accept(c.body);
    EXPECT_EQ(came.status, c.status) << c.body.substr(0, 80) << came.body;
    EXPECT_EQ(came.at("code"), c.code) << came.body;
    EXPECT_NE(came.at("detail").find(c.detail), std::string::npos) << came.body;
    EXPECT_EQ(came.at("retryable"), "false");
    EXPECT_EQ(came.content_type, "application/problem+json");
  }
  EXPECT_EQ(api.call("POST", "/v1/operations", "checkout", "", {{"Content-Type", "text/plain"}}).status, 415);
  EXPECT_EQ(api.call("POST", "/v1/operations", "checkout", "", {{"Content-Encoding", "gzip"}}).status, 415);
  EXPECT_EQ(count("operations"), "0");
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"r-1","reference":"ref"})").status, 201);
  EXPECT_EQ(api.accept(R"({"provider":"p1","request_id":"r-2","reference":"ref"})").at("code"), "alias_taken");
}

TEST_F(Operations, TokensDecideWhoSeesAndDoesWhat) {
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"r-1"})").status, 201);
  EXPECT_EQ(api.get("/v1/operations/r-1", "").status, 401);
  EXPECT_EQ(api.get("/v1/operations/r-1", "nobody").header("WWW-Authenticate"), "Bearer");
  EXPECT_EQ(api.get("/v1/nothing", "").status, 401);
  EXPECT_EQ(api.get("/v1/nothing").status, 404);
  EXPECT_EQ(api.get("/nothing", "").status, 404);
  const auto method = api.call("DELETE", "/v1/operations", "viewer");
  EXPECT_EQ(method.status, 405);
  EXPECT_EQ(method.header("Allow"), "GET, HEAD, POST");
  for (const auto& [token, status] : std::vector<std::pair<std::string, int>>{
           {"checkout", 200}, {"storefront", 404}, {"viewer", 200}, {"helpdesk", 403}, {"root", 200}}) {
    EXPECT_EQ(api.get("/v1/operations/r-1", token).status, status) << token;
    EXPECT_EQ(api.get("/v1/operations/r-1/timeline", token).status, status) << token;
    EXPECT_EQ(api.get("/v1/operations/r-1/items", token).status, status) << token;
  }
  EXPECT_EQ(api.get("/v1/operations/r-1/status", "helpdesk").status, 200);
  EXPECT_EQ(api.get("/v1/operations/r-1/status", "storefront").status, 404);
  for (const auto* token : {"viewer", "helpdesk"}) {
    EXPECT_EQ(api.accept(R"({"provider":"p1"})", token).status, 403);
    EXPECT_EQ(api.raise("r-1", R"({"event":"cancel"})", token).status, 403);
  }
  EXPECT_EQ(api.raise("r-1", R"({"event":"cancel"})", "storefront").status, 404);
  for (const auto* path : {"/v1/deliveries", "/v1/reviews", "/v1/failed-callbacks", "/v1/stats", "/v1/providers"}) {
    EXPECT_EQ(api.get(path, "checkout").status, 403) << path;
    EXPECT_EQ(api.get(path, "viewer").status, 200) << path;
  }
  EXPECT_EQ(api.call("POST", "/v1/config/reload", "ops").status, 403);
}

TEST_F(Operations, EventsMoveAsTheTableSays) {
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"r-1"})").status, 201);
  const auto early = api.raise("r-1", R"({"event":"resolve"})", "ops");
  EXPECT_EQ(early.status, 409);
  EXPECT_EQ(early.at("allowed_events"), R"(["submitted","cancel"])");
  EXPECT_EQ(early.at("state"), "accepted");

  const auto sent = api.raise("r-1", R"({"event":"submitted","references":["ref-9"],"reason":"sent"})", "ops");
  ASSERT_EQ(sent.status, 200) << sent.body;
  EXPECT_EQ(sent.at("state"), "processing");
  EXPECT_EQ(sent.at("reference"), "ref-9");
  EXPECT_EQ(sent.header("ETag"), "\"2\"");
  EXPECT_EQ(api.db.sql("SELECT actor_kind || ' ' || actor FROM recibo.transitions"), "operator ops");

  EXPECT_EQ(api.raise("r-1", R"({"event":"resolve","reason":"seen"})", "ops").at("code"), "illegal_transition");
  const auto done = api.raise("r-1", R"({"event":"resolve","reason":"seen","evidence":{"line":4.10,"a":"é"}})", "ops");
  ASSERT_EQ(done.status, 200) << done.body;
  EXPECT_EQ(done.at("terminal"), "true");
  EXPECT_EQ(done.at("allowed_events"), "[]");
  EXPECT_EQ(api.raise("nothing", R"({"event":"cancel"})", "ops").status, 404);
  EXPECT_EQ(api.raise("r-1", R"({"event":"cancel","colour":1})", "ops").at("code"), "unknown_field");
  EXPECT_EQ(api.raise("r-1", R"({"event":"cancel","evidence":[1]})", "ops").at("code"), "malformed_field");
}

TEST_F(Operations, EventsKeepToTheRevisionAndTheKey) {
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"r-1"})").status, 201);
  EXPECT_EQ(api.raise("r-1", R"({"event":"submitted"})", "checkout", {{"If-Match", "\"7\""}}).status, 412);
  EXPECT_EQ(api.raise("r-1", R"({"event":"submitted"})", "checkout", {{"If-Match", "W/\"1\""}}).status, 412);
  const api_bench::headers key{{"Idempotency-Key", "k"}, {"If-Match", "\"1\""}};
  EXPECT_EQ(api.raise("r-1", R"({"event":"submitted","reason":"x"})", "checkout", key).status, 200);
  const auto again = api.raise("r-1", R"({"event":"submitted","reason":"x"})", "checkout", key);
  EXPECT_EQ(again.status, 200) << again.body;
  EXPECT_EQ(again.header("Idempotent-Replayed"), "true");
  EXPECT_EQ(api.raise("r-1", R"({"event":"submitted","reason":"y"})", "checkout", key).at("code"), "idempotency_key_reused");
  EXPECT_EQ(count("transitions"), "1");
}

TEST_F(Operations, OverdueIsTheDeadlineOrTheLimitOfTheState) {
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"late","deadline":"2020-01-01T00:00:00Z"})").status, 201);
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"stuck"})").status, 201);
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"fine"})").status, 201);
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"done","deadline":"2020-01-01T00:00:00Z"})").status, 201);
  api.record(api.callback("done", "k", "succeeded"));
  api.db.sql(
      "UPDATE recibo.timers t SET due_at = due_at - interval '16 minutes' FROM recibo.operations o WHERE o.id = t.operation "
      "AND o.request_id = 'stuck'");
  EXPECT_EQ(api.get("/v1/operations/late").at("overdue"), "true");
  EXPECT_EQ(api.get("/v1/operations/stuck").at("overdue"), "true");
  EXPECT_EQ(api.get("/v1/operations/done").at("overdue"), "false");
  const auto overdue = api.get("/v1/operations?overdue=true&sort=accepted_at");
  EXPECT_EQ(overdue.at("data/0/request_id"), "late") << overdue.body;
  EXPECT_EQ(overdue.at("data/1/request_id"), "stuck");
  EXPECT_EQ(overdue.at("data/2/request_id"), "(absent)");
  EXPECT_EQ(api.get("/v1/operations?overdue=false&sort=accepted_at").at("data/1/request_id"), "done");
}

class Lists : public Operations {
 protected:
  std::vector<std::string> all(const std::string& query, const std::string& token = "viewer",
                               const std::string& path = "/v1/operations") {
    std::vector<std::string> out;
    std::string cursor;
    for (int pages = 0; pages < 20; ++pages) {
      const auto page = api.get(path + "?" + query + (cursor.empty() ? "" : "&cursor=" + cursor), token);
      EXPECT_EQ(page.status, 200) << page.body;
      for (const auto& o : page.data()) out.push_back(o.find("request_id")->text);
      cursor = page.at("next_cursor");
      if (cursor == "null") return out;
    }
    ADD_FAILURE() << "the list does not end";
    return out;
  }
  using ids = std::vector<std::string>;
};

TEST_F(Lists, PagesAreCompleteAndDoNotOverlap) {
  ids made;
  for (int i = 0; i < 7; ++i) {
    made.push_back("r-" + std::to_string(i));
    ASSERT_EQ(
        api.accept(R"({"provider":")" + std::string(i % 2 ? "p2" : "p1") + R"(","request_id":")" + made.back() + "\"}").status,
        201);
  }
  EXPECT_EQ(all("limit=3&sort=accepted_at"), made);
  EXPECT_EQ(all("limit=2"), ids(made.rbegin(), made.rend()));
  EXPECT_EQ(all("limit=7"), ids(made.rbegin(), made.rend()));
  EXPECT_EQ(all("provider=p2&limit=2&sort=accepted_at"), (ids{"r-1", "r-3", "r-5"}));
  EXPECT_EQ(all("workflow=desk&state=accepted").size(), 7U);
  EXPECT_EQ(all("workflow=other"), ids());
  EXPECT_EQ(all("", "storefront"), ids());
  EXPECT_EQ(all("limit=200", "checkout").size(), 7U);
  EXPECT_EQ(all("limit=200", "helpdesk", "/v1/statuses").size(), 7U);

  const auto third = api.get("/v1/operations/r-3").at("accepted_at");
  EXPECT_EQ(all("sort=accepted_at&accepted_after=" + third), (ids{"r-3", "r-4", "r-5", "r-6"}));
  EXPECT_EQ(all("sort=accepted_at&accepted_before=" + third), (ids{"r-0", "r-1", "r-2"}));
  EXPECT_EQ(all("accepted_after=2030-01-01T00:00:00Z"), ids());
  EXPECT_EQ(all("accepted_before=1969-01-01T00:00:00Z"), ids());
}

TEST_F(Lists, FindsByReferenceMetadataAndReview) {
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"r-1","reference":"x","metadata":{"order":"A-1","n":7}})").status, 201);
  ASSERT_EQ(
      api.accept(R"({"provider":"p2","request_id":"r-2","reference":"x","metadata":{"order":"A-1","n":"7","b":true}})").status,
      201);
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"r-3","metadata":{"order":"B-2","n":8}})").status, 201);
  api.record(api.callback("r-3", "k", "succeeded"));
  api.record(api.callback("r-3", "k2", "failed"));
  EXPECT_EQ(all("reference=x&sort=accepted_at"), (ids{"r-1", "r-2"}));
  EXPECT_EQ(all("reference=x&provider=p2"), ids{"r-2"});
  EXPECT_EQ(all("reference=y"), ids());
  EXPECT_EQ(all("metadata.order=A-1&sort=accepted_at"), (ids{"r-1", "r-2"}));
  EXPECT_EQ(all("metadata.n=7&sort=accepted_at"), (ids{"r-1", "r-2"}));
  EXPECT_EQ(all("metadata.order=A-1&metadata.b=true"), ids{"r-2"});
  EXPECT_EQ(all("metadata.order=A-1&reference=x&provider=p1"), ids{"r-1"});
  EXPECT_EQ(all("metadata.order=%27%3B--"), ids());
  EXPECT_EQ(all("review=true"), ids{"r-3"});
  EXPECT_EQ(all("review=false&sort=accepted_at"), (ids{"r-1", "r-2"}));
  EXPECT_EQ(all("state=completed&review=true"), ids{"r-3"});
}

TEST_F(Lists, RefusesWhatItDoesNotKnow) {
  for (const auto* query :
       {"limit=0", "limit=201", "limit=x", "limit=1&limit=2", "cursor=%00", "cursor=nonsense", "cursor=", "nonsense=1",
        "sort=state", "overdue=1", "accepted_after=yesterday", "state=%ff", "state=%zz", "state=a%00b", "metadata.a=%00"}) {
    const auto came = api.get(std::string("/v1/operations?") + query);
    EXPECT_EQ(came.status, 422) << query << came.body;
    EXPECT_EQ(came.at("retryable"), "false");
  }
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"r-1"})").status, 201);
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"r-2"})").status, 201);
  const auto cursor = api.get("/v1/operations?limit=1").at("next_cursor");
  EXPECT_EQ(api.get("/v1/operations?limit=1&cursor=" + cursor).status, 200);
  EXPECT_EQ(api.get("/v1/operations?limit=1&sort=accepted_at&cursor=" + cursor).status, 422);
  EXPECT_EQ(api.get("/v1/deliveries?limit=1&cursor=" + cursor).status, 422);
}

TEST_F(Lists, ItemsComeInTheirOrder) {
  std::string items;
  for (int i = 0; i < 25; ++i) items += std::string(i ? "," : "") + R"({"item_id":"i)" + std::to_string(i) + "\"}";
  ASSERT_EQ(api.accept(R"({"provider":"p1","request_id":"r-1","items":[)" + items + "]}").status, 201);
  std::vector<std::string> found;
  std::string cursor;
  do {
    const auto page = api.get("/v1/operations/r-1/items?limit=10" + (cursor.empty() ? "" : "&cursor=" + cursor));
    ASSERT_EQ(page.status, 200) << page.body;
    for (const auto& i : page.data()) found.push_back(i.find("item_id")->text);
    cursor = page.at("next_cursor");
  } while (cursor != "null");
  ASSERT_EQ(found.size(), 25U);
  EXPECT_EQ(found[9], "i9");
  EXPECT_EQ(found[24], "i24");
  EXPECT_EQ(api.get("/v1/operations/r-1/items?state=completed").at("data"), "[]");
}

TEST_F(Operations, ASearchThatFindsNothingGoesThroughAllOfIt) {
  // More operations than one look takes, none of which passes.
  api.db.sql(
      "INSERT INTO recibo.workflow_versions (version_key, digest, name, definition) VALUES (0, sha256(''), 'none', '{}'); "
      "INSERT INTO recibo.operations SELECT ('018f0000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, 'x-' || n, 'p1', 0, "
      "'accepted', 0, 1, NULL, NULL, 1, "
      "sha256(n::text::bytea), false, now(), now() FROM generate_series(1, 7000) n; "
      "INSERT INTO recibo.registrations (operation, client, action, intent, accepted_at) SELECT id, 'checkout', '', chain_hash, "
      "now() FROM recibo.operations");
  const auto none = api.get("/v1/operations?state=completed");
  EXPECT_EQ(none.status, 200) << none.body;
  EXPECT_EQ(none.at("data"), "[]");
  EXPECT_EQ(none.at("next_cursor"), "null");
  EXPECT_EQ(api.get("/v1/stats").at("operations/0/count"), "7000");
  api.db.sql("TRUNCATE recibo.operations, recibo.registrations, recibo.workflow_versions");
}

}  // namespace
}  // namespace recibo::test
