// Providers that go silent, on a real PostgreSQL whose rows are made old: what is expected of them, and that each change is told
// once, by whoever makes it (R30).
#include "recibo/storage/activity.hpp"
#include "support/cluster.hpp"
#include "support/run_coro.hpp"
#include "support/sessions.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace recibo::storage {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using test::soon;

class Silence : public ::testing::Test {
 protected:
  // One round of one replica. Returns what it changed: "acme silent below_rate".
  std::string round(std::int64_t callbacks = 0, bool by_rate = true, bool by_quiet = false) {
    provider_watch one;
    one.provider = "acme";
    one.resend_gap = 5min;
    if (by_quiet) one.alert = 30min;
    if (by_rate) {
      one.at_least = 10;
      one.within = 1h;
    }
    if (callbacks > 0) one.heard_since = 10ms;
    one.look_ups = one.event_list = true;
    one.callbacks = callbacks;
    const std::vector<silence_listener> listeners = {
        {"desk", "provider.silent"}, {"desk", "provider.resumed"}, {"pager", "provider.silent"}};
    std::string out;
    asio::io_context context;
    const auto all = [&]() -> asio::awaitable<void> {
      postgres::pool pool(context.get_executor(), db.service_url(), 1);
      std::vector<provider_watch> watched = {one};
      const auto changed = co_await watch_providers(pool, watched, listeners, soon());
      EXPECT_TRUE(changed.has_value());
      if (!changed) co_return;
      for (const auto& c : *changed) out += c.provider + (c.silent ? " silent " : " resumed ") + c.reason;
    };
    test::run_coro(context, all);
    return out;
  }
  // As if all that is known had been so much earlier, but for the last look.
  void later(const std::string& by) {
    const std::string minus = " - interval '" + by + "'";
    db.sql("UPDATE recibo.provider_activity SET heard_at = heard_at" + minus + ", since = since" + minus +
           ", resumed_at = resumed_at" + minus + ", rate_since = rate_since" + minus + ", silent_at = silent_at" + minus +
           ", spoke_at = spoke_at" + minus + ", put_back_at = put_back_at" + minus);
    db.sql("UPDATE recibo.provider_counts SET at = at" + minus);
    db.sql("UPDATE recibo.downtimes SET began_at = began_at" + minus + ", ended_at = ended_at" + minus);
  }
  // Nobody was ready until now, which is noted, or is about to be.
  void outage(const std::string& for_so_long, bool noted) {
    db.sql("UPDATE recibo.provider_activity SET watched_at = now() - interval '" + for_so_long + "'");
    db.sql("UPDATE recibo.intake SET alive_at = now() - interval '" + for_so_long + "'");
    if (noted) note_outage();
  }
  void note_outage() {
    db.sql(
        "WITH last AS (SELECT alive_at FROM recibo.intake), beat AS (UPDATE recibo.intake SET alive_at = now()) "
        "INSERT INTO recibo.downtimes SELECT alive_at, now() FROM last");
  }
  void nobody_watched() {
    db.sql("UPDATE recibo.provider_activity SET watched_at = now() - interval '1 hour'");
    db.sql("UPDATE recibo.intake SET alive_at = now() - interval '1 hour'");
  }
  std::string told() {
    return db.sql(
        "SELECT coalesce(string_agg(n.destination || ':' || n.type || ':' || n.sequence, ' ' ORDER BY n.sequence, "
        "n.destination), '') FROM recibo.notifications n JOIN recibo.provider_events e ON e.key = n.operation AND "
        "e.sequence = n.sequence AND e.type = n.type");
  }
  // For how many minutes it was known to be out, and whether it still is: "acme 31 on".
  std::string out() {
    return db.sql(
        "SELECT coalesce(string_agg(provider || ' ' || round(extract(epoch FROM coalesce(ended_at, now()) - began_at) / "
        "60) || CASE WHEN ended_at IS NULL THEN ' on' ELSE '' END, ', ' ORDER BY began_at), '') FROM "
        "recibo.provider_downtimes");
  }
  test::database db;
};

TEST_F(Silence, LessThanExpectedInAWholeWindowIsSilence) {
  EXPECT_EQ(round(3), "");
  later("50 minutes");
  EXPECT_EQ(round(4), "") << "the window is not over";
  later("15 minutes");
  EXPECT_EQ(round(), "acme silent below_rate") << "three of the seven are older than an hour";
  EXPECT_EQ(told(), "desk:provider.silent:1 pager:provider.silent:1");
  EXPECT_EQ(round(), "");
  EXPECT_EQ(round(5), "") << "that is nine";
  EXPECT_EQ(round(1), "acme resumed below_rate");
  EXPECT_EQ(round(), "");
  EXPECT_EQ(told(), "desk:provider.silent:1 pager:provider.silent:1 desk:provider.resumed:2");
  EXPECT_EQ(
      db.sql("SELECT string_agg(type || ' ' || (silent_since <= at) || ' ' || (heard_at IS NOT NULL), ', ' ORDER BY sequence) "
             "FROM recibo.provider_events"),
      "provider.silent true true, provider.resumed true true");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.notifications WHERE substr(id::text, 15, 1) = '7' AND abs(extract(epoch FROM "
                   "created_at) * 1000 - ('x' || substr(replace(id::text, '-', ''), 1, "
                   "12))::bit(48)::bigint) < 2"),
            "3")
      << "their IDs are UUIDv7";
}

TEST_F(Silence, EnoughIsNoSilence) {
  round(12);
  later("59 minutes");
  EXPECT_EQ(round(), "");
  later("30 seconds");
  EXPECT_EQ(round(), "");
}

TEST_F(Silence, AnOutageOfOursIsNotTheirs) {
  round(50);
  later("3 hours");
  nobody_watched();
  EXPECT_EQ(round(), "");
  note_outage();
  later("40 minutes");
  EXPECT_EQ(round(2), "") << "not a whole window since somebody listens again";
  later("25 minutes");
  EXPECT_EQ(round(), "acme silent below_rate");
}

TEST_F(Silence, AShortOutageOfOursIsNotTheirsEither) {
  for (const bool noted : {true, false}) {
    SCOPED_TRACE(noted);
    round(50, true, true);
    later("31 minutes");
    outage("14 seconds", noted);
    EXPECT_EQ(round(0, true, true), "") << "quiet for its alert, but for a part of that nobody was there";
    if (!noted) note_outage();
    later("4 minutes");
    EXPECT_EQ(round(0, true, true), "") << "its next attempt may be still to come";
    later("2 minutes");
    EXPECT_EQ(round(0, true, true), "acme silent quiet") << "after the resend gap";
    EXPECT_EQ(round(50, true, true), "acme resumed quiet");
    later("1 day");
    db.sql("UPDATE recibo.provider_activity SET heard_at = now()");
  }
}

TEST_F(Silence, AWindowOfTheRateBeginsAnewAfterAShortOutageOfOurs) {
  for (const bool noted : {true, false}) {
    SCOPED_TRACE(noted);
    round(11);
    later("65 minutes");
    outage("14 seconds", noted);
    EXPECT_EQ(round(9), "") << "a part of the window was lost";
    if (!noted) note_outage();
    later("59 minutes");
    EXPECT_EQ(round(), "");
    later("5 minutes");
    EXPECT_EQ(round(), "acme silent below_rate");
    EXPECT_EQ(round(12), "acme resumed below_rate");
    later("1 day");
  }
}

TEST_F(Silence, AnOutageThatEndsMuchLaterThanNowMakesNobodyDeaf) {
  round(1, false, true);
  later("31 minutes");
  db.sql("INSERT INTO recibo.downtimes VALUES (now(), now() + interval '6 hours')");
  db.sql("UPDATE recibo.provider_activity SET watched_at = now() - interval '3 seconds'");
  EXPECT_EQ(round(0, false, true), "acme silent quiet");
}

TEST_F(Silence, WhoIsPutBackIntoTheConfigurationIsWaitedForAsLongAsEver) {
  round(1, false, true);
  later("3 hours");
  nobody_watched();
  db.sql("UPDATE recibo.intake SET alive_at = now()");
  EXPECT_EQ(round(0, false, true), "");
  later("20 minutes");
  EXPECT_EQ(round(0, false, true), "") << "longer than the resend gap, shorter than its alert";
  later("11 minutes");
  EXPECT_EQ(round(0, false, true), "acme silent quiet");
}

TEST_F(Silence, WhoNeverCalledWasNeverHeard) {
  round(0, false, true);
  db.sql("UPDATE recibo.provider_activity SET watched_at = now() - interval '3 seconds'");
  round(0, false, true);
  EXPECT_EQ(db.sql("SELECT heard_at IS NULL FROM recibo.provider_activity"), "t");
}

TEST_F(Silence, WhatWasHeardWhileTheClockWasWrongIsTakenBack) {
  round(1, false, true);
  db.sql("UPDATE recibo.provider_activity SET heard_at = now() + interval '6 hours', watched_at = now() + interval '6 hours'");
  EXPECT_EQ(round(0, false, true), "");
  later("31 minutes");
  EXPECT_EQ(round(0, false, true), "acme silent quiet") << "not six hours deaf";
}

TEST_F(Silence, WhoWasDownMeanwhileIsStillAnOutageOfOurs) {
  round(1, false, true);
  later("3 hours");
  nobody_watched();
  db.sql("INSERT INTO recibo.downtimes VALUES (now() - interval '1 hour', now() - interval '3 seconds')");
  db.sql("UPDATE recibo.intake SET alive_at = now()");
  EXPECT_EQ(round(0, false, true), "");
  later("6 minutes");
  EXPECT_EQ(round(0, false, true), "acme silent quiet") << "after the resend gap";
}

TEST_F(Silence, WhileItLastsTheProviderIsKnownToBeOutAndThenItIsAskedWhatItCouldNotSay) {
  round(1, false, true);
  later("31 minutes");
  EXPECT_EQ(round(0, false, true), "acme silent quiet");
  EXPECT_EQ(out(), "acme 31 on");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.catch_ups"), "0");
  EXPECT_EQ(round(1, false, true), "acme resumed quiet");
  EXPECT_EQ(out(), "acme 31");
  EXPECT_EQ(
      db.sql("SELECT provider || ' ' || started_by || ' ' || extract(epoch FROM since)::int || ' ' || substr(id::text, 15, 1) "
             "FROM recibo.catch_ups"),
      "acme outage 0 7")
      << "all that are open";
  EXPECT_EQ(db.sql("SELECT provider || ' ' || started_by || ' ' || round(extract(epoch FROM now() - since) / 60) FROM "
                   "recibo.event_lists"),
            "acme outage 91")
      << "from an hour before it was last heard";
}

TEST_F(Silence, WhoSaysTooLittleBeforeNothingIsOutOnceItSaysNothing) {
  round(3, true, true);
  later("40 minutes");
  EXPECT_EQ(round(3, true, true), "");
  later("25 minutes");
  EXPECT_EQ(round(0, true, true), "acme silent below_rate");
  EXPECT_EQ(out(), "") << "it was heard 25 minutes ago";
  later("6 minutes");
  EXPECT_EQ(round(0, true, true), "") << "that it is silent was told";
  EXPECT_EQ(out(), "acme 31 on");
  EXPECT_EQ(round(0, true, true), "");
  EXPECT_EQ(out(), "acme 31 on");
  EXPECT_EQ(round(1, true, true), "") << "less than is expected";
  EXPECT_EQ(out(), "acme 31") << "but it is back";
  EXPECT_EQ(db.sql("SELECT (SELECT count(*) FROM recibo.catch_ups) || ' ' || (SELECT count(*) FROM recibo.event_lists)"), "1 1");
}

TEST_F(Silence, WhoSaysTooLittleAfterNothingIsBackWithTheFirstWord) {
  round(3, true, true);
  later("31 minutes");
  EXPECT_EQ(round(0, true, true), "acme silent quiet");
  EXPECT_EQ(out(), "acme 31 on");
  EXPECT_EQ(round(1, true, true), "");
  EXPECT_EQ(out(), "acme 31");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.catch_ups"), "1");
}

TEST_F(Silence, AMomentLeavesNoRowAndIsAskedAboutAllTheSame) {
  round(1, false, true);
  later("31 minutes");
  round(0, false, true);
  db.sql("UPDATE recibo.provider_downtimes SET began_at = now() - interval '50 seconds'");
  EXPECT_EQ(round(1, false, true), "acme resumed quiet");
  EXPECT_EQ(out(), "");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.catch_ups"), "1");
}

TEST_F(Silence, NothingIsLaterThanNowOnceTheClockWasPutRight) {
  round(1, true, true);
  db.sql(
      "UPDATE recibo.provider_activity SET (heard_at, since, watched_at, resumed_at, rate_since, put_back_at, silent_at) = "
      "(SELECT t, t, t, t, t, t, t FROM (SELECT now() + interval '6 hours' AS t) x), silent_reason = 'quiet'");
  db.sql("UPDATE recibo.provider_counts SET at = at + interval '6 hours', callbacks = 50");
  db.sql(
      "INSERT INTO recibo.provider_downtimes (provider, cause, began_at, known_until) VALUES ('acme', 'silence', now() + "
      "interval '6 hours', now() + interval '30 hours')");
  EXPECT_EQ(round(0, true, true), "") << "it is heard, and too little";
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.provider_activity WHERE greatest(heard_at, since, watched_at, resumed_at, "
                   "rate_since, put_back_at, silent_at) > now()"),
            "0");
  EXPECT_EQ(out(), "") << "what began later than now was none";
  EXPECT_EQ(round(10, true, true), "acme resumed quiet");
  later("31 minutes");
  EXPECT_EQ(round(0, true, true), "acme silent quiet") << "not six hours deaf";
  EXPECT_EQ(out(), "acme 31 on");
}

TEST_F(Silence, WhoNeverCalledIsNotKnownToBeOut) {
  round(0, false, true);
  later("31 minutes");
  EXPECT_EQ(round(0, false, true), "acme silent quiet");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.provider_downtimes"), "0");
}

TEST_F(Silence, WhoSaysLessThanIsExpectedIsNotOut) {
  round(3);
  later("65 minutes");
  EXPECT_EQ(round(), "acme silent below_rate");
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.provider_downtimes"), "0");
  EXPECT_EQ(round(12), "acme resumed below_rate");
  EXPECT_EQ(db.sql("SELECT (SELECT count(*) FROM recibo.catch_ups) || ' ' || (SELECT count(*) FROM recibo.event_lists)"), "1 1");
}

TEST_F(Silence, AnotherWindowIsCountedFromThenOn) {
  round(1);
  later("2 hours");
  db.sql("UPDATE recibo.provider_activity SET rate_within_s = 60");
  EXPECT_EQ(round(), "") << "what was not counted is not missing";
  later("61 minutes");
  EXPECT_EQ(round(), "acme silent below_rate");
}

TEST_F(Silence, WhoIsQuietSpeaksAgainWithTheFirstWordUnlessMoreIsExpected) {
  round(1, false, true);
  later("31 minutes");
  EXPECT_EQ(round(0, false, true), "acme silent quiet");
  EXPECT_EQ(round(1, false, true), "acme resumed quiet");
  later("31 minutes");
  EXPECT_EQ(round(0, true, true), "acme silent quiet");
  EXPECT_EQ(round(1, true, true), "");
  EXPECT_EQ(round(9, true, true), "acme resumed quiet");
}

TEST_F(Silence, OldCountsGo) {
  round(1);
  later("30 minutes");
  round(1);
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.provider_counts"), "2");
  later("100 minutes");
  round(1);
  EXPECT_EQ(db.sql("SELECT count(*) FROM recibo.provider_counts"), "2");
}

TEST_F(Silence, NobodyListensNobodyIsTold) {
  round(1, false, false);
  later("2 days");
  EXPECT_EQ(round(0, false, false), "");
  EXPECT_EQ(told(), "");
}

}  // namespace
}  // namespace recibo::storage
