#include "recibo/http/router.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace recibo::http {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

router sample() {
  router r;
  r.add("GET", "/");                                 // 0
  r.add("POST", "/v1/operations");                   // 1
  r.add("GET", "/v1/operations");                    // 2
  r.add("GET", "/v1/operations/{request_id}");       // 3
  r.add("POST", "/v1/notifications/replay");         // 4
  r.add("GET", "/v1/notifications/{id}");            // 5
  r.add("POST", "/v1/notifications/{id}/{action}");  // 6
  r.add("POST", "/v1/notifications/{id}/discard");   // 7
  return r;
}

TEST(Router, FindsTheRouteAndItsParameters) {
  const router r = sample();
  EXPECT_EQ(r.match("GET", "/").route, 0u);
  EXPECT_EQ(r.match("POST", "/v1/operations").route, 1u);
  EXPECT_EQ(r.match("GET", "/v1/operations").route, 2u);
  const routed one = r.match("GET", "/v1/operations/req-1");
  EXPECT_EQ(one.route, 3u);
  EXPECT_THAT(one.parameters, ElementsAre("req-1"));
  EXPECT_THAT(r.match("POST", "/v1/notifications/n/pause").parameters, ElementsAre("n", "pause"));
}

// S25: a%2Fb is one segment and reaches no other resource.
TEST(Router, SegmentsAreCutBeforeTheyAreDecoded) {
  const router r = sample();
  EXPECT_THAT(r.match("GET", "/v1/operations/a%2Fb").parameters, ElementsAre("a/b"));
  EXPECT_THAT(r.match("GET", "/v1/operations/a%3Ab%40c%26d%3De%2Bf%3Bg").parameters, ElementsAre("a:b@c&d=e+f;g"));
  EXPECT_THAT(r.match("GET", "/v1/operations/a+b").parameters, ElementsAre("a+b"));
  EXPECT_EQ(r.match("GET", "/v1/%6fperations").route, 2u);
  EXPECT_FALSE(r.match("GET", "/v1%2Foperations").route);
}

TEST(Router, OneSlashAtTheEndIsTheSameResource) {
  const router r = sample();
  EXPECT_EQ(r.match("POST", "/v1/operations/").route, 1u);
  for (const char* path : {"//v1/operations", "/v1//operations", "/v1/operations//", "", "v1/operations", "/v1/operations/%",
                           "/V1/operations", "/v1/operations/a/b", "/v1/./operations"}) {
    const routed none = r.match("POST", path);
    EXPECT_FALSE(none.route) << path;
    EXPECT_THAT(none.allow, IsEmpty()) << path;
  }
}

TEST(Router, ALiteralGoesBeforeAParameter) {
  const router r = sample();
  EXPECT_EQ(r.match("POST", "/v1/notifications/replay").route, 4u);
  EXPECT_EQ(r.match("GET", "/v1/notifications/replay").route, 5u);
  EXPECT_EQ(r.match("POST", "/v1/notifications/n/discard").route, 7u);
}

TEST(Router, HeadFindsGet) { EXPECT_EQ(sample().match("HEAD", "/v1/operations/x").route, 3u); }

TEST(Router, AnotherMethodNamesThoseThatAreThere) {
  const router r = sample();
  const routed none = r.match("DELETE", "/v1/operations");
  EXPECT_FALSE(none.route);
  EXPECT_EQ(none.allow, "GET, HEAD, POST");
  EXPECT_EQ(r.match("PUT", "/v1/notifications/replay").allow, "GET, HEAD, POST");
}

}  // namespace
}  // namespace recibo::http
