// The queue's bounds, order and fairness (write path rules 2, 7, 9).
#include "src/record/queue.hpp"

#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace recibo::record {
namespace {

using namespace std::chrono_literals;

class Queue : public ::testing::Test {
 protected:
  Queue() {
    provider.name = "p1";
    other.name = "p2";
  }
  entry_ptr made(const std::string& request_id, const std::string& body = "x", const config::provider* from = nullptr) {
    callback c;
    c.provider = from ? from : &provider;
    c.request_id = request_id;
    c.event = "complete";
    c.body = body;
    c.body_digest = sha256(request_id + body);
    return std::make_shared<entry>(context.get_executor(), work(std::move(c)), now + 10s);
  }
  std::vector<std::string> ids(const std::vector<entry_ptr>& entries) {
    std::vector<std::string> out;
    for (const auto& e : entries) out.push_back(std::get<callback>(e->what).request_id);
    return out;
  }
  using strings = std::vector<std::string>;
  boost::asio::io_context context;
  config::provider provider, other;
  steady_time now = std::chrono::steady_clock::now();
  queue::bounds bounds{.entries = 8, .bytes = 1000, .per_operation = 4, .per_provider = 6};
};

TEST_F(Queue, ADryRunIsTakenAlone) {
  queue q(bounds);
  const auto dry = [&](const std::string& id) {
    auto e = made(id);
    e->alone = true;
    return e;
  };
  for (auto e : {made("r1"), dry("r2"), made("r3")}) ASSERT_TRUE(q.push(e));
  const auto first = q.take(8, 1000, now);
  EXPECT_EQ(ids(first), (strings{"r1", "r3"}));
  const auto second = q.take(8, 1000, now);
  EXPECT_EQ(ids(second), strings{"r2"});
  for (const auto& e : first) q.done(e);
  for (const auto& e : second) q.done(e);
}

TEST_F(Queue, ADryRunIsAloneInTheLaneToo) {
  queue q(bounds);
  auto dry = made("r1", "b");
  dry->alone = true;
  for (auto e : {made("r1", "a"), dry, made("r1", "c")}) ASSERT_TRUE(q.push(e));
  for (int miss = 0; miss < queue::misses_before_lane; ++miss) {
    q.release_held(now + 1s);
    for (const auto& e : q.take(1, 1000, now)) q.hold(e, now);
  }
  ASSERT_TRUE(q.lane_waits());
  EXPECT_TRUE(q.take(8, 1000, now).empty()) << "the rest joins what is held";
  const auto first = q.take_from_lane(8, now);
  ASSERT_EQ(first.size(), 1U) << "what is before it ends there";
  EXPECT_EQ(std::get<callback>(first.front()->what).body, "a");
}

TEST_F(Queue, TakesInOrderOfArrivalUpToTheBatch) {
  queue q(bounds);
  for (const auto* id : {"a", "b", "c"}) ASSERT_TRUE(q.push(made(id)));
  EXPECT_EQ(ids(q.take(2, 1000, now)), (strings{"a", "b"}));
  EXPECT_EQ(ids(q.take(2, 1000, now)), (strings{"c"}));
}

TEST_F(Queue, ARequestOfManyEventsCountsAsManyAndIsNeverTooLarge) {
  queue q(bounds);
  callback_group g;
  for (int i = 0; i < 5; ++i) {
    callback c;
    c.provider = &provider;
    c.id = make_id<delivery_id>(sys_micros{});
    g.parts.push_back(std::move(c));
  }
  ASSERT_TRUE(q.push(made("a")));
  ASSERT_TRUE(q.push(std::make_shared<entry>(context.get_executor(), work(std::move(g)), now + 10s)));
  ASSERT_TRUE(q.push(made("b")));
  EXPECT_EQ(q.take(3, 1000, now).size(), 1u);
  EXPECT_EQ(q.take(3, 1000, now).size(), 1u) << "alone it is a batch, although it has more rows than one";
  EXPECT_EQ(ids(q.take(3, 1000, now)), (strings{"b"}));
}

TEST_F(Queue, SeveralOfOneOperationShareABatchAndThenNoOtherWriterGetsIt) {
  queue q(bounds);
  for (const auto* id : {"a", "a", "b"}) ASSERT_TRUE(q.push(made(id)));
  const auto first = q.take(2, 1000, now);
  EXPECT_EQ(ids(first), (strings{"a", "a"}));
  ASSERT_TRUE(q.push(made("a")));
  EXPECT_EQ(ids(q.take(8, 1000, now)), (strings{"b"}));
  EXPECT_TRUE(q.take(8, 1000, now).empty());
  for (const auto& e : first) {
    e->finish(outcome{});
    q.done(e);
  }
  EXPECT_EQ(ids(q.take(8, 1000, now)), (strings{"a"}));
}

TEST_F(Queue, BoundsAreKeptInEntriesBytesOperationAndProvider) {
  queue q(bounds);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(q.push(made("hot")));
  EXPECT_EQ(q.push(made("hot")).error().code, make_error_code(transient::operation_busy));
  ASSERT_TRUE(q.push(made("a")));
  ASSERT_TRUE(q.push(made("b")));
  EXPECT_EQ(q.push(made("c")).error().code, make_error_code(transient::queue_full));  // the provider's share
  ASSERT_TRUE(q.push(made("c", "x", &other)));
  EXPECT_EQ(q.push(made("d", std::string(2000, 'x'), &other)).error().code, make_error_code(transient::queue_full));
  ASSERT_TRUE(q.push(made("d", "x", &other)));
  EXPECT_EQ(q.push(made("e", "x", &other)).error().code, make_error_code(transient::queue_full));
  EXPECT_EQ(q.size(), 8U);
  // What is settled gives its place back.
  for (const auto& e : q.take(8, 1000, now)) {
    e->finish(outcome{});
    q.done(e);
  }
  EXPECT_EQ(q.size(), 0U);
  EXPECT_EQ(q.bytes(), 0U);
  EXPECT_TRUE(q.push(made("hot")));
}

TEST_F(Queue, WorkOfGoneSendersNeverEntersABatch) {
  queue q(bounds);
  const auto gone = made("a"), late = made("b"), fine = made("c");
  late->until = now - 1ms;
  for (const auto& e : {gone, late, fine}) ASSERT_TRUE(q.push(e));
  gone->abandoned = true;
  EXPECT_EQ(ids(q.take(8, 1000, now)), (strings{"c"}));
  ASSERT_TRUE(late->answer);
  EXPECT_EQ(late->answer->error().code, make_error_code(transient::deadline_passed));
  EXPECT_EQ(q.size(), 1U);
}

TEST_F(Queue, HeldWorkComesBackWithItsOperationsOrderKept) {
  queue q(bounds);
  for (const auto* id : {"a", "a"}) ASSERT_TRUE(q.push(made(id, "1")));
  const auto taken = q.take(8, 1000, now);
  for (const auto& e : taken) q.hold(e, now);
  ASSERT_TRUE(q.push(made("a", "3")));
  ASSERT_TRUE(q.push(made("b")));
  // Later work of the operation waits behind; others go on.
  EXPECT_EQ(ids(q.take(8, 1000, now)), (strings{"b"}));
  const auto due = q.release_held(now);
  ASSERT_TRUE(due);
  EXPECT_GE(*due, now + 5ms);
  EXPECT_LE(*due, now + 50ms);
  EXPECT_FALSE(q.release_held(now + 51ms));
  const auto again = q.take(8, 1000, now + 51ms);
  ASSERT_EQ(ids(again), (strings{"a", "a", "a"}));
  EXPECT_EQ(again[0], taken[0]);
  EXPECT_EQ(again[1], taken[1]);
}

TEST_F(Queue, OftenBusyGoesToTheWaitingLane) {
  queue q(bounds);
  ASSERT_TRUE(q.push(made("a")));
  for (int miss = 1; miss < queue::misses_before_lane; ++miss) {
    const auto taken = q.take(8, 1000, now);
    ASSERT_EQ(taken.size(), 1U) << miss;
    q.hold(taken.front(), now);
    now += 60ms;
    q.release_held(now);
    EXPECT_FALSE(q.lane_waits());
  }
  q.hold(q.take(8, 1000, now).front(), now);
  EXPECT_TRUE(q.lane_waits());
  EXPECT_TRUE(q.take(8, 1000, now).empty());
  EXPECT_EQ(ids(q.take_from_lane(8, now)), (strings{"a"}));
  EXPECT_FALSE(q.lane_waits());
}

TEST_F(Queue, SuspectsGoAloneAndHaveToWaitAfterFiveDeaths) {
  queue q(bounds);
  const auto odd = made("odd");
  q.suspect({odd}, now);
  ASSERT_TRUE(q.push(made("a")));
  ASSERT_TRUE(q.push(made("odd")));
  ASSERT_TRUE(q.push(made("b")));
  EXPECT_EQ(ids(q.take(8, 1000, now)), (strings{"a", "b"}));
  EXPECT_EQ(ids(q.take(8, 1000, now)), (strings{"odd"}));
  for (int i = 0; i < 6; ++i) q.suspect({odd}, now);
  EXPECT_EQ(q.push(made("odd")).error().code, make_error_code(transient::our_fault));
  // Two deaths over the five: two seconds later it may try again.
  const auto later = made("odd");
  later->arrived = now + 2s;
  EXPECT_TRUE(q.push(later));
  q.cleared(odd);
  EXPECT_TRUE(q.push(made("odd")));
}

TEST_F(Queue, ManyCopiesInABatchThatDiedAreOneDeath) {
  queue q(bounds);
  q.suspect(std::vector<entry_ptr>(12, made("odd")), now);
  EXPECT_TRUE(q.push(made("odd")));
}

TEST_F(Queue, PutBackComesFirstInItsOldOrder) {
  queue q(bounds);
  for (const auto* id : {"a", "b", "c"}) ASSERT_TRUE(q.push(made(id)));
  const auto taken = q.take(2, 1000, now);
  q.put_back(taken);
  EXPECT_FALSE(taken.front()->begun);
  EXPECT_EQ(ids(q.take(8, 1000, now)), (strings{"a", "b", "c"}));
}

TEST_F(Queue, NothingOvertakesWhatIsBeingParked) {
  queue q(bounds);
  ASSERT_TRUE(q.push(made("a", "1")));
  const auto first = q.take(8, 1000, now).front();
  q.to_parking(first);
  ASSERT_TRUE(q.push(made("a", "2")));
  EXPECT_TRUE(q.take(8, 1000, now).empty());
  ASSERT_EQ(q.take_parking(8, now).size(), 1U);
  first->finish(outcome{});
  q.done(first);
  EXPECT_EQ(ids(q.take(8, 1000, now)), (strings{"a"}));
}

TEST_F(Queue, TheSecondHalfOfASplitStaysBehindWhatWentBack) {
  queue q(bounds);
  for (const auto* id : {"a", "b", "a", "b"}) ASSERT_TRUE(q.push(made(id)));
  const auto taken = q.take(8, 1000, now);
  ASSERT_EQ(taken.size(), 4U);
  q.hold(taken[0], now);   // the first half: a is busy,
  q.put_back({taken[1]});  // b goes back
  EXPECT_TRUE(q.keep_order({taken[2], taken[3]}).empty());
  q.release_held(now + 60ms);
  const auto again = q.take(8, 1000, now + 60ms);
  ASSERT_EQ(again.size(), 4U);
  const auto at = [&](const entry_ptr& e) { return std::find(again.begin(), again.end(), e) - again.begin(); };
  EXPECT_LT(at(taken[0]), at(taken[2]));
  EXPECT_LT(at(taken[1]), at(taken[3]));
}

TEST_F(Queue, WhenTheDatabaseIsAwayEverythingThatWaitsIsRefused) {
  queue q(bounds);
  const auto waiting = made("a"), held = made("b"), parking = made("c");
  for (const auto& e : {held, parking}) ASSERT_TRUE(q.push(e));
  q.take(8, 1000, now);
  q.hold(held, now);
  q.to_parking(parking);
  ASSERT_TRUE(q.push(waiting));
  q.fail_all(error(transient::database_away));
  for (const auto& e : {waiting, held, parking}) {
    ASSERT_TRUE(e->answer);
    EXPECT_EQ(e->answer->error().code, make_error_code(transient::database_away));
  }
  EXPECT_EQ(q.size(), 0U);
}

}  // namespace
}  // namespace recibo::record
