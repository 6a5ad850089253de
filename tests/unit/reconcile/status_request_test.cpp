#include "recibo/reconcile/status_request.hpp"

#include <gtest/gtest.h>

#include <utility>

namespace recibo::reconcile {
namespace {

config::status_rule rule_of(const char* url) {
  config::status_rule out;
  auto how = url_template::parse(url, {"reference", "request_id"});
  EXPECT_TRUE(how.has_value());
  out.url = std::move(*how);
  return out;
}

result<http::outbound_answer> answered(int status, http::header_list headers = {}) {
  http::outbound_answer out;
  out.status = status;
  out.headers = std::move(headers);
  return out;
}

TEST(StatusRequest, EachValueIsOneSegmentOfTheConfiguredHost) {
  const auto rule = rule_of("https://api.p1.test/operations/{reference}");
  const std::pair<const char*, const char*> rows[] = {
      {"../../admin", "/operations/..%2F..%2Fadmin"},
      {"..%2f..%2fadmin", "/operations/..%252f..%252fadmin"},
      {"x@169.254.169.254/", "/operations/x%40169.254.169.254%2F"},
      {"//169.254.169.254/", "/operations/%2F%2F169.254.169.254%2F"},
      {"a?b=c#d", "/operations/a%3Fb%3Dc%23d"},
  };
  for (const auto& [reference, target] : rows) {
    const auto request = status_request(rule, "req-1", reference);
    ASSERT_TRUE(request.has_value()) << reference;
    EXPECT_EQ(request->url.host, "api.p1.test");
    EXPECT_EQ(request->url.target, target);
    EXPECT_EQ(request->method, "GET");
  }
}

TEST(StatusRequest, WhatWouldAskSomethingElseIsNotSent) {
  const auto rule = rule_of("https://api.p1.test/operations/{reference}");
  EXPECT_EQ(status_request(rule, "req-1", "").error().code, permanent::missing_field);
  for (const char* reference : {"..", ".", "a\r\nHost: evil.example"})
    EXPECT_EQ(status_request(rule, "req-1", reference).error().code, permanent::malformed_field) << reference;
}

TEST(StatusRequest, SaysWhoAsks) {
  auto rule = rule_of("https://api.p1.test/operations?id={request_id}");
  rule.headers.emplace_back("authorization", secret("Bearer k"));
  const auto request = status_request(rule, "a&b", "");
  ASSERT_TRUE(request.has_value());
  EXPECT_EQ(request->url.target, "/operations?id=a%26b");
  EXPECT_EQ(http::find_header(request->headers, "Authorization"), "Bearer k");
  EXPECT_EQ(http::find_header(request->headers, "Accept"), "application/json");
}

TEST(JudgeAttempt, NotFoundIsAskedOnceMore) {
  for (const auto& [status, reason] : {std::pair(404, "not_found"), std::pair(410, "gone")}) {
    const auto first = judge_attempt(answered(status), "", recibo::now());
    EXPECT_EQ(first.what, next_step::again);
    EXPECT_EQ(first.reason, reason) << "what is gone was there";
    EXPECT_EQ(judge_attempt(answered(status), "server_error", recibo::now()).what, next_step::again);
    EXPECT_EQ(judge_attempt(answered(status), reason, recibo::now()).what, next_step::give_up);
  }
  EXPECT_EQ(judge_attempt(answered(404), "gone", recibo::now()).what, next_step::again);
}

TEST(JudgeAttempt, WhatMayPassIsAskedAgain) {
  for (const int status : {408, 425, 429, 500, 502, 503})
    EXPECT_EQ(judge_attempt(answered(status), "", recibo::now()).what, next_step::again) << status;
  const auto slow = judge_attempt(answered(429, {{"Retry-After", "7"}}), "", recibo::now());
  EXPECT_EQ(slow.reason, "over_rate");
  EXPECT_EQ(judge_attempt(error(transient::deadline_passed), "", recibo::now()).what, next_step::again);
  EXPECT_EQ(judge_attempt(error(uncertain::answer_unknown), "", recibo::now()).what, next_step::again);
  EXPECT_EQ(judge_attempt(error(permanent::certificate_refused), "", recibo::now()).what, next_step::again);
}

TEST(JudgeAttempt, WhatBringsTheSameAgainIsGivenUp) {
  for (const int status : {301, 302, 308, 400, 422})
    EXPECT_EQ(judge_attempt(answered(status), "", recibo::now()).what, next_step::give_up) << status;
  EXPECT_EQ(judge_attempt(error(permanent::answer_too_large), "", recibo::now()).what, next_step::give_up);
}

TEST(JudgeAttempt, RefusedCredentialsStopTheProviderAndLoseNothing) {
  for (const int status : {401, 403, 407}) {
    const auto judged = judge_attempt(answered(status), "", recibo::now());
    EXPECT_TRUE(judged.unauthorized) << status;
    EXPECT_EQ(judged.what, next_step::again) << status;
  }
}

TEST(JudgeAttempt, AnAnswerIsRead) {
  const auto judged = judge_attempt(answered(200), "not_found", recibo::now());
  EXPECT_EQ(judged.what, next_step::read);
  EXPECT_EQ(judged.reason, "answered");
}

record::callback said(const char* reference) {
  record::callback c;
  c.event = "complete";
  c.references = {reference};
  c.content_digest = sha256("content");
  return c;
}

TEST(MakeAnswer, WhatIsFetchedIsTheKey) {
  const auto one = make_id<look_up_id>(now()), other = make_id<look_up_id>(now());
  auto first = said("r"), again = said("r"), changed = said("r");
  changed.content_digest = sha256("other content");
  make_answer(first, one, "r");
  make_answer(again, other, "r");
  make_answer(changed, other, "r");
  EXPECT_EQ(first.key, again.key);
  EXPECT_NE(first.key, changed.key);
}

TEST(MakeAnswer, WhatIsNotUnderstoodUsesUpNoKey) {
  auto first = said("r"), again = said("r");
  first.event = again.event = "";
  make_answer(first, make_id<look_up_id>(now()), "r");
  make_answer(again, make_id<look_up_id>(now()), "r");
  EXPECT_NE(first.key, again.key);
  EXPECT_EQ(first.content_digest, again.content_digest);
}

TEST(MakeAnswer, AnotherReferenceThanTheOneAskedForIsAnotherOperation) {
  const auto id = make_id<look_up_id>(now());
  auto same = said("r"), other = said("x"), unasked = said("x");
  make_answer(same, id, "r");
  make_answer(other, id, "r");
  make_answer(unasked, id, "");
  EXPECT_FALSE(same.named_instead);
  EXPECT_EQ(other.named_instead, "x");
  EXPECT_TRUE(other.references.empty()) << "nothing is learned of it";
  EXPECT_FALSE(unasked.named_instead);
}

TEST(MakeTrouble, TheSameTroubleIsTheSameReviewUnderAnotherKey) {
  record::callback first, again;
  make_trouble(first, make_id<look_up_id>(now()), "redirect", "body");
  make_trouble(again, make_id<look_up_id>(now()), "redirect", "other body");
  EXPECT_EQ(first.content_digest, again.content_digest);
  EXPECT_NE(first.key, again.key);
  EXPECT_EQ(first.body_digest, sha256("body"));
}

}  // namespace
}  // namespace recibo::reconcile
