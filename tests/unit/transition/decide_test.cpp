#include "recibo/transition/decide.hpp"

#include "unit/transition/tables.hpp"

#include <gtest/gtest.h>

#include <array>

namespace recibo::transition {
namespace {

using namespace std::chrono_literals;
using namespace tables;

const workflow& table() {
  static const workflow one = payment();
  return one;
}

const sys_micros ten = parse_rfc3339("2026-10-01T10:00:00Z").value();
constexpr auto none = std::nullopt;

struct row {
  const char* name;
  const char* state;
  const char* event;
  disposition outcome;
  const char* to = "";  // for applied
  review_kind why = review_kind::none;
  std::optional<sys_micros> watermark = none, occurred = none;
};

class TheTable : public testing::TestWithParam<row> {};

TEST_P(TheTable, Decides) {
  const row& r = GetParam();
  const subject now{.state = r.state, .watermark_at = r.watermark};
  const news said{.event = r.event, .occurred_at = r.occurred};
  const decision d = decide(table(), now, none, said, order_rule::table);
  EXPECT_EQ(to_string(d.outcome), to_string(r.outcome));
  EXPECT_EQ(to_string(d.why_review), to_string(r.why));
  EXPECT_FALSE(d.table_would_allow);
  ASSERT_EQ(d.taken != nullptr, r.outcome == disposition::applied);
  if (d.taken) {
    EXPECT_EQ(d.taken->from, r.state);
    EXPECT_EQ(d.taken->event, r.event);
    EXPECT_EQ(d.taken->to, r.to);
  }
}

using enum disposition;
constexpr auto contradiction = review_kind::contradiction;

const auto rows = std::to_array<row>({
    {"a_move_of_the_table", "processing", "complete", applied, "completed"},
    {"early_success", "accepted", "complete", applied, "completed"},
    {"success_after_silence", "unknown", "complete", applied, "completed"},
    {"old_by_its_clock_and_allowed", "processing", "complete", applied, "completed", {}, ten, ten - 48h},
    {"old_and_not_terminal_and_allowed", "accepted", "progress", applied, "processing", {}, ten, ten - 1s},
    {"success_twice", "completed", "complete", redundant},
    {"success_twice_older", "completed", "complete", redundant, "", {}, ten, ten - 1h},
    {"success_twice_newer", "completed", "complete", redundant, "", {}, ten, ten + 1h},
    {"progress_twice", "processing", "progress", redundant},
    {"progress_after_success", "completed", "progress", stale},
    {"progress_after_success_with_a_newer_clock", "completed", "progress", stale, "", {}, ten, ten + 1h},
    {"progress_after_failure", "failed", "progress", stale},
    {"progress_after_silence", "unknown", "progress", stale},
    {"late_success_after_failure", "failed", "complete", review, "", contradiction},
    {"late_failure_after_success", "completed", "fail", review, "", contradiction},
    {"older_failure_after_success", "completed", "fail", review, "", contradiction, ten, ten - 1h},
    {"success_after_cancellation", "cancelled", "complete", review, "", contradiction},
    {"older_success_after_cancellation", "cancelled", "complete", review, "", contradiction, ten, ten - 1h},
    {"progress_after_cancellation", "cancelled", "progress", review, "", contradiction},
    {"progress_after_cancellation_older", "cancelled", "progress", stale, "", {}, ten, ten - 1us},
    {"progress_after_cancellation_same_time", "cancelled", "progress", review, "", contradiction, ten, ten},
    {"progress_after_cancellation_newer", "cancelled", "progress", review, "", contradiction, ten, ten + 1us},
    {"progress_after_cancellation_no_watermark", "cancelled", "progress", review, "", contradiction, none, ten},
    {"progress_after_cancellation_no_time", "cancelled", "progress", review, "", contradiction, ten, none},
    {"an_event_of_the_client", "accepted", "submitted", review, "", contradiction},
    {"an_event_of_the_client_that_happened", "processing", "submitted", redundant},
    {"an_event_of_the_client_that_passed", "completed", "submitted", stale},
    {"an_event_of_the_clock", "processing", "overdue", review, "", contradiction},
    {"an_event_of_an_operator", "unknown", "resolve_completed", review, "", contradiction},
    {"out_of_an_end_is_for_operators", "failed", "reopen", review, "", contradiction},
    {"an_operator_s_reopening_makes_nothing_stale", "requires_review", "fail", applied, "failed"},
    {"an_event_that_this_version_does_not_know", "processing", "refund", review, "", contradiction},
    {"an_unknown_event_in_an_end", "completed", "refund", review, "", contradiction},
    {"an_empty_event", "completed", "", review, "", contradiction},
    {"a_state_that_this_version_does_not_know", "refunded", "complete", review, "", contradiction},
});

INSTANTIATE_TEST_SUITE_P(Decide, TheTable, testing::ValuesIn(rows), [](const auto& r) { return r.param.name; });

TEST(Decide, LateSuccessAfterFailureOpensReview) {
  const decision d = decide(table(), subject{.state = "failed"}, none, news{.event = "complete"}, order_rule::table);
  EXPECT_EQ(d.outcome, review);
  EXPECT_EQ(d.why_review, contradiction);
  EXPECT_EQ(d.taken, nullptr);
}

// An end that an operator can lead out of again, back to where a provider's news once led.
TEST(Decide, WhatOnlyAnOperatorCouldUndoIsNoPathToTheState) {
  std::vector<move> moves;
  add(moves, {"open"}, "settle", "settled", {provider});
  add(moves, {"open"}, "hold", "held", {provider});
  add(moves, {"settled"}, "undo", "held", {operator_});
  add(moves, {"held"}, "release", "done", {provider});
  const workflow w = made("w", "open", {open("open"), closed("settled"), open("held"), closed("done")}, moves);
  // "settled" leads to "held" by an operator alone: a late "settle" is news that contradicts, not old news.
  const decision d = decide(w, subject{.state = "held"}, none, news{.event = "settle"}, order_rule::table);
  EXPECT_EQ(d.outcome, review);
}

TEST(Decide, AnyOfSeveralTargetsMayBeThePresentState) {
  std::vector<move> moves;
  add(moves, {"a"}, "next", "b", {provider});
  add(moves, {"b"}, "next", "c", {provider});
  add(moves, {"c"}, "end", "d", {provider});
  const workflow w = made("w", "a", {open("a"), open("b"), open("c"), closed("d")}, moves);
  EXPECT_EQ(decide(w, subject{.state = "b"}, none, news{.event = "next"}, order_rule::table).outcome, applied);
  EXPECT_EQ(decide(w, subject{.state = "c"}, none, news{.event = "next"}, order_rule::table).outcome, redundant);
  EXPECT_EQ(decide(w, subject{.state = "d"}, none, news{.event = "next"}, order_rule::table).outcome, stale);
}

// ---- keys ----

const sha256_digest first = sha256("first"), other = sha256("other");

TEST(Decide, ClaimedKeyWithTheSameContentIsADuplicateWhateverTheState) {
  for (const state& s : table().states()) {
    const decision d = decide(table(), subject{.state = s.name}, claim{first}, news{.event = "complete", .content_digest = first},
                              order_rule::table);
    EXPECT_EQ(d.outcome, duplicate) << s.name;
    EXPECT_EQ(d.taken, nullptr);
    EXPECT_EQ(d.why_review, review_kind::none);
  }
}

TEST(Decide, ClaimedKeyWithOtherContentIsAConflictEvenWhereTheTableWouldMove) {
  const decision d = decide(table(), subject{.state = "processing"}, claim{first},
                            news{.event = "complete", .content_digest = other}, order_rule::table);
  EXPECT_EQ(d.outcome, conflict);
  EXPECT_EQ(d.why_review, review_kind::conflict);
  EXPECT_EQ(d.taken, nullptr);
}

TEST(Decide, TheKeyComesBeforeTheSequence) {
  const subject now{.state = "completed", .watermark_sequence = 9};
  EXPECT_EQ(
      decide(table(), now, claim{first}, news{.event = "complete", .sequence = 1, .content_digest = first}, order_rule::sequence)
          .outcome,
      duplicate);
  EXPECT_EQ(
      decide(table(), now, claim{first}, news{.event = "complete", .sequence = 1, .content_digest = other}, order_rule::sequence)
          .outcome,
      conflict);
}

// ---- sequence ----

struct sequence_row {
  const char* name;
  const char* state;
  const char* event;
  std::optional<std::int64_t> watermark, said;
  order_rule order;
  disposition outcome;
  bool would_allow = false;
  review_kind why = review_kind::none;
};

class TheSequence : public testing::TestWithParam<sequence_row> {};

TEST_P(TheSequence, Overrules) {
  const sequence_row& r = GetParam();
  const decision d = decide(table(), subject{.state = r.state, .watermark_sequence = r.watermark}, none,
                            news{.event = r.event, .sequence = r.said}, r.order);
  EXPECT_EQ(to_string(d.outcome), to_string(r.outcome));
  EXPECT_EQ(d.table_would_allow, r.would_allow);
  EXPECT_EQ(d.why_review, r.why);
  EXPECT_EQ(d.taken != nullptr, r.outcome == applied);
}

constexpr auto by_sequence = order_rule::sequence;

const auto sequence_rows = std::to_array<sequence_row>({
    {"newer", "processing", "complete", 5, 6, by_sequence, applied},
    {"older_and_allowed", "processing", "complete", 5, 4, by_sequence, stale, true},
    {"equal_says_nothing_about_order", "processing", "complete", 5, 5, by_sequence, applied},
    {"equal_repetition", "completed", "complete", 5, 5, by_sequence, redundant},
    {"absurd_watermark_swallows_nothing", "processing", "complete", 9'000'000'000'000'000'000, 6, by_sequence, applied},
    {"time_stamp_among_versions", "processing", "complete", 1'767'225'600'000, 6, by_sequence, applied},
    {"absurd_first", "processing", "complete", none, 9'000'000'000'000'000'000, by_sequence, applied},
    {"old_time_stamp", "processing", "complete", 1'767'225'600'000, 1'767'225'500'000, by_sequence, stale, true},
    {"far_within_a_count", "processing", "complete", 1'000'000, 1, by_sequence, stale, true},
    {"older_and_not_allowed", "completed", "fail", 5, 4, by_sequence, stale},
    {"older_and_already_so", "completed", "complete", 5, 4, by_sequence, stale},
    {"older_and_not_for_providers", "accepted", "submitted", 5, 4, by_sequence, stale},
    {"newer_contradiction", "completed", "fail", 5, 6, by_sequence, review, false, contradiction},
    {"newer_repetition", "completed", "complete", 5, 6, by_sequence, redundant},
    {"newer_and_passed", "completed", "progress", 5, 6, by_sequence, stale},
    {"nothing_known_before", "processing", "complete", none, 1, by_sequence, applied},
    {"nothing_said", "processing", "complete", 5, none, by_sequence, applied},
    {"no_promise", "processing", "complete", 5, 4, order_rule::table, applied},
    {"negative_numbers", "processing", "complete", -5, -6, by_sequence, stale, true},
    {"beyond_32_bits", "processing", "complete", 9223372036854775806, 9223372036854775807, by_sequence, applied},
});

INSTANTIATE_TEST_SUITE_P(Decide, TheSequence, testing::ValuesIn(sequence_rows), [](const auto& r) { return r.param.name; });

// ---- intent ----

struct intent_row {
  const char* name;
  const char* state;
  std::optional<decimal> registered;
  std::optional<std::string> registered_in;
  std::optional<decimal> said;
  std::optional<std::string> said_in;
  disposition outcome;
  review_kind why = review_kind::none;
};

class TheIntent : public testing::TestWithParam<intent_row> {};

TEST_P(TheIntent, IsHeldAgainstTheCallback) {
  const intent_row& r = GetParam();
  const subject now{.state = r.state, .amount = r.registered, .currency = r.registered_in};
  const news said{.event = "complete", .amount = r.said, .currency = r.said_in};
  const decision d = decide(table(), now, none, said, order_rule::table);
  EXPECT_EQ(to_string(d.outcome), to_string(r.outcome));
  EXPECT_EQ(to_string(d.why_review), to_string(r.why));
  EXPECT_EQ(d.taken != nullptr, r.outcome == applied);
}

const decimal price{"19.99"}, same_price{"19.990"}, other_price{"1999.00"};
constexpr auto amount = review_kind::amount_mismatch;
constexpr auto currency = review_kind::currency_mismatch;

const auto intent_rows = std::to_array<intent_row>({
    {"same", "processing", price, "EUR", price, "EUR", applied},
    {"same_value_other_digits", "processing", price, "EUR", same_price, "EUR", applied},
    {"other_amount", "processing", price, "EUR", other_price, "EUR", review, amount},
    {"other_currency", "processing", price, "EUR", price, "USD", review, currency},
    {"other_both", "processing", price, "EUR", other_price, "USD", review, amount},
    {"opposite_sign", "processing", price, "EUR", decimal{"-19.99"}, "EUR", review, amount},
    {"zero_and_minus_zero", "processing", decimal{"0"}, "EUR", decimal{"-0.00"}, "EUR", applied},
    {"nothing_registered", "processing", none, none, price, "EUR", applied},
    {"nothing_said", "processing", price, "EUR", none, none, applied},
    {"amount_without_currency", "processing", price, "EUR", other_price, none, review, amount},
    {"currency_without_amount", "processing", price, "EUR", none, "USD", review, currency},
    {"neighbours_beyond_doubles", "processing", decimal{"9007199254740993"}, none, decimal{"9007199254740992"}, none, review,
     amount},
    {"already_so", "completed", price, "EUR", same_price, "EUR", redundant},
    {"already_so_with_another_amount", "completed", price, "EUR", other_price, "EUR", review, amount},
    {"already_so_in_another_currency", "completed", price, "EUR", price, "USD", review, currency},
    {"contradiction_comes_first", "failed", price, "EUR", other_price, "EUR", review, contradiction},
});

INSTANTIATE_TEST_SUITE_P(Decide, TheIntent, testing::ValuesIn(intent_rows), [](const auto& r) { return r.param.name; });

// ---- events of clients, operators and the clock ----

struct event_row {
  const char* name;
  const char* state;
  const char* event;
  actor_kind who;
  bool evidence;
  const char* to;      // empty: refused
  const char* detail;  // of the refusal
};

class Events : public testing::TestWithParam<event_row> {};

TEST_P(Events, AreAllowedByTheTableAlone) {
  const event_row& r = GetParam();
  const auto d = decide_event(table(), r.state, r.event, r.who, r.evidence);
  if (*r.to) {
    ASSERT_TRUE(d) << d.error().detail;
    EXPECT_EQ((*d)->to, r.to);
  } else {
    ASSERT_FALSE(d);
    EXPECT_EQ(d.error().code, permanent::illegal_transition);
    EXPECT_EQ(d.error().detail, r.detail);
  }
}

constexpr auto event_rows = std::to_array<event_row>({
    {"client_submits", "accepted", "submitted", actor_kind::client, false, "processing", ""},
    {"client_cancels", "accepted", "cancel", actor_kind::client, false, "cancelled", ""},
    {"client_cancels_too_late", "processing", "cancel", actor_kind::client, false, "",
     "cancel is not possible in state processing"},
    {"client_is_no_provider", "processing", "complete", actor_kind::client, true, "",
     "complete in state processing cannot be raised by client"},
    {"operator_is_no_client", "accepted", "cancel", actor_kind::operator_, true, "",
     "cancel in state accepted cannot be raised by operator"},
    {"clock_is_late", "processing", "overdue", actor_kind::clock, false, "unknown", ""},
    {"clock_is_too_late", "completed", "overdue", actor_kind::clock, false, "", "overdue is not possible in state completed"},
    {"operator_resolves_with_evidence", "unknown", "resolve_completed", actor_kind::operator_, true, "completed", ""},
    {"operator_resolves_without", "unknown", "resolve_completed", actor_kind::operator_, false, "",
     "resolve_completed in state unknown needs evidence: statement"},
    {"operator_expires_without_evidence", "unknown", "expire", actor_kind::operator_, false, "expired", ""},
    {"operator_leaves_an_end", "failed", "reopen", actor_kind::operator_, true, "requires_review", ""},
    {"nobody_else_leaves_an_end", "failed", "reopen", actor_kind::client, true, "",
     "reopen in state failed cannot be raised by client"},
    {"unknown_event_is_not_repeated", "accepted", "<script>", actor_kind::client, true, "",
     "the workflow payment has no such event"},
    {"look_up_at_the_provider", "processing", "complete", actor_kind::provider, false, "completed", ""},
});

INSTANTIATE_TEST_SUITE_P(Decide, Events, testing::ValuesIn(event_rows), [](const auto& r) { return r.param.name; });

}  // namespace
}  // namespace recibo::transition
