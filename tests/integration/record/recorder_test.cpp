// The recorder on a real PostgreSQL: the key matrix of contract section 4, registrations, events, and what becomes durable.
#include "integration/record/bench_of_work.hpp"

#include <gtest/gtest.h>

namespace recibo::test {
namespace {

using transition::disposition;

class Recorder : public ::testing::Test {
 protected:
  std::string count(const std::string& what) { return db.sql("SELECT count(*) FROM recibo." + what); }
  // What must be true after every test: chains without gaps, heads as stored, one claim per key.
  void TearDown() override {
    EXPECT_EQ(count("operations o WHERE o.sequence <> (SELECT count(*) FROM recibo.audit a WHERE a.operation = o.id)"), "0");
    EXPECT_EQ(count("operations o WHERE o.chain_hash <> (SELECT hash FROM recibo.audit a WHERE a.operation = o.id AND a.sequence "
                    "= o.sequence)"),
              "0");
    EXPECT_EQ(count("operations o WHERE o.version <> (SELECT count(*) FROM recibo.transitions t WHERE t.operation = o.id)"), "0");
    EXPECT_EQ(count("transitions t WHERE t.notifications <> (SELECT count(*) FROM recibo.notifications n WHERE n.operation = "
                    "t.operation AND "
                    "n.sequence = t.sequence)"),
              "0");
    EXPECT_EQ(count("idempotency_keys k LEFT JOIN recibo.deliveries d ON d.id = k.delivery WHERE d.id IS NULL"), "0");
  }
  database db;
};

TEST_F(Recorder, AppliesOnceAndReplaysByteForByte) {
  bench_of_work work(db);
  const auto accepted = work.one(work.registration("r-1"));
  ASSERT_TRUE(accepted) << accepted.error().detail;
  EXPECT_EQ(accepted->state, "accepted");

  const auto first = work.one(work.callback("r-1", "k-1", "succeeded"));
  ASSERT_TRUE(first) << first.error().detail;
  EXPECT_EQ(first->disposition, disposition::applied);
  EXPECT_EQ(first->state, "completed");
  EXPECT_FALSE(first->replayed);

  const auto again = work.one(work.callback("r-1", "k-1", "succeeded"));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->replayed);
  EXPECT_EQ(again->disposition, disposition::applied);
  EXPECT_EQ(again->delivery, first->delivery);
  EXPECT_EQ(again->state, "completed");
  EXPECT_EQ(count("transitions"), "1");
  EXPECT_EQ(count("deliveries"), "2");
  EXPECT_EQ(count("payloads"), "1");  // the same bytes are kept once
  EXPECT_EQ(count("notifications"), "2");
}

TEST_F(Recorder, FiftyCopiesAtOnceAreOneEffect) {
  bench_of_work one(db), two(db);
  ASSERT_TRUE(one.one(one.registration("r-1")));
  std::vector<record::work> copies;
  for (int i = 0; i < 50; ++i) copies.push_back(one.callback("r-1", "k-1", "succeeded"));
  const auto answers = one.all(std::move(copies));
  int applied = 0, replayed = 0;
  for (const auto& a : answers) {
    ASSERT_TRUE(a) << a.error().detail;
    (a->replayed ? replayed : applied) += 1;
  }
  EXPECT_EQ(applied, 1);
  EXPECT_EQ(replayed, 49);
  EXPECT_EQ(count("transitions"), "1");
  EXPECT_EQ(count("deliveries"), "50");
}

TEST_F(Recorder, SameKeyOtherAmountIsOneConflictWithBothDigests) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  EXPECT_EQ(work.one(work.callback("r-1", "k-1", "succeeded"))->disposition, disposition::applied);
  const auto conflict = work.one(work.callback("r-1", "k-1", "succeeded", "p1", "1999.00"));
  ASSERT_TRUE(conflict);
  EXPECT_EQ(conflict->disposition, disposition::conflict);
  EXPECT_EQ(conflict->status, 409);
  EXPECT_TRUE(work.one(work.callback("r-1", "k-1", "succeeded"))->replayed);
  const auto again = work.one(work.callback("r-1", "k-1", "succeeded", "p1", "1999.00"));
  EXPECT_EQ(again->disposition, disposition::conflict);
  EXPECT_EQ(again->delivery, conflict->delivery);
  EXPECT_EQ(count("reviews WHERE status = 'open'"), "1");
  EXPECT_EQ(db.sql("SELECT count FROM recibo.reviews"), "2");
  EXPECT_EQ(count("reviews r JOIN recibo.payloads a ON a.id = r.delivery JOIN recibo.payloads b ON b.id = r.first_delivery"),
            "1");
  EXPECT_EQ(count("operations WHERE review_open"), "1");
}

TEST_F(Recorder, SignedContentStandsInForAnUnsignedKey) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  const auto sent = [&](const std::string& key, std::string event, const char* signed_content) {
    auto c = work.callback("r-1", key, std::move(event));
    c.signed_digest = sha256(signed_content);
    return c;
  };
  EXPECT_EQ(work.one(sent("k-1", "processing", "one"))->disposition, disposition::applied);
  const auto first = work.one(sent("k-2", "succeeded", "two"));
  // Both in one batch and in a later one; another key or the same.
  std::vector<record::work> again;
  for (const char* key : {"k-3", "k-4", "k-1"}) again.push_back(sent(key, "processing", "one"));
  again.push_back(sent("k-5", "succeeded", "two"));
  for (const auto& a : work.all(std::move(again))) {
    ASSERT_TRUE(a);
    EXPECT_TRUE(a->replayed);
  }
  EXPECT_EQ(count("idempotency_keys"), "2") << "a repetition claims nothing";
  EXPECT_EQ(count("transitions"), "2");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.deliveries WHERE disposition = 'duplicate' AND key NOT IN (SELECT key FROM "
                   "recibo.idempotency_keys)"),
            "0");
  // Other content under the same signature (the body is not what is signed) is a conflict with whoever holds it.
  EXPECT_EQ(work.one(sent("k-6", "failed", "two"))->disposition, disposition::conflict);
  EXPECT_EQ(first->state, "completed");
}

TEST_F(Recorder, OtherAmountThanRegisteredGoesToReview) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  const auto odd = work.one(work.callback("r-1", "k-1", "succeeded", "p1", "20.00"));
  ASSERT_TRUE(odd);
  EXPECT_EQ(odd->disposition, disposition::review);
  EXPECT_EQ(odd->state, "accepted");
  EXPECT_EQ(db.sql("SELECT kind FROM recibo.reviews"), "amount_mismatch");
  // Its key is claimed: the same again is a replay, not a second review.
  EXPECT_TRUE(work.one(work.callback("r-1", "k-1", "succeeded", "p1", "20.00"))->replayed);
  EXPECT_EQ(count("reviews"), "1");
}

TEST_F(Recorder, OlderNewsIsStaleAndContradictionsOpenReviews) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  EXPECT_EQ(work.one(work.callback("r-1", "k-1", "processing"))->disposition, disposition::applied);
  EXPECT_EQ(work.one(work.callback("r-1", "k-2", "succeeded"))->disposition, disposition::applied);
  EXPECT_EQ(work.one(work.callback("r-1", "k-3", "processing"))->disposition, disposition::stale);
  EXPECT_EQ(work.one(work.callback("r-1", "k-4", "succeeded"))->disposition, disposition::redundant);
  const auto contradiction = work.one(work.callback("r-1", "k-5", "failed"));
  EXPECT_EQ(contradiction->disposition, disposition::review);
  EXPECT_EQ(contradiction->state, "completed");
  EXPECT_EQ(db.sql("SELECT state FROM recibo.operations"), "completed");
  EXPECT_EQ(count("notifications WHERE type = 'operation.review_opened'"), "1");
}

TEST_F(Recorder, UnmappedAndUnprocessableAreKeptOnceWithACount) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  for (int i = 0; i < 3; ++i) {
    const auto odd = work.one(work.callback("r-1", "k-1", "no-such-status"));
    ASSERT_TRUE(odd);
    EXPECT_EQ(odd->disposition, disposition::unmapped);
    EXPECT_EQ(odd->status, 202);
  }
  auto broken = work.callback("", "k-1", "succeeded");
  broken.unprocessable = error(permanent::malformed_json, "the body is not JSON");
  for (int i = 0; i < 2; ++i) {
    const auto kept = work.one(broken);
    ASSERT_TRUE(kept);
    EXPECT_EQ(kept->disposition, disposition::unprocessable);
    EXPECT_EQ(kept->status, 422);
    broken.id = make_id<delivery_id>(now());
  }
  EXPECT_EQ(count("failed_callbacks"), "2");
  EXPECT_EQ(db.sql("SELECT string_agg(count::text, ',' ORDER BY id) FROM recibo.failed_callbacks"), "3,2");
  EXPECT_EQ(count("deliveries"), "2");
  EXPECT_EQ(count("idempotency_keys"), "0");
}

TEST_F(Recorder, AMendedCallbackClosesItsFailedRow) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  auto c = work.callback("r-1", "k-1", "succeeded");
  const auto mapped = c.event;
  c.event.clear();
  EXPECT_EQ(work.one(c)->disposition, disposition::unmapped);
  c.event = mapped;
  c.id = make_id<delivery_id>(now());
  EXPECT_EQ(work.one(c)->disposition, disposition::applied);
  EXPECT_EQ(count("failed_callbacks"), "0");
}

TEST_F(Recorder, RegistrationIsIdempotentAndConflictsAreSaidToBe) {
  bench_of_work work(db);
  std::vector<record::work> copies;
  for (int i = 0; i < 20; ++i) copies.push_back(work.registration("r-1"));
  int fresh = 0;
  for (const auto& a : work.all(std::move(copies))) {
    ASSERT_TRUE(a) << a.error().detail;
    if (!a->replayed) ++fresh;
  }
  EXPECT_EQ(fresh, 1);
  auto other = work.registration("r-1");
  other.intent = sha256("another");
  EXPECT_EQ(work.one(other).error().code, make_error_code(permanent::intent_conflict));

  auto keyed = work.registration("r-2");
  keyed.idempotency_key = "ik-1";
  EXPECT_FALSE(work.one(keyed)->replayed);
  keyed.id = make_id<operation_id>(now());
  EXPECT_TRUE(work.one(keyed)->replayed);
  auto reused = work.registration("r-3");
  reused.idempotency_key = "ik-1";
  EXPECT_EQ(work.one(reused).error().code, make_error_code(permanent::idempotency_key_reused));
  EXPECT_EQ(count("operations"), "2");
}

TEST_F(Recorder, EventsKeepToTheTableAndTheETag) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  auto submitted = work.event("r-1", "submitted");
  submitted.if_revisions = {7, 8};
  EXPECT_EQ(work.one(submitted).error().code, make_error_code(permanent::precondition_failed));
  submitted.if_revisions = {7, 1};
  submitted.idempotency_key = "e-1";
  const auto moved = work.one(submitted);
  ASSERT_TRUE(moved) << moved.error().detail;
  EXPECT_EQ(moved->state, "processing");
  EXPECT_TRUE(work.one(submitted)->replayed);
  EXPECT_EQ(work.one(work.event("r-1", "cancel")).error().code, make_error_code(permanent::illegal_transition));
  EXPECT_EQ(work.one(work.event("r-9", "cancel")).error().code, make_error_code(permanent::not_found));
  auto foreign = work.event("r-1", "cancel");
  foreign.client = "somebody";
  EXPECT_EQ(work.one(foreign).error().code, make_error_code(permanent::not_found));
}

TEST_F(Recorder, CallbacksTouchOnlyTheirOwnProvidersOperations) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1", "p1")));
  const auto foreign = work.one(work.callback("r-1", "k-1", "succeeded", "p2"));
  ASSERT_TRUE(foreign) << foreign.error().detail;
  EXPECT_EQ(foreign->disposition, disposition::parked);
  EXPECT_EQ(db.sql("SELECT state FROM recibo.operations"), "accepted");
}

TEST_F(Recorder, AHundredAndFiftyDuplicatesLeaveAHundredRows) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  ASSERT_TRUE(work.one(work.callback("r-1", "k-1", "succeeded")));
  std::vector<record::work> copies;
  for (int i = 0; i < 150; ++i) copies.push_back(work.callback("r-1", "k-1", "succeeded"));
  for (const auto& a : work.all(std::move(copies))) {
    ASSERT_TRUE(a) << a.error().detail;
    EXPECT_TRUE(a->replayed);
  }
  EXPECT_EQ(db.sql("SELECT duplicates FROM recibo.idempotency_keys"), "150");
  EXPECT_EQ(count("deliveries WHERE disposition = 'duplicate'"), "100");
}

TEST_F(Recorder, PayloadAccessIsOnRecord) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  const auto c = work.one(work.callback("r-1", "k-1", "succeeded"));
  record::payload_access looked;
  looked.request_id = "r-1";
  looked.delivery = c->delivery;
  looked.at = now();
  looked.actor = "ops";
  ASSERT_TRUE(work.one(looked));
  EXPECT_EQ(count("payload_accesses p JOIN recibo.audit a ON a.operation = p.operation AND a.sequence = p.sequence AND a.kind = "
                  "'payload_access'"),
            "1");
}

}  // namespace
}  // namespace recibo::test
