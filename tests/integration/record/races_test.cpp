// Two recorders on one database stand for two replicas: parked callbacks, aliases, locks, poison (write path rules 1-8).
#include "integration/record/bench_of_work.hpp"
#include "support/random.hpp"

#include <libpq-fe.h>

#include <gtest/gtest.h>

#include <set>
#include <thread>

namespace recibo::test {
namespace {

using transition::disposition;
using namespace std::chrono_literals;

// A session of a test's own, that holds locks.
class holder {
 public:
  explicit holder(const database& db) : session_(PQconnectdb(std::string(db.url().reveal()).c_str())) {}
  ~holder() { PQfinish(session_); }
  void run(const std::string& sql) {
    auto* r = PQexec(session_, sql.c_str());
    const auto status = PQresultStatus(r);
    EXPECT_TRUE(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) << PQerrorMessage(session_);
    PQclear(r);
  }

 private:
  PGconn* session_;
};

class Races : public ::testing::Test {
 protected:
  std::string count(const std::string& what) { return db.sql("SELECT count(*) FROM recibo." + what); }
  void TearDown() override {
    EXPECT_EQ(count("operations o WHERE o.sequence <> (SELECT count(*) FROM recibo.audit a WHERE a.operation = o.id)"), "0");
    EXPECT_EQ(count("operations o WHERE o.version <> (SELECT count(*) FROM recibo.transitions t WHERE t.operation = o.id)"), "0");
    EXPECT_EQ(count("parked p WHERE EXISTS (SELECT FROM recibo.transitions t WHERE t.delivery = p.id)"), "0");
    EXPECT_EQ(count("parked_identities i LEFT JOIN recibo.parked p ON p.id = i.parked WHERE p.id IS NULL"), "0");
  }
  database db;
};

TEST_F(Races, ParkedCallbackIsAppliedByItsRegistration) {
  bench_of_work work(db);
  const auto parked = work.one(work.callback("r-1", "k-1", "succeeded"));
  ASSERT_TRUE(parked) << parked.error().detail;
  EXPECT_EQ(parked->disposition, disposition::parked);
  EXPECT_EQ(parked->status, 202);
  const auto twice = work.one(work.callback("r-1", "k-1", "succeeded"));
  EXPECT_TRUE(twice->replayed);
  EXPECT_EQ(twice->delivery, parked->delivery);
  EXPECT_EQ(count("parked"), "1");

  const auto accepted = work.one(work.registration("r-1"));
  ASSERT_TRUE(accepted) << accepted.error().detail;
  EXPECT_EQ(accepted->state, "completed");
  EXPECT_EQ(count("parked"), "0");
  EXPECT_EQ(count("transitions WHERE actor_kind = 'provider'"), "1");
  EXPECT_EQ(db.sql("SELECT disposition FROM recibo.deliveries WHERE id = (SELECT delivery FROM recibo.transitions)"), "parked");
  // It answers as applied from now on.
  const auto replay = work.one(work.callback("r-1", "k-1", "succeeded"));
  EXPECT_TRUE(replay->replayed);
  EXPECT_EQ(replay->disposition, disposition::applied);
  EXPECT_EQ(replay->delivery, parked->delivery);
  EXPECT_EQ(count("transitions"), "1");
}

TEST_F(Races, ParkedCallbacksAreAppliedInTheOrderOfTheirArrival) {
  bench_of_work work(db);
  ASSERT_EQ(work.one(work.callback("r-1", "k-1", "processing"))->disposition, disposition::parked);
  ASSERT_EQ(work.one(work.callback("r-1", "k-2", "succeeded"))->disposition, disposition::parked);
  EXPECT_EQ(work.one(work.registration("r-1"))->state, "completed");
  EXPECT_EQ(db.sql("SELECT string_agg(to_state, ',' ORDER BY sequence) FROM recibo.transitions"), "processing,completed");
}

TEST_F(Races, OtherContentUnderAParkedKeyIsAConflictNowAndAReviewLater) {
  bench_of_work work(db);
  ASSERT_EQ(work.one(work.callback("r-1", "k-1", "succeeded"))->disposition, disposition::parked);
  const auto other = work.one(work.callback("r-1", "k-1", "succeeded", "p1", "1999.00"));
  EXPECT_EQ(other->disposition, disposition::conflict);
  EXPECT_EQ(other->status, 409);
  EXPECT_EQ(work.one(work.callback("r-1", "k-1", "succeeded", "p1", "1999.00"))->delivery, other->delivery);
  EXPECT_EQ(work.one(work.registration("r-1"))->state, "completed");
  EXPECT_EQ(count("reviews WHERE kind = 'conflict'"), "1");
  EXPECT_EQ(count("transitions"), "1");
  EXPECT_EQ(count("parked"), "0");
}

TEST_F(Races, PhotoFinishOfCallbackAndRegistrationNeverMisses) {
  bench_of_work one(db), two(db);
  for (int round = 0; round < 100; ++round) {
    const auto id = "r-" + std::to_string(round);
    // Both start at the same instant, each on a thread and recorder of its own.
    std::optional<result<record::outcome>> said;
    std::thread other([&] { said = two.one(two.callback(id, "k", "succeeded")); });
    const auto accepted = one.one(one.registration(id));
    other.join();
    ASSERT_TRUE(accepted) << accepted.error().detail;
    ASSERT_TRUE(said->has_value()) << said->error().detail;
  }
  EXPECT_EQ(count("parked"), "0");
  EXPECT_EQ(count("operations WHERE state = 'completed'"), "100");
  EXPECT_EQ(count("transitions"), "100");
}

TEST_F(Races, CopiesOnTwoReplicasAreOneEffect) {
  bench_of_work one(db), two(db);
  ASSERT_TRUE(one.one(one.registration("r-1")));
  const auto half = [](bench_of_work& work) {
    std::vector<record::work> copies;
    for (int i = 0; i < 25; ++i) copies.push_back(work.callback("r-1", "k-1", "succeeded"));
    return work.all(std::move(copies));
  };
  std::vector<result<record::outcome>> from_two;
  std::thread other([&] { from_two = half(two); });
  auto answers = half(one);
  other.join();
  answers.insert(answers.end(), from_two.begin(), from_two.end());
  std::set<std::string> deliveries;
  int fresh = 0;
  for (const auto& a : answers) {
    ASSERT_TRUE(a) << a.error().detail;
    fresh += a->replayed ? 0 : 1;
    deliveries.insert(to_string(a->delivery));
  }
  EXPECT_EQ(fresh, 1);
  EXPECT_EQ(deliveries.size(), 1U);
  EXPECT_EQ(count("transitions"), "1");
}

TEST_F(Races, ConcurrentRegistrationsOnTwoReplicasAreOneOperation) {
  bench_of_work one(db), two(db);
  const auto half = [](bench_of_work& work) {
    std::vector<record::work> copies;
    for (int i = 0; i < 25; ++i)
      copies.push_back(work.registration("r-" + std::to_string(i % 5), "p1", {"ref-" + std::to_string(i % 5)}));
    return work.all(std::move(copies));
  };
  std::vector<result<record::outcome>> from_two;
  std::thread other([&] { from_two = half(two); });
  auto answers = half(one);
  other.join();
  answers.insert(answers.end(), from_two.begin(), from_two.end());
  int fresh = 0;
  for (const auto& a : answers) {
    ASSERT_TRUE(a) << a.error().detail;
    fresh += a->replayed ? 0 : 1;
  }
  EXPECT_EQ(fresh, 5);
  EXPECT_EQ(count("operations"), "5");
}

TEST_F(Races, AReferenceAloneFindsItsOperation) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1", "p1", {"ref-1"})));
  auto c = work.callback("", "k-1", "succeeded");
  c.references = {"ref-1"};
  const auto applied = work.one(c);
  ASSERT_TRUE(applied) << applied.error().detail;
  EXPECT_EQ(applied->disposition, disposition::applied);
  EXPECT_EQ(applied->request_id, "r-1");
  c.id = make_id<delivery_id>(now());
  EXPECT_TRUE(work.one(c)->replayed);
  // At another provider the same reference means nothing.
  auto foreign = work.callback("", "k-2", "failed", "p2");
  foreign.references = {"ref-1"};
  EXPECT_EQ(work.one(foreign)->disposition, disposition::parked);
}

TEST_F(Races, ALearnedReferenceMeetsWhatIsParkedUnderIt) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  auto early = work.callback("", "k-1", "succeeded");
  early.references = {"ref-1"};
  EXPECT_EQ(work.one(early)->disposition, disposition::parked);
  const auto submitted = work.one(work.event("r-1", "submitted", {"ref-1"}));
  ASSERT_TRUE(submitted) << submitted.error().detail;
  EXPECT_EQ(submitted->state, "completed");
  EXPECT_EQ(count("parked"), "0");
  EXPECT_EQ(db.sql("SELECT string_agg(to_state, ',' ORDER BY sequence) FROM recibo.transitions"), "processing,completed");
}

TEST_F(Races, WhatIsParkedUnderALearnedReferenceMeetsTheKeysThatAreClaimed) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  auto early = work.callback("", "k-1", "processing");
  early.references = {"ref-1"};
  EXPECT_EQ(work.one(early)->disposition, disposition::parked);
  // The same key is claimed by the request ID meanwhile, with the same content.
  auto claimed = work.callback("r-1", "k-1", "processing");
  claimed.content_digest = early.content_digest;
  EXPECT_EQ(work.one(claimed)->disposition, disposition::applied);
  auto learns = work.callback("r-1", "k-2", "succeeded");
  learns.references = {"ref-1"};
  const auto applied = work.one(learns);
  ASSERT_TRUE(applied) << applied.error().detail;
  EXPECT_EQ(applied->disposition, disposition::applied);
  EXPECT_EQ(count("parked"), "0");
  EXPECT_EQ(count("transitions"), "2");
}

TEST_F(Races, AParkedCallbackTeachesTheReferenceThatItCarries) {
  bench_of_work work(db);
  auto both = work.callback("r-1", "k-1", "processing");
  both.references = {"ref-1"};
  EXPECT_EQ(work.one(both)->disposition, disposition::parked);
  auto alone = work.callback("", "k-2", "succeeded");
  alone.references = {"ref-1"};
  EXPECT_EQ(work.one(alone)->disposition, disposition::parked);
  // The registration meets the first by its request ID, and the second by the reference that the first brings.
  EXPECT_EQ(work.one(work.registration("r-1"))->state, "completed");
  EXPECT_EQ(count("parked"), "0");
  EXPECT_EQ(count("aliases"), "1");
}

TEST_F(Races, AReferenceLearnedOnTheWayKeepsTheFirstContentFirst) {
  bench_of_work work(db);
  // Both known by the reference alone, the second in conflict with the first; only the third says whose they are.
  const auto by_reference = [&](const std::string& key, const std::string& amount) {
    auto c = work.callback("", key, "processing", "p1", amount);
    c.references = {"ref-1"};
    return c;
  };
  EXPECT_EQ(work.one(by_reference("k-1", "19.99"))->disposition, disposition::parked);
  EXPECT_EQ(work.one(by_reference("k-1", "20.00"))->disposition, disposition::conflict);
  auto both = work.callback("r-1", "k-0", "processing");
  both.references = {"ref-1"};
  EXPECT_EQ(work.one(both)->disposition, disposition::parked);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  EXPECT_EQ(count("parked"), "0");
  EXPECT_TRUE(work.one(by_reference("k-1", "19.99"))->replayed);
  EXPECT_EQ(work.one(by_reference("k-1", "20.00"))->disposition, disposition::conflict);
}

TEST_F(Races, AConflictTeachesNoReference) {
  bench_of_work work(db);
  for (const auto* id : {"r-1", "r-2"}) ASSERT_TRUE(work.one(work.registration(id)));
  ASSERT_TRUE(work.one(work.callback("r-1", "k-1", "processing")));
  auto conflict = work.callback("r-1", "k-1", "processing", "p1", "1.00");
  conflict.references = {"ref-x"};
  EXPECT_EQ(work.one(conflict)->disposition, disposition::conflict);
  EXPECT_EQ(count("aliases"), "0");
  auto owner = work.callback("r-2", "k-1", "succeeded");
  owner.references = {"ref-x"};
  EXPECT_EQ(work.one(owner)->disposition, disposition::applied);
  EXPECT_EQ(db.sql("SELECT o.request_id FROM recibo.aliases a JOIN recibo.operations o ON o.id = a.operation"), "r-2");
}

TEST_F(Races, MoreParkedThanOneTransactionTakesComesWithTheRematch) {
  bench_of_work work(db);
  ASSERT_EQ(work.one(work.callback("r-1", "k-0", "processing"))->disposition, disposition::parked);
  // Another 1500, as if they had come under the same ID.
  db.sql(
      "INSERT INTO recibo.parked SELECT gen_random_uuid(), provider, identity, convert_to('k' || n, 'UTF8'), content_digest, "
      "body_digest, disposition, "
      "request_id, event, event_raw, occurred_at, provider_sequence, amount, currency, result, secret, answer_status, 0, "
      "parked_at "
      "FROM recibo.parked, generate_series(1, 1500) n");
  db.sql(
      "INSERT INTO recibo.parked_identities SELECT 'request_id', provider, request_id, key, id FROM recibo.parked WHERE key <> "
      "(SELECT key "
      "FROM recibo.parked_identities LIMIT 1)");
  ASSERT_TRUE(work.one(work.registration("r-1")));
  EXPECT_EQ(count("parked"), "501");
  record::rematch again;
  again.settings = work.settings;
  again.request_id = "r-1";
  ASSERT_TRUE(work.one(again));
  EXPECT_EQ(count("parked"), "0");
  EXPECT_EQ(count("transitions"), "1");
}

TEST_F(Races, TheSameOtherContentUnderTwoKeysIsTwoConflicts) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  for (const auto* key : {"k-1", "k-2"}) ASSERT_TRUE(work.one(work.callback("r-1", key, "succeeded")));
  std::set<std::string> kept;
  for (const auto* key : {"k-1", "k-2", "k-1", "k-2"}) {
    const auto conflict = work.one(work.callback("r-1", key, "succeeded", "p1", "1999.00"));
    ASSERT_EQ(conflict->disposition, disposition::conflict);
    kept.insert(to_string(conflict->delivery));
  }
  EXPECT_EQ(kept.size(), 2U);
  EXPECT_EQ(db.sql("SELECT count(*) || ' ' || sum(count) FROM recibo.reviews WHERE kind = 'conflict'"), "2 4");
}

TEST_F(Races, TheSameContradictionUnderManyKeysIsOneReview) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  EXPECT_EQ(work.one(work.callback("r-1", "k-1", "succeeded"))->disposition, disposition::applied);
  for (int i = 2; i < 6; ++i) {
    const auto odd = work.one(work.callback("r-1", "k-" + std::to_string(i), "failed"));
    ASSERT_TRUE(odd) << odd.error().detail;
    EXPECT_EQ(odd->disposition, disposition::review);
  }
  EXPECT_EQ(db.sql("SELECT count(*) || ' ' || sum(count) FROM recibo.reviews WHERE status = 'open'"), "1 4");
}

TEST_F(Races, ASecondClaimOfAReferenceIsRefusedAndReviewed) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1", "p1", {"ref-1"})));
  EXPECT_EQ(work.one(work.registration("r-2", "p1", {"ref-1"})).error().code, make_error_code(permanent::alias_taken));
  ASSERT_TRUE(work.one(work.registration("r-3")));
  auto c = work.callback("r-3", "k-1", "succeeded");
  c.references = {"ref-1"};
  const auto odd = work.one(c);
  EXPECT_EQ(odd->disposition, disposition::review);
  EXPECT_EQ(odd->state, "accepted");
  EXPECT_EQ(db.sql("SELECT kind FROM recibo.reviews"), "alias_taken");
}

TEST_F(Races, UnmatchedPoliciesRejectAndRegister) {
  bench_of_work work(db);
  const auto rejected = work.one(work.callback("r-1", "k-1", "succeeded", "strict"));
  EXPECT_EQ(rejected->disposition, disposition::unknown_operation);
  EXPECT_EQ(rejected->status, 404);
  EXPECT_EQ(count("deliveries"), "0");
  const auto registered = work.one(work.callback("r-2", "k-1", "succeeded", "open"));
  ASSERT_TRUE(registered) << registered.error().detail;
  EXPECT_EQ(registered->disposition, disposition::applied);
  EXPECT_EQ(registered->state, "completed");
  EXPECT_EQ(count("operations"), "1");
  EXPECT_TRUE(work.one(work.callback("r-2", "k-1", "succeeded", "open"))->replayed);
}

TEST_F(Races, AHundredAndFiftyRepetitionsOfAParkedCallbackLeaveAHundredRows) {
  bench_of_work work(db);
  ASSERT_EQ(work.one(work.callback("r-1", "k-1", "succeeded"))->disposition, disposition::parked);
  for (int round = 0; round < 3; ++round) {
    std::vector<record::work> copies;
    for (int i = 0; i < 50; ++i) copies.push_back(work.callback("r-1", "k-1", "succeeded"));
    for (const auto& a : work.all(std::move(copies))) {
      ASSERT_TRUE(a) << a.error().detail;
      EXPECT_TRUE(a->replayed);
    }
  }
  EXPECT_EQ(db.sql("SELECT duplicates FROM recibo.parked"), "150");
  EXPECT_EQ(count("deliveries WHERE disposition = 'duplicate'"), "100");
}

TEST_F(Races, RegisteringByCallbackMeetsWhatIsParked) {
  bench_of_work work(db);
  auto early = work.callback("r-1", "k-1", "processing", "p1");
  ASSERT_EQ(work.one(early)->disposition, disposition::parked);
  // The provider's policy changes from park to register.
  db.sql("UPDATE recibo.parked SET provider = 'open'");
  db.sql("UPDATE recibo.parked_identities SET provider = 'open'");
  const auto registered = work.one(work.callback("r-1", "k-2", "succeeded", "open"));
  ASSERT_TRUE(registered) << registered.error().detail;
  EXPECT_EQ(registered->disposition, disposition::applied);
  EXPECT_EQ(count("parked"), "0");
  EXPECT_EQ(db.sql("SELECT string_agg(to_state, ',' ORDER BY sequence) FROM recibo.transitions"), "processing,completed");
}

TEST_F(Races, RematchAppliesWhatNobodyMet) {
  bench_of_work work(db);
  ASSERT_EQ(work.one(work.callback("r-1", "k-1", "succeeded"))->disposition, disposition::parked);
  // As if a replica had registered without looking: the row stays parked beside its operation.
  db.sql("CREATE TABLE aside AS SELECT * FROM recibo.parked");
  db.sql("CREATE TABLE aside_names AS SELECT * FROM recibo.parked_identities");
  db.sql("DELETE FROM recibo.parked_identities");
  db.sql("DELETE FROM recibo.parked");
  ASSERT_EQ(work.one(work.registration("r-1"))->state, "accepted");
  db.sql("INSERT INTO recibo.parked SELECT * FROM aside");
  db.sql("INSERT INTO recibo.parked_identities SELECT * FROM aside_names");
  record::rematch again;
  again.settings = work.settings;
  again.request_id = "r-1";
  EXPECT_EQ(work.one(again)->state, "completed");
  EXPECT_EQ(work.one(again)->state, "completed");
  EXPECT_EQ(count("parked"), "0");
  EXPECT_EQ(count("transitions"), "1");
}

TEST_F(Races, ALockedOperationDelaysNobodyElseAndIsAppliedWhenFree) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-locked")));
  ASSERT_TRUE(work.one(work.registration("r-free")));
  holder lock(db);
  lock.run("BEGIN");
  lock.run("SELECT FROM recibo.operations WHERE request_id = 'r-locked' FOR UPDATE");
  // Gives up in time, and says that nothing is known.
  const auto began = std::chrono::steady_clock::now();
  const auto refused = work.one(work.callback("r-locked", "k-1", "succeeded"), 1500ms);
  ASSERT_FALSE(refused);
  EXPECT_FALSE(refused.error().is_permanent());
  EXPECT_LT(std::chrono::steady_clock::now() - began, 3s);

  std::vector<record::work> both;
  both.push_back(work.callback("r-locked", "k-1", "succeeded"));
  both.push_back(work.callback("r-free", "k-1", "succeeded"));
  std::thread release([&] {
    std::this_thread::sleep_for(1500ms);
    lock.run("COMMIT");
  });
  const auto free_began = std::chrono::steady_clock::now();
  std::optional<std::chrono::steady_clock::duration> free_took;
  auto free_one = [](record::recorder& to, record::work w, auto start, auto& took) -> boost::asio::awaitable<void> {
    const auto answer = co_await to.record(std::move(w), start + 10s);
    EXPECT_TRUE(answer);
    took = std::chrono::steady_clock::now() - start;
  };
  boost::asio::co_spawn(work.context, free_one(work.recorder(), std::move(both[1]), free_began, free_took),
                        [](const std::exception_ptr&) {});
  const auto locked = work.one(std::move(both[0]));
  release.join();
  ASSERT_TRUE(locked) << locked.error().detail;
  EXPECT_EQ(locked->disposition, disposition::applied);
  ASSERT_TRUE(free_took);
  EXPECT_LT(*free_took, 1s);
  EXPECT_EQ(count("transitions"), "2");
}

TEST_F(Races, ALockedOperationKeepsTheOrderOfItsCallbacks) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  holder lock(db);
  lock.run("BEGIN");
  lock.run("SELECT FROM recibo.operations WHERE request_id = 'r-1' FOR UPDATE");
  std::thread release([&] {
    std::this_thread::sleep_for(600ms);
    lock.run("COMMIT");
  });
  std::vector<record::work> ordered;
  ordered.push_back(work.callback("r-1", "k-1", "processing"));
  for (int i = 2; i < 12; ++i) ordered.push_back(work.callback("r-1", "k-" + std::to_string(i), "processing"));
  ordered.push_back(work.callback("r-1", "k-99", "succeeded"));
  const auto answers = work.all(std::move(ordered));
  release.join();
  ASSERT_TRUE(answers.front()) << answers.front().error().detail;
  EXPECT_EQ(answers.front()->disposition, disposition::applied);
  for (std::size_t i = 1; i + 1 < answers.size(); ++i) EXPECT_EQ(answers[i]->disposition, disposition::redundant);
  EXPECT_EQ(answers.back()->disposition, disposition::applied);
}

TEST_F(Races, OnePoisonousCallbackFailsAloneAndIsKept) {
  bench_of_work work(db);
  // A rule of the database that one callback breaks, as a value that cannot be stored would.
  db.sql("ALTER TABLE recibo.transitions ADD CONSTRAINT result_from_sender CHECK (result IS DISTINCT FROM '{\"poison\":1}')");
  std::vector<record::work> works;
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(work.one(work.registration("r-" + std::to_string(i))));
  for (int i = 0; i < 40; ++i) {
    auto c = work.callback("r-" + std::to_string(i), "k-1", "succeeded");
    if (i == 17) c.result = "{\"poison\":1}";
    works.push_back(std::move(c));
  }
  const auto answers = work.all(std::move(works));
  for (std::size_t i = 0; i < answers.size(); ++i) {
    ASSERT_TRUE(answers[i]) << i << ": " << answers[i].error().detail;
    EXPECT_EQ(answers[i]->disposition, i == 17 ? disposition::unprocessable : disposition::applied) << i;
  }
  EXPECT_EQ(count("failed_callbacks"), "1");
  EXPECT_EQ(count("transitions"), "39");
}

TEST_F(Races, AFaultOfOursIsNeverTheSenders) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  ASSERT_TRUE(work.one(work.registration("r-2")));
  // A check that is not named as sender-caused: a missing partition looks like this too (23514).
  db.sql("ALTER TABLE recibo.transitions ADD CONSTRAINT ours CHECK (result IS DISTINCT FROM '{\"odd\":1}')");
  std::vector<record::work> works;
  works.push_back(work.callback("r-1", "k-1", "succeeded"));
  std::get<record::callback>(works[0]).result = "{\"odd\":1}";
  works.push_back(work.callback("r-2", "k-1", "succeeded"));
  const auto answers = work.all(std::move(works));
  ASSERT_FALSE(answers[0]);
  EXPECT_TRUE(answers[0].error().is_transient());
  ASSERT_TRUE(answers[1]) << answers[1].error().detail;
  EXPECT_EQ(count("failed_callbacks"), "0");
  EXPECT_EQ(count("deliveries"), "1");
}

TEST_F(Races, ManyFaultsOfOursMakeTheReplicaUnreadyAndStopTheSplitting) {
  bench_of_work work(db);
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(work.one(work.registration("r-" + std::to_string(i))));
  EXPECT_TRUE(work.recorder().healthy());
  db.sql("ALTER TABLE recibo.transitions ADD CONSTRAINT ours CHECK (event <> 'complete')");
  for (int i = 0; i < 8; ++i) {
    const auto failed = work.one(work.callback("r-" + std::to_string(i), "k-1", "succeeded"));
    ASSERT_FALSE(failed);
    EXPECT_TRUE(failed.error().is_transient());
  }
  EXPECT_FALSE(work.recorder().healthy());
  EXPECT_EQ(count("failed_callbacks"), "0");
}

// A cancelled wait for a standby "succeeds" with a warning: COMMIT with a notice in its pipeline proves nothing.
TEST_F(Races, ACommitWithANoticeIsNotProof) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  db.sql(
      "CREATE FUNCTION public.warn() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE WARNING 'not replicated'; RETURN NULL; "
      "END $$");
  db.sql(
      "CREATE CONSTRAINT TRIGGER warns AFTER INSERT ON recibo.idempotency_keys DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
      "EXECUTE FUNCTION "
      "public.warn()");
  const auto doubtful = work.one(work.callback("r-1", "k-1", "succeeded"));
  ASSERT_FALSE(doubtful);
  EXPECT_TRUE(doubtful.error().is_uncertain());
  db.sql("DROP TRIGGER warns ON recibo.idempotency_keys");
  // The resend finds the truth: it had been committed, once.
  const auto truth = work.one(work.callback("r-1", "k-1", "succeeded"));
  ASSERT_TRUE(truth) << truth.error().detail;
  EXPECT_TRUE(truth->replayed);
  EXPECT_EQ(count("transitions"), "1");
}

TEST_F(Races, ACommitThatFailsIsNoSuccess) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  db.sql(
      "CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'at the last moment' USING "
      "ERRCODE = "
      "'40001'; END $$");
  db.sql("CREATE CONSTRAINT TRIGGER fails AFTER INSERT ON recibo.deliveries_" + db.sql("SELECT to_char(now(), 'YYYY_MM')") +
         " DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION public.fail()");
  const auto failed = work.one(work.callback("r-1", "k-1", "succeeded"), 3s);
  ASSERT_FALSE(failed);
  EXPECT_FALSE(failed.error().is_permanent());
  EXPECT_EQ(count("deliveries"), "0");
  db.sql("DROP TRIGGER fails ON recibo.deliveries_" + db.sql("SELECT to_char(now(), 'YYYY_MM')"));
  EXPECT_EQ(work.one(work.callback("r-1", "k-1", "succeeded"))->disposition, disposition::applied);
}

// COMMIT travels with the writes, so a row that is not as decided must fail inside the transaction: without the guard the
// operation would keep its old state beside a committed audit row, which TearDown looks for.
TEST_F(Races, ARowThatChangedUnderTheGuardFailsTheTransaction) {
  bench_of_work work(db);
  ASSERT_TRUE(work.one(work.registration("r-1")));
  db.sql(
      "CREATE FUNCTION public.move() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN UPDATE recibo.operations SET "
      "revision = "
      "revision + 100 WHERE request_id = 'r-1'; RETURN NULL; END $$");
  // Registrations are written before changed operations: in one batch the guard of r-1 no longer holds.
  db.sql("CREATE TRIGGER moves AFTER INSERT ON recibo.registrations FOR EACH ROW EXECUTE FUNCTION public.move()");
  std::vector<record::work> together;
  together.push_back(work.callback("r-1", "k-1", "succeeded"));
  together.push_back(work.registration("r-2"));
  for (const auto& a : work.all(std::move(together))) ASSERT_TRUE(a) << a.error().detail;
  EXPECT_EQ(db.sql("SELECT state FROM recibo.operations WHERE request_id = 'r-1'"), "completed");
  EXPECT_EQ(count("transitions"), "1");
  EXPECT_EQ(count("operations"), "2");
  EXPECT_THROW(db.sql("SELECT recibo.expect_rows(0, 1)"), std::runtime_error);
}

TEST_F(Races, TerminatedSessionsAreReplacedWithoutALoss) {
  bench_of_work work(db);
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(work.one(work.registration("r-" + std::to_string(i))));
  db.sql(
      "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = 'recibo_service' AND datname = "
      "current_database()");
  int refused = 0;
  for (int i = 0; i < 20; ++i) {
    const auto answer = work.one(work.callback("r-" + std::to_string(i), "k-1", "succeeded"));
    if (!answer) {
      EXPECT_FALSE(answer.error().is_permanent());
      ++refused;
      EXPECT_TRUE(work.one(work.callback("r-" + std::to_string(i), "k-1", "succeeded")));
    }
  }
  EXPECT_LE(refused, 4);
  EXPECT_EQ(count("transitions"), "20");
}

TEST_F(Races, AFullQueueRefusesAtOnceAndLosesNothingItTook) {
  bench_of_work work(db, 1, 8, 64);
  std::vector<record::work> works;
  for (int i = 0; i < 500; ++i) works.push_back(work.registration("r-" + std::to_string(i)));
  int taken = 0, refused = 0;
  for (const auto& a : work.all(std::move(works))) {
    if (a) {
      ++taken;
    } else {
      EXPECT_EQ(a.error().code, make_error_code(transient::queue_full)) << a.error().detail;
      ++refused;
    }
  }
  EXPECT_EQ(taken + refused, 500);
  EXPECT_GE(taken, 64);
  EXPECT_GT(refused, 0);
  EXPECT_EQ(count("operations"), std::to_string(taken));
}

TEST_F(Races, ARandomMixOnTwoReplicasKeepsTheInvariants) {
  bench_of_work one(db), two(db);
  auto random = random_for_test();
  const auto mix = [](bench_of_work& work, std::uint32_t seed) {
    std::mt19937 dice(seed);
    std::vector<record::work> works;
    for (int i = 0; i < 600; ++i) {
      const auto id = "r-" + std::to_string(dice() % 60);
      switch (dice() % 5) {
        case 0: works.push_back(work.registration(id, "p1", {"ref-" + id})); break;
        case 1: works.push_back(work.event(id, "submitted")); break;
        default: {
          const char* events[] = {"processing", "succeeded", "failed"};
          auto c = work.callback(id, "k-" + std::to_string(dice() % 6), events[dice() % 3]);
          if (dice() % 4 == 0) {
            c.request_id.clear();
            c.references = {"ref-" + id};
          }
          works.push_back(std::move(c));
        }
      }
    }
    return work.all(std::move(works));
  };
  const auto a = static_cast<std::uint32_t>(random()), b = static_cast<std::uint32_t>(random());
  std::vector<result<record::outcome>> other;
  std::thread second([&] { other = mix(two, b); });
  auto answers = mix(one, a);
  second.join();
  answers.insert(answers.end(), other.begin(), other.end());
  for (const auto& answer : answers) {
    if (answer || answer.error().is_permanent()) continue;
    ADD_FAILURE() << code_word(answer.error().code) << ": " << answer.error().detail;
  }
  EXPECT_EQ(count("parked p JOIN recibo.operations o ON o.request_id = p.request_id AND o.provider = p.provider"), "0");
  EXPECT_EQ(count("parked_identities i JOIN recibo.aliases x ON x.provider = i.provider AND x.alias = i.identity WHERE i.kind = "
                  "'reference'"),
            "0");
  EXPECT_EQ(
      count("operations o JOIN recibo.audit x ON x.operation = o.id AND x.sequence = o.sequence WHERE x.hash <> o.chain_hash"),
      "0");
  EXPECT_EQ(
      db.sql("SELECT count(*) FROM (SELECT operation, key FROM recibo.deliveries WHERE operation IS NOT NULL AND disposition IN "
             "('applied','redundant','stale','review') GROUP BY 1, 2 HAVING count(*) > 1) twice"),
      "0");
}

}  // namespace
}  // namespace recibo::test
