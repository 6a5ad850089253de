// /readyz: 200 only when a callback could be recorded now, else 503 with the reasons (contract section 3).
#include "src/app/readiness.hpp"

#include <boost/asio/io_context.hpp>

#include <gtest/gtest.h>

namespace recibo::app {
namespace {

using namespace std::chrono_literals;

class Readiness : public ::testing::Test {
 protected:
  static look good() {
    look seen;
    seen.reached = true;
    seen.schema_fits = true;
    seen.clock_skew_max = 75s;
    seen.partitions_ahead = 60 * 24h;
    return seen;
  }
  bool says(const std::string& reason) {
    const auto all = health.reasons();
    return std::find(all.begin(), all.end(), reason) != all.end();
  }
  boost::asio::io_context context;
  // Never started: it has no session, and says so.
  record::recorder recorder{context.get_executor(), {}};
  readiness health{recorder};
};

TEST_F(Readiness, IsNotReadyBeforeTheFirstLookAndAlwaysLive) {
  EXPECT_TRUE(says("starting"));
  EXPECT_EQ(health.readyz().status, 503);
  EXPECT_EQ(health.livez().status, 200);
}

TEST_F(Readiness, NamesEachReason) {
  struct row {
    const char* reason;
    void (*spoil)(look&);
  };
  const row rows[] = {
      {"database_away", [](look& l) { l.reached = false; }},
      {"database_read_only", [](look& l) { l.read_only = true; }},
      {"schema_mismatch", [](look& l) { l.schema_fits = false; }},
      {"partitions_missing", [](look& l) { l.partitions_ahead = 23h; }},
      {"clock_skewed", [](look& l) { l.clock_skew = 76s; }},
      {"clock_skewed", [](look& l) { l.clock_skew = -76s; }},
  };
  for (const auto& r : rows) {
    health.saw(good());
    EXPECT_FALSE(says(r.reason)) << r.reason;
    auto seen = good();
    r.spoil(seen);
    health.saw(seen);
    EXPECT_TRUE(says(r.reason)) << r.reason;
    const auto answer = health.readyz();
    EXPECT_EQ(answer.status, 503);
    EXPECT_NE(answer.body.find(std::string("\"") + r.reason + "\""), std::string::npos) << answer.body;
  }
}

TEST_F(Readiness, ARecorderWithoutASessionIsAReasonToo) {
  health.saw(good());
  EXPECT_EQ(health.reasons(), (std::vector<std::string>{"recorder_not_writing"}));
}

TEST_F(Readiness, AClockInDoubtIsToldToTheSignatureCheckUntilItAgreesAgain) {
  auto skewed = good();
  skewed.clock_skew = 80s;
  health.saw(skewed);
  EXPECT_TRUE(health.clock_in_doubt());
  // While the database cannot be asked, the last answer stands.
  look away;
  health.saw(away);
  EXPECT_TRUE(health.clock_in_doubt());
  health.saw(good());
  EXPECT_FALSE(health.clock_in_doubt());
}

TEST_F(Readiness, DrainingIsSaidAtOnce) {
  health.saw(good());
  health.begin_drain();
  EXPECT_TRUE(says("draining"));
}

}  // namespace
}  // namespace recibo::app
