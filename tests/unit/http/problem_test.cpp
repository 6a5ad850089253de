#include "recibo/http/problem.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <set>
#include <string>

namespace recibo::http {
namespace {

using nlohmann::json;

TEST(Problem, EveryErrorHasItsStatus) {
  struct row {
    error of;
    int status;
    const char* code;
    bool retryable;
  };
  const row rows[] = {
      {permanent::signature_missing, 401, "unauthenticated", false},
      {permanent::signature_mismatch, 401, "unauthenticated", false},
      {permanent::signature_repeated, 401, "unauthenticated", false},
      {permanent::timestamp_missing, 401, "unauthenticated", false},
      {permanent::timestamp_malformed, 401, "unauthenticated", false},
      {permanent::timestamp_stale, 401, "unauthenticated", false},
      {permanent::content_missing, 401, "unauthenticated", false},
      {permanent::malformed_json, 400, "malformed_json", false},
      {permanent::malformed_field, 422, "malformed_field", false},
      {permanent::missing_field, 422, "missing_field", false},
      {permanent::unknown_field, 422, "unknown_field", false},
      {permanent::not_found, 404, "not_found", false},
      {permanent::unauthorized, 401, "unauthorized", false},
      {permanent::forbidden, 403, "forbidden", false},
      {permanent::intent_conflict, 409, "intent_conflict", false},
      {permanent::idempotency_key_reused, 422, "idempotency_key_reused", false},
      {permanent::illegal_transition, 409, "illegal_transition", false},
      {permanent::precondition_failed, 412, "precondition_failed", false},
      {permanent::unknown_provider, 404, "unknown_provider", false},
      {permanent::unknown_workflow, 422, "unknown_workflow", false},
      {permanent::already_resolved, 409, "already_resolved", false},
      {permanent::alias_taken, 409, "alias_taken", false},
      {permanent::invalid_configuration, 422, "invalid_configuration", false},
      {permanent::schema_mismatch, 503, "unavailable", true},
      {permanent::body_too_large, 413, "body_too_large", false},
      {transient::over_rate, 429, "overloaded", true},
      {transient::database_away, 503, "unavailable", true},
      {transient::queue_full, 503, "unavailable", true},
      {transient::operation_busy, 503, "unavailable", true},
      {transient::clock_in_doubt, 503, "unavailable", true},
      {transient::our_fault, 503, "unavailable", true},
      {uncertain::commit_unknown, 503, "unavailable", true},
      {uncertain::answer_unknown, 503, "unavailable", true},
      {error(boost::system::error_code(5, boost::system::generic_category())), 503, "unavailable", true},
  };
  for (const row& r : rows) {
    EXPECT_EQ(status_of(r.of), r.status) << code_word(r.of.code);
    const response answer = problem(r.of);
    EXPECT_EQ(answer.status, r.status);
    EXPECT_EQ(answer.content_type, "application/problem+json");
    const json body = json::parse(answer.body);
    EXPECT_EQ(body["status"], r.status);
    EXPECT_EQ(body["code"], r.code);
    EXPECT_EQ(body["type"], std::string("urn:recibo:problem:") + r.code);
    EXPECT_EQ(body["retryable"], r.retryable);
    EXPECT_FALSE(body["title"].get<std::string>().empty());
    EXPECT_EQ(count_header(answer.headers, "retry-after"), r.retryable ? 1u : 0u);
  }
}

// S19: a forger learns nothing from the difference between two refusals.
TEST(Problem, SignatureFailuresReadTheSame) {
  const problem_context context{.trace_id = "0af7651916cd43dd8448eb211c80319c"};
  const response one = problem(error(permanent::signature_mismatch, "no secret matched"), context);
  const response other = problem(error(permanent::timestamp_stale, "301 s old"), context);
  EXPECT_EQ(one.body, other.body);
  EXPECT_EQ(one.headers, other.headers);
  EXPECT_THAT(one.body, testing::Not(testing::HasSubstr("matched")));
}

TEST(Problem, RetryAfterIsOneToThreeSecondsAndSpread) {
  std::set<std::string> seen;
  for (int i = 0; i < 200; ++i) seen.emplace(*find_header(problem(error(transient::queue_full)).headers, "Retry-After"));
  EXPECT_THAT(seen, testing::ElementsAre("1", "2", "3"));
}

TEST(Problem, NamesTheIdentitiesThatAreKnown) {
  const problem_context context{.request_id = "req-1", .delivery_id = "d-1", .trace_id = "t-1"};
  const json known = json::parse(problem(409, "conflict", "other content", context).body);
  EXPECT_EQ(known["request_id"], "req-1");
  EXPECT_EQ(known["delivery_id"], "d-1");
  EXPECT_EQ(known["trace_id"], "t-1");
  EXPECT_EQ(known["detail"], "other content");
  const json unknown = json::parse(problem(409, "conflict", "").body);
  for (const char* absent : {"request_id", "delivery_id", "trace_id"}) EXPECT_FALSE(unknown.contains(absent)) << absent;
}

TEST(Problem, ForeignTextStaysAJsonString) {
  const json body = json::parse(problem(422, "malformed_field", "bad \"x\"\n\xff").body);
  EXPECT_EQ(body["detail"], "bad \"x\"\n\xef\xbf\xbd");
}

TEST(Problem, UnauthorizedSaysHowToAuthenticate) {
  EXPECT_EQ(find_header(problem(error(permanent::unauthorized)).headers, "www-authenticate"), "Bearer");
  EXPECT_EQ(find_header(problem(error(permanent::signature_missing)).headers, "www-authenticate"), std::nullopt);
}

TEST(Problem, ACodeWithoutATitleOfItsOwnReadsAsWords) {
  EXPECT_EQ(json::parse(problem(409, "already_closed", "").body)["title"], "Already closed");
}

}  // namespace
}  // namespace recibo::http
