// decide() runs for every callback while an operation is locked; it must not touch the heap.
#include "recibo/transition/decide.hpp"

#include "unit/transition/tables.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace {
thread_local std::size_t allocations = 0;
}

void* operator new(std::size_t size) {
  ++allocations;
  if (void* room = std::malloc(size ? size : 1)) return room;
  throw std::bad_alloc();
}
void operator delete(void* room) noexcept { std::free(room); }
void operator delete(void* room, std::size_t) noexcept { std::free(room); }

namespace recibo::transition {
namespace {

TEST(Decide, DoesNotAllocate) {
  const workflow table = tables::payment();
  const subject now{.state = "requires_review", .watermark_at = sys_micros{}, .amount = decimal{"19.99"}, .currency = "EUR"};
  const subject ended{.state = "completed"};
  std::vector<news> all;
  for (const char* event :
       {"complete", "fail", "progress", "overdue", "resolve_completed", "an_event_with_a_name_that_is_long"}) {
    all.push_back({.event = event, .occurred_at = sys_micros{}, .amount = decimal{"19.990"}, .currency = "EUR"});
  }
  const std::optional<claim> earlier = claim{sha256("other")};
  const std::size_t before = allocations;
  ASSERT_GT(before, 0u);
  std::size_t decided = 0;
  for (const news& said : all) {
    for (const auto order : {order_rule::table, order_rule::sequence}) {
      decided += to_string(decide(table, now, std::nullopt, said, order).outcome).size();
      decided += to_string(decide(table, ended, std::nullopt, said, order).outcome).size();
      decided += to_string(decide(table, now, earlier, said, order).outcome).size();
    }
  }
  EXPECT_EQ(allocations, before);
  EXPECT_GT(decided, 0u);
}

}  // namespace
}  // namespace recibo::transition
