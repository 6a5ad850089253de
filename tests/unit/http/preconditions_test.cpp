#include "recibo/http/preconditions.hpp"

#include <gtest/gtest.h>

namespace recibo::http {
namespace {

TEST(IfMatch, ReadsListsOfTags) {
  struct row {
    header_list headers;
    std::vector<std::string> tags;
  };
  const row rows[] = {
      {{{"If-Match", "\"7\""}}, {"7"}},
      {{{"if-match", "\"7\", \"8\""}}, {"7", "8"}},
      {{{"If-Match", "\"7\",\"8\""}}, {"7", "8"}},
      {{{"If-Match", ", \"7\" ,\t, \"a,b\","}}, {"7", "a,b"}},
      {{{"If-Match", "\"7\""}, {"X", "y"}, {"If-Match", "\"8\""}}, {"7", "8"}},
      {{{"If-Match", "W/\"7\""}}, {}},
      {{{"If-Match", "W/\"7\", \"8\""}}, {"8"}},
      {{{"If-Match", "\"\""}}, {""}},
      {{{"If-Match", "\"*\""}}, {"*"}},
  };
  for (const row& r : rows) {
    bool malformed = true;
    const auto read = read_if_match(r.headers, malformed);
    EXPECT_FALSE(malformed) << r.headers.front().second;
    EXPECT_FALSE(read->any) << r.headers.front().second;
    EXPECT_EQ(read->tags, r.tags) << r.headers.front().second;
  }
}

TEST(IfMatch, AStarIsWhateverIsThere) {
  bool malformed = true;
  const auto read = read_if_match({{"If-Match", "*"}}, malformed);
  EXPECT_TRUE(read && read->any && !malformed);
  EXPECT_FALSE(read_if_match({{"If-None-Match", "*"}}, malformed));
  EXPECT_FALSE(malformed);
}

TEST(IfMatch, WhatIsNoListIsSaid) {
  for (const char* text :
       {"", "7", "\"7", "7\"", "\"7\" \"8\"", "*, \"7\"", "\"7\", *", "w/\"7\"", "W/ \"7\"", "\"a b\"", ",", "\"7\";"}) {
    bool malformed = false;
    read_if_match({{"If-Match", text}}, malformed);
    EXPECT_TRUE(malformed) << text;
  }
  bool malformed = false;
  read_if_match({{"If-Match", "*"}, {"If-Match", "\"7\""}}, malformed);
  EXPECT_TRUE(malformed);
}

}  // namespace
}  // namespace recibo::http
