#include "recibo/http/message.hpp"

#include "recibo/core/url.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace recibo::http {
namespace {

using testing::ElementsAre;
using testing::Pair;

TEST(Message, HeadersAreFoundWithoutCaseAndCounted) {
  const header_list headers{{"X-Signature", "one"}, {"content-type", "a"}, {"x-SIGNATURE", "two"}};
  EXPECT_EQ(find_header(headers, "x-signature"), "one");
  EXPECT_EQ(count_header(headers, "X-SIGNATURE"), 2u);
  EXPECT_EQ(find_header(headers, "x-signatur"), std::nullopt);
  EXPECT_EQ(count_header(headers, ""), 0u);
}

TEST(Message, PercentEscapesDecode) {
  struct row {
    const char* text;
    bool plus;
    std::optional<std::string> decoded;
  };
  const row rows[] = {
      {"", false, ""},
      {"a%2Fb%2fc", false, "a/b/c"},
      {"a+b", false, "a+b"},
      {"a+b%2B", true, "a b+"},
      {"%00", false, std::string(1, '\0')},
      {"%25%32%35", false, "%25"},
      {"%", false, std::nullopt},
      {"%2", false, std::nullopt},
      {"%zz", false, std::nullopt},
      {"a%2", false, std::nullopt},
      {"%+1", false, std::nullopt},
  };
  for (const row& r : rows) EXPECT_EQ(percent_decode(r.text, r.plus), r.decoded) << r.text;
}

// K29, S39: whatever a reference holds, it stays one path segment.
TEST(Message, EncodedTextIsOneSegmentAndDecodesToItself) {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  EXPECT_EQ(percent_decode(percent_encode(all)), all);
}

TEST(Message, FormsKeepOrderAndRepetition) {
  EXPECT_THAT(*parse_form("b=2&a=1&a=%3D+x&empty=&bare&&=v"),
              ElementsAre(Pair("b", "2"), Pair("a", "1"), Pair("a", "= x"), Pair("empty", ""), Pair("bare", ""), Pair("", "v")));
  EXPECT_THAT(*parse_form(""), ElementsAre());
  EXPECT_EQ(parse_form("a=%f"), std::nullopt);
  EXPECT_EQ(parse_form("%=1"), std::nullopt);
}

}  // namespace
}  // namespace recibo::http
