#include "recibo/postgres/arrays.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace recibo::postgres {
namespace {

using std::string_literals::operator""s;

TEST(BinaryArray, EmptyHasNoDimension) { EXPECT_EQ(binary_array(oid::text).finish(), "\0\0\0\0\0\0\0\0\0\0\0\x19"s); }

TEST(BinaryArray, HasHeaderThenLengthAndBytes) {
  binary_array a(oid::text);
  a.add("ab").add(std::string("c"));
  EXPECT_EQ(a.size(), 2U);
  EXPECT_EQ(std::move(a).finish(), "\0\0\0\1\0\0\0\0\0\0\0\x19\0\0\0\2\0\0\0\1\0\0\0\2ab\0\0\0\1c"s);
}

TEST(BinaryArray, NullSetsTheFlagAndHasNoBytes) {
  binary_array a(oid::int4);
  a.add_null().add_int4(-2);
  EXPECT_EQ(std::move(a).finish(), "\0\0\0\1\0\0\0\1\0\0\0\x17\0\0\0\2\0\0\0\1\xff\xff\xff\xff\0\0\0\4\xff\xff\xff\xfe"s);
}

TEST(BinaryArray, EmptyTextIsNoNull) {
  binary_array a(oid::text);
  a.add("");
  EXPECT_EQ(std::move(a).finish(), "\0\0\0\1\0\0\0\0\0\0\0\x19\0\0\0\1\0\0\0\1\0\0\0\0"s);
}

TEST(BinaryArray, OptionalsBecomeNulls) {
  binary_array text(oid::text), time(oid::timestamptz), number(oid::int8);
  text.add(std::optional<std::string>());
  time.add_time(std::optional<sys_micros>());
  number.add_int8(std::optional<std::int64_t>());
  for (auto* a : {&text, &time, &number}) EXPECT_TRUE(std::move(*a).finish().ends_with("\xff\xff\xff\xff"));
}

TEST(BinaryArray, ScalarsAreBigEndian) {
  binary_array numbers(oid::int8), flags(oid::boolean), documents(oid::jsonb);
  numbers.add_int8(0x0102030405060708);
  flags.add_bool(true).add_bool(false);
  documents.add_jsonb("{}");
  EXPECT_TRUE(std::move(numbers).finish().ends_with("\0\0\0\x08\1\2\3\4\5\6\7\x08"s));
  EXPECT_TRUE(std::move(flags).finish().ends_with("\0\0\0\1\1\0\0\0\1\0"s));
  EXPECT_TRUE(std::move(documents).finish().ends_with("\0\0\0\3\1{}"s));
}

TEST(Timestamptz, CountsFrom2000) {
  using namespace std::chrono;
  EXPECT_EQ(to_wire(sys_days(2000y / January / 1)), 0);
  EXPECT_EQ(to_wire(sys_days(1999y / December / 31)), -86'400'000'000);
  EXPECT_EQ(from_wire(1), sys_micros(sys_days(2000y / January / 1)) + 1us);
  const sys_micros far = sys_days(9999y / December / 31);
  EXPECT_EQ(from_wire(to_wire(far)), far);
}

}  // namespace
}  // namespace recibo::postgres
