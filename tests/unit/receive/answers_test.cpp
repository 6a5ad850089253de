#include "recibo/receive/answers.hpp"

#include "recibo/config/answers.hpp"

#include <gtest/gtest.h>

namespace recibo::receive {
namespace {

using transition::disposition;

constexpr disposition all[] = {disposition::applied,
                               disposition::redundant,
                               disposition::partial,
                               disposition::duplicate,
                               disposition::stale,
                               disposition::parked,
                               disposition::review,
                               disposition::conflict,
                               disposition::unmapped,
                               disposition::unprocessable,
                               disposition::unknown_operation,
                               disposition::ignored,
                               disposition::hint};

record::outcome decided(disposition what, const config::answers& how = {}) {
  record::outcome out;
  out.disposition = what;
  out.delivery = *parse_id<delivery_id>("01920000-0000-7000-8000-000000000001");
  out.request_id = "req-1001";
  out.state = "completed";
  const auto shape = config::shape_of(how, what);
  out.status = shape.status;
  out.body = shape.body;
  return out;
}

bool has(const http::response& r, std::string_view piece) { return r.body.find(piece) != std::string::npos; }

TEST(Answers, StatusesAreThoseOfTheContract) {
  const std::pair<disposition, int> rows[] = {{disposition::applied, 200},
                                              {disposition::redundant, 200},
                                              {disposition::partial, 200},
                                              {disposition::duplicate, 200},
                                              {disposition::stale, 200},
                                              {disposition::parked, 202},
                                              {disposition::review, 200},
                                              {disposition::conflict, 409},
                                              {disposition::unmapped, 202},
                                              {disposition::unprocessable, 422},
                                              {disposition::unknown_operation, 404},
                                              {disposition::ignored, 200},
                                              {disposition::hint, 202}};
  for (const auto& [word, status] : rows) EXPECT_EQ(config::shape_of({}, word).status, status) << transition::to_string(word);
  EXPECT_EQ(std::size(rows), std::size(all));
}

TEST(Answers, BodyHasTheContractsMembersInTheirOrder) {
  const auto told = answer(decided(disposition::applied), {}, "trace");
  EXPECT_EQ(told.status, 200);
  EXPECT_EQ(told.content_type, "application/json");
  EXPECT_EQ(
      told.body,
      R"({"delivery_id":"01920000-0000-7000-8000-000000000001","request_id":"req-1001","disposition":"applied","state":"completed"})");
  EXPECT_TRUE(told.headers.empty());
}

TEST(Answers, WhatIsNotKnownIsLeftOut) {
  record::outcome parked = decided(disposition::parked);
  parked.request_id.clear();
  parked.state.clear();
  EXPECT_EQ(answer(parked, {}, {}).body, R"({"delivery_id":"01920000-0000-7000-8000-000000000001","disposition":"parked"})");
  EXPECT_EQ(answer(parked, {}, {}).status, 202);
  EXPECT_EQ(answer_ignored("", {}, {}).body, R"({"disposition":"ignored"})");
  EXPECT_EQ(answer_ignored("r\"1", {}, {}).body, R"({"request_id":"r\"1","disposition":"ignored"})");
}

TEST(Answers, AReplayIsTheFirstAnswerMarked) {
  record::outcome replay = decided(disposition::applied);
  replay.replayed = true;
  const auto first = answer(decided(disposition::applied), {}, "a");
  const auto again = answer(replay, {}, "b");
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(again.status, first.status);
  EXPECT_EQ(again.headers, (http::header_list{{"Idempotent-Replayed", "true"}}));
  EXPECT_EQ(counted_as(replay), "duplicate");
  EXPECT_EQ(counted_as(decided(disposition::applied)), "applied");
}

TEST(Answers, RefusalsAreProblems) {
  record::outcome unprocessable = decided(disposition::unprocessable);
  unprocessable.detail = "event: absent or blank";
  const auto told = answer(unprocessable, {}, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(told.status, 422);
  EXPECT_EQ(told.content_type, "application/problem+json");
  for (const char* piece :
       {R"("code":"unprocessable")", R"("retryable":false)", R"("detail":"event: absent or blank")", R"("request_id":"req-1001")",
        R"("delivery_id":"01920000-0000-7000-8000-000000000001")", R"("trace_id":"0af7651916cd43dd8448eb211c80319c")"}) {
    EXPECT_TRUE(has(told, piece)) << piece << told.body;
  }
  EXPECT_TRUE(has(answer(decided(disposition::conflict), {}, {}), R"("code":"conflict")"));
  EXPECT_EQ(answer(decided(disposition::conflict), {}, {}).status, 409);
  EXPECT_TRUE(has(answer(decided(disposition::unknown_operation), {}, {}), R"("code":"unknown_operation")"));
  EXPECT_EQ(answer(decided(disposition::unknown_operation), {}, {}).status, 404);
}

TEST(Answers, AProvidersOwnStatusesKeepTheDisposition) {
  config::answers how;
  how.status = {{"conflict", 200}, {"unprocessable", 202}, {"parked", 404}};
  const auto conflict = answer(decided(disposition::conflict, how), how, {});
  EXPECT_EQ(conflict.status, 200);
  EXPECT_TRUE(has(conflict, R"("disposition":"conflict")"));
  EXPECT_EQ(answer(decided(disposition::unprocessable, how), how, {}).status, 202);
  const auto parked = answer(decided(disposition::parked, how), how, {});
  EXPECT_EQ(parked.status, 404);
  EXPECT_TRUE(has(parked, R"("code":"parked")"));
}

TEST(Answers, LiteralBodiesAreForAcknowledgementsOnly) {
  config::answers how;
  how.body = "[accepted]";
  how.content_type = "text/plain";
  for (const disposition word : all) {
    const auto shape = config::shape_of(how, word);
    const bool is_2xx = shape.status < 300;
    EXPECT_EQ(shape.body.has_value(), is_2xx) << transition::to_string(word);
    const auto told = answer(decided(word, how), how, {});
    EXPECT_EQ(told.body == "[accepted]", is_2xx);
    EXPECT_EQ(told.content_type, is_2xx ? "text/plain" : "application/problem+json");
  }
  EXPECT_EQ(answer_ignored("r", how, {}).body, "[accepted]");
  how.body = "";
  EXPECT_EQ(answer(decided(disposition::applied, how), how, {}).body, "");
}

TEST(Answers, AStatusWithoutContentHasNone) {
  config::answers how;
  how.status = {{"applied", 204}};
  const auto told = answer(decided(disposition::applied, how), how, {});
  EXPECT_EQ(told.status, 204);
  EXPECT_EQ(told.body, "");
}

}  // namespace
}  // namespace recibo::receive
