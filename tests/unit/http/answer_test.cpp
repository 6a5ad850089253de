#include "../../../src/http/answer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace recibo::http {
namespace {

TEST(Answer, DatesAreAsTheSpecificationWritesThem) {
  EXPECT_EQ(http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");  // RFC 9110 section 5.6.7
  EXPECT_EQ(http_date(0), "Thu, 01 Jan 1970 00:00:00 GMT");
  EXPECT_EQ(http_date(1709164800), "Thu, 29 Feb 2024 00:00:00 GMT");
  EXPECT_EQ(http_date(4102444799), "Thu, 31 Dec 2099 23:59:59 GMT");
}

TEST(Answer, TheHeadIsWrittenWhole) {
  response of;
  of.status = 202;
  of.body = "{}";
  of.headers = {{"Retry-After", "2"}, {"Content-Length", "99"}, {"connection", "keep-alive"}, {"X\r\nY", "z"},
                {"X", "a\nb"},        {"X-Text", "h\xc3\xa9"}};
  answer_frame frame;
  frame.date = "D";
  frame.trace_id = "t";
  frame.trace_response = "tr";
  frame.keep = false;
  testing::internal::CaptureStderr();
  EXPECT_EQ(head_of(of, frame),
            "HTTP/1.1 202 Accepted\r\nDate: D\r\nContent-Type: application/json\r\nContent-Length: 2\r\nX-Content-Type-Options: "
            "nosniff\r\n"
            "X-Request-Id: t\r\ntraceresponse: tr\r\nRetry-After: 2\r\nX-Text: h\xc3\xa9\r\nConnection: close\r\n\r\n");
  testing::internal::GetCapturedStderr();
}

TEST(Answer, ATypeStandsWithoutABodyWhereItIsAskedFor) {
  response of;
  of.status = 204;
  EXPECT_EQ(head_of(of, answer_frame{}).find("\nContent-Type: "), std::string::npos);
  of.typed = true;
  const std::string head = head_of(of, answer_frame{});
  EXPECT_NE(head.find("\nContent-Type: application/json\r\n"), std::string::npos);
  EXPECT_EQ(head.find("Content-Length"), std::string::npos);
}

TEST(Answer, AStatusWithoutAPhraseKeepsItsBlank) {
  response of;
  of.status = 299;
  EXPECT_THAT(head_of(of, {}), testing::StartsWith("HTTP/1.1 299 \r\n"));
}

}  // namespace
}  // namespace recibo::http
