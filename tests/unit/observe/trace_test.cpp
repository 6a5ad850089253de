#include "recibo/observe/trace.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace recibo::observe {
namespace {

// The example of the specification.
constexpr std::string_view example = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

TEST(Trace, ReadsAndWritesTheExampleOfTheSpecification) {
  const auto parsed = parse_traceparent(example);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->trace_id, "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(parsed->span_id, "b7ad6b7169203331");
  EXPECT_TRUE(parsed->sampled());
  EXPECT_EQ(make_traceparent(*parsed), example);
}

TEST(Trace, FlagsAreKept) {
  const auto parsed = parse_traceparent("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-a2");
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->sampled());
  EXPECT_EQ(make_traceparent(*parsed), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-a2");
}

TEST(Trace, AnythingElseIsNoTraceparent) {
  const char* const rows[] = {
      "",
      "00",
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
      "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      "00-00000000000000000000000000000000-b7ad6b7169203331-01",
      "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
      "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
      "00-0af7651916cd43dd8448eb211c80319g-b7ad6b7169203331-01",
      "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x",
      "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
      " 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0",
  };
  for (const char* text : rows) EXPECT_FALSE(parse_traceparent(text)) << text;
}

TEST(Trace, NewIdentifiersAreValidAndDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) {
    const trace_parent made{new_trace_id(), new_span_id(), 1};
    EXPECT_TRUE(parse_traceparent(make_traceparent(made)));
    seen.insert(made.trace_id);
    seen.insert(made.span_id);
  }
  EXPECT_EQ(seen.size(), 2000u);
}

}  // namespace
}  // namespace recibo::observe
