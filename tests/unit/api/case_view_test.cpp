// The pure half of evidence/case_view: what is true now, what may be done, and how it is told.
#include "recibo/evidence/case_view.hpp"

#include "recibo/config/load.hpp"
#include "recibo/config/state_limit.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/json_value.hpp"
#include "recibo/evidence/facts.hpp"

#include <gtest/gtest.h>

namespace recibo::evidence {
namespace {

const config::settings& settings() {
  static const auto read = config::load_text("case_view_test", R"(
providers:
  p1: {verify: {scheme: stripe, secrets: [whsec_test_secret_of_a_provider]}, extract: {request_id: /r, idempotency_key: /k, event: /e}, events: {done: complete}, workflow: w}
  slow: {verify: {scheme: stripe, secrets: [whsec_test_secret_of_a_provider]}, extract: {request_id: /r, idempotency_key: /k, event: /e}, events: {done: complete}, workflow: w,
         limits: {accepted: {after: 2h, event: overdue}, processing: none}}
workflows:
  w:
    initial: accepted
    states:
      accepted: {label: "Accepted, waiting", limit: {after: 15m, event: overdue}, owner: ops}
      processing: {label: In progress, limit: {after: 1h, event: overdue}, owner: ops}
      completed: {label: Completed, terminal: true, done: true}
      failed: {label: Rejected, terminal: true}
    transitions:
      - {from: accepted, event: submitted, to: processing, by: client}
      - {from: accepted, event: overdue, to: failed, by: clock}
      - {from: processing, event: overdue, to: failed, by: clock}
      - {from: [accepted, processing], event: complete, to: completed, by: provider}
      - {from: [accepted, processing], event: give_up, to: failed, by: operator}
)",
                                             ".");
  if (!read.settings) throw std::runtime_error(config::to_string(read.problems.front()));
  return *read.settings;
}

const transition::workflow& table() { return *settings().workflows.at("w"); }
judged_by judge() { return {table(), settings()}; }

const sys_micros noon = *parse_rfc3339("2026-10-01T12:00:00Z");

storage::operation_view operation(std::string state = "accepted") {
  storage::operation_view o;
  o.request_id = "req-1";
  o.provider = "p1";
  o.state = std::move(state);
  o.workflow = table().version_key();
  o.revision = 1;
  o.state_at = o.updated_at = o.accepted_at = noon;
  o.read_at = noon + std::chrono::minutes(1);
  o.client = "checkout";
  o.metadata = "{}";
  return o;
}

TEST(CaseView, OverdueIsWhatItsTimersSay) {
  auto o = operation();
  EXPECT_FALSE(is_overdue(o, judge()));
  o.read_at = noon + std::chrono::hours(1000);
  EXPECT_FALSE(is_overdue(o, judge())) << "nothing is set to run out";
  o.due_at = noon + std::chrono::minutes(15);
  EXPECT_TRUE(is_overdue(o, judge()));
  o.read_at = noon + std::chrono::minutes(14);
  EXPECT_FALSE(is_overdue(o, judge()));
  o.read_at = noon + std::chrono::minutes(16);
  o.state = "completed";
  EXPECT_FALSE(is_overdue(o, judge()));
}

TEST(CaseView, AProviderMayHaveLimitsOfItsOwn) {
  const auto after = [](const char* state, const char* provider) {
    const auto* const limit = config::limit_of(table(), state, provider, settings());
    return limit == nullptr ? std::chrono::seconds() : limit->after;
  };
  EXPECT_EQ(after("accepted", "p1"), std::chrono::minutes(15));
  EXPECT_EQ(after("accepted", "slow"), std::chrono::hours(2));
  EXPECT_EQ(after("processing", "slow"), std::chrono::seconds()) << "or none at all";
  EXPECT_EQ(after("processing", "gone from the configuration"), std::chrono::hours(1));
  EXPECT_EQ(after("completed", "p1"), std::chrono::seconds());
  EXPECT_EQ(after("not a state", "p1"), std::chrono::seconds());
  EXPECT_EQ(config::resend_gap_of("slow", settings()), config::resend_gap_default) << "nothing is known of it";
  EXPECT_EQ(config::resend_gap_of("gone from the configuration", settings()), config::resend_gap_default);
}

TEST(CaseView, EachSeesWhatMayBeRaised) {
  EXPECT_EQ(allowed_events(operation(), table(), audience::client), std::vector<std::string_view>{"submitted"});
  EXPECT_EQ(allowed_events(operation(), table(), audience::operators), (std::vector<std::string_view>{"submitted", "give_up"}));
  EXPECT_TRUE(allowed_events(operation("completed"), table(), audience::operators).empty());
}

TEST(CaseView, ARetryIsSafeOnlyAfterAnEndWithoutSuccess) {
  EXPECT_FALSE(retry_safe(operation(), table()).safe);
  EXPECT_FALSE(retry_safe(operation("completed"), table()).safe);
  EXPECT_TRUE(retry_safe(operation("failed"), table()).safe);
  auto o = operation("failed");
  o.review_open = true;
  EXPECT_FALSE(retry_safe(o, table()).safe);
}

TEST(CaseView, TheLastStageIsTheFurthest) {
  auto o = operation();
  EXPECT_EQ(last_stage(o), "accepted");
  o.called_back = true;
  EXPECT_EQ(last_stage(o), "received");
  o.version = 1;
  EXPECT_EQ(last_stage(o), "transitioned");
  o.notified = true;
  EXPECT_EQ(last_stage(o), "notified");
}

TEST(CaseView, TheStatusHoldsNothingButWordsForACustomer) {
  auto o = operation();
  o.metadata = R"({"iban":"secret-number"})";
  o.amount = "19.99";
  o.references = {"inner-reference"};
  json_writer out;
  write_status(out, o, table());
  for (const auto* word : {"secret-number", "19.99", "inner-reference", "p1", "checkout"})
    EXPECT_EQ(out.str().find(word), std::string::npos) << word;
  EXPECT_NE(out.str().find("Accepted, waiting"), std::string::npos);
}

TEST(CaseView, TheReferenceIsTheRegisteredOrTheFirstLearned) {
  const auto shown = [](const storage::operation_view& o) {
    json_writer out;
    write_operation(out, o, judge(), audience::client);
    return parse_json(out.str())->find("reference")->text;
  };
  auto o = operation();
  EXPECT_EQ(shown(o), "");
  o.references = {"a", "b"};
  EXPECT_EQ(shown(o), "a");
  o.reference = "b";
  EXPECT_EQ(shown(o), "b");
}

TEST(CaseView, KeysAreShownPartByPart) {
  canonical key;
  key.add("evt-1").add_absent().add("é");
  EXPECT_EQ(key_text(key.bytes()), "evt-1 /  / é");
  EXPECT_EQ(key_text(""), "");
  EXPECT_EQ(key_text("xyz"), "78797a");
  EXPECT_EQ(key_text(std::string("\0\0\0\x09yz", 6)), "00000009797a");
  canonical bytes;
  bytes.add("\xff");
  EXPECT_EQ(key_text(bytes.bytes()), "00000001ff");
}

storage::case_facts facts() {
  storage::case_facts out;
  auto& accepted = out.facts.emplace_back();
  accepted.sequence = 1;
  accepted.kind = kind_accept;
  accepted.actor = "checkout";
  accepted.at = noon;
  auto& delivered = out.facts.emplace_back();
  delivered.sequence = 2;
  delivered.kind = kind_delivery;
  delivered.actor = "p1";
  delivered.at = noon + std::chrono::seconds(2);
  delivered.received_at = noon + std::chrono::seconds(1);
  delivered.delivery = make_id<delivery_id>(*delivered.received_at);
  delivered.disposition = "applied";
  delivered.secret = "secret-1";
  delivered.provider_event = "done\x1b[31m";
  delivered.event = "complete";
  delivered.from = "accepted";
  delivered.to = "completed";
  delivered.actor_kind = "provider";
  delivered.version = 1;
  auto& sent = out.notifications.emplace_back();
  sent.sequence = 2;
  sent.id = "01890000-0000-7000-8000-000000000000";
  sent.destination = "ledger";
  sent.type = "operation.completed";
  sent.status = "pending";
  sent.created_at = delivered.at;
  return out;
}

TEST(CaseView, TheTimelineIsInTheOrderOfTime) {
  const auto timeline = make_timeline(operation("completed"), facts(), true);
  ASSERT_EQ(timeline.size(), 4U);
  EXPECT_EQ(to_string(timeline[0].what), "accepted");
  EXPECT_EQ(to_string(timeline[1].what), "delivery");
  EXPECT_EQ(to_string(timeline[2].what), "transition");
  EXPECT_EQ(to_string(timeline[3].what), "notification");
  json_writer out;
  for (const auto& e : timeline) {
    json_writer one;
    write_timeline_entry(one, e);
    EXPECT_TRUE(parse_json(one.str())) << one.str();
  }
}

TEST(CaseView, ReviewsFallIntoThePageOfTheirTime) {
  auto page = facts();
  auto& review = page.reviews.emplace_back();
  review.opened_at = noon + std::chrono::seconds(2);
  review.status = "open";
  const auto reviews = [&](bool first) {
    const auto timeline = make_timeline(operation("completed"), page, first);
    return std::count_if(timeline.begin(), timeline.end(), [](const auto& e) { return e.what == timeline_entry::kind::review; });
  };
  EXPECT_EQ(reviews(true), 1) << "that it was resolved is a fact of its own";
  page.more = true;
  EXPECT_EQ(reviews(true), 0) << "it comes with a later page";
  page.more = false;
  page.facts.erase(page.facts.begin());
  EXPECT_EQ(reviews(false), 1) << "the last page has it";
}

TEST(CaseView, WhatWasDoneAboutAReviewIsToldInItsPlace) {
  auto page = facts();
  auto& review = page.reviews.emplace_back();
  review.opened_at = noon;
  review.kind = "conflict";
  review.owner = "desk";
  auto& done = page.facts.emplace_back();
  done.sequence = 99;
  done.kind = "review";
  done.actor = "ops";
  done.at = noon + std::chrono::seconds(60);
  done.review = to_string(review.id);
  done.review_kind = "conflict";
  done.review_action = "assigned";
  done.assignee = "ni\nght";
  const auto o = operation("completed");
  EXPECT_NE(draw_case(o, judge(), make_timeline(o, page, true), true).find("to review   conflict"), std::string::npos);
  done.review_action = "resolved";
  done.resolution = "refunded";
  done.review_reason = "the bank agrees";
  done.caused = 98;
  const auto timeline = make_timeline(o, page, true);
  const auto& last = timeline.back();
  EXPECT_EQ(last.what, timeline_entry::kind::review);
  EXPECT_EQ(last.status, "resolved");
  EXPECT_EQ(last.caused, 98);
  const auto drawn = draw_case(o, judge(), timeline, true);
  EXPECT_NE(drawn.find("resolved (conflict) by ops: refunded, because: the bank agrees, with the transition of fact 98"),
            std::string::npos)
      << drawn;
  EXPECT_EQ(drawn.find("to review"), std::string::npos) << drawn;
}

TEST(CaseView, AReplayIsAPersonsAndWhatItMovedTheProviders) {
  auto page = facts();
  auto& done = page.facts.emplace_back();
  done.sequence = 99;
  done.kind = "replay";
  done.actor = "ops";
  done.at = noon + std::chrono::seconds(60);
  done.failed = "f-1";
  done.replay_disposition = "applied";
  done.replay_reason = "the map was mended";
  done.provider_event = "payment.settled";
  done.event = "complete";
  done.from = "accepted";
  done.to = "completed";
  done.actor_kind = "provider";
  done.transition_actor = "p1";
  const auto o = operation("completed");
  const auto timeline = make_timeline(o, page, true);
  const auto& told = timeline[timeline.size() - 2];
  const auto& moved = timeline.back();
  EXPECT_EQ(to_string(told.what), "replay");
  EXPECT_EQ(told.actor, "ops");
  EXPECT_EQ(told.disposition, "applied");
  EXPECT_EQ(to_string(moved.what), "transition");
  EXPECT_EQ(moved.actor, "p1");
  const auto drawn = draw_case(o, judge(), timeline, true);
  EXPECT_NE(drawn.find("ops replayed 'payment.settled': applied, because: the map was mended"), std::string::npos) << drawn;
}

TEST(CaseView, ATerminalSeesOneCaseAndNoEscapes) {
  auto o = operation("completed");
  o.version = 1;
  o.action = "pay\nnow";
  o.amount = "19.99";
  o.currency = "EUR";
  const auto text = draw_case(o, judge(), make_timeline(o, facts(), true), true);
  for (const auto* word : {"req-1", "completed - Completed (final)", "19.99 EUR", "applied", "secret-1", "accepted -> completed",
                           "operation.completed to ledger: pending", "nothing by hand", "not safe", "1 not delivered yet"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  for (const char c : text) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << int{c};
  EXPECT_EQ(text.find('\x7f'), std::string::npos);
}

}  // namespace
}  // namespace recibo::evidence
