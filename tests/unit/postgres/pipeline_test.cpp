#include "recibo/postgres/pipeline.hpp"

#include <gtest/gtest.h>
#include <libpq-fe.h>

namespace recibo::postgres {
namespace {

using std::string_literals::operator""s;

// One row, one column, as the server would send it.
rows one(Oid type, const std::optional<std::string>& value) {
  PGresult* r = PQmakeEmptyPGresult(nullptr, PGRES_TUPLES_OK);
  char name[] = "c";
  PGresAttDesc column{name, 0, 0, 1, type, -1, -1};
  PQsetResultAttrs(r, 1, &column);
  std::string bytes = value.value_or("");
  PQsetvalue(r, 0, 0, value ? bytes.data() : nullptr, value ? static_cast<int>(bytes.size()) : -1);
  return rows(r);
}

TEST(Parameters, AreInBinaryAndInOrder) {
  parameters p;
  p.text("a\0b"s).int8(-1).int4(1).boolean(true).null().jsonb("[]").time(sys_micros{}).text(std::optional<std::string>());
  const auto v = p.values();
  ASSERT_EQ(v.size(), 8U);
  EXPECT_EQ(v[0], "a\0b"s);
  EXPECT_EQ(v[1], "\xff\xff\xff\xff\xff\xff\xff\xff"s);
  EXPECT_EQ(v[2], "\0\0\0\1"s);
  EXPECT_EQ(v[3], "\1"s);
  EXPECT_EQ(v[4], std::nullopt);
  EXPECT_EQ(v[5], "\1[]"s);
  EXPECT_EQ(v[6]->size(), 8U);
  EXPECT_EQ(v[7], std::nullopt);
}

TEST(Parameters, UuidIsItsSixteenBytes) {
  operation_id id;
  id.bytes[0] = 0xab;
  parameters p;
  p.uuid(id);
  EXPECT_EQ(p.values()[0], id.binary());
}

TEST(Rows, NothingAtAllIsEmpty) {
  const rows none;
  EXPECT_TRUE(none.empty());
  EXPECT_EQ(none.tag(), "");
  EXPECT_EQ(none.affected(), 0);
}

TEST(Rows, NarrowIntegersWiden) {
  EXPECT_EQ(one(20, "\x80\0\0\0\0\0\0\0"s).int8(0, 0), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(one(23, "\xff\xff\xff\xfe"s).int8(0, 0), -2);
  EXPECT_EQ(one(21, "\xff\xfe"s).int8(0, 0), -2);
  EXPECT_EQ(one(21, "\xff\xfe"s).int4(0, 0), -2);
}

TEST(Rows, JsonbLosesItsVersionByte) { EXPECT_EQ(one(oid::jsonb, "\1{\"a\":1}"s).text(0, 0), "{\"a\":1}"); }

TEST(Rows, NullsAreTold) {
  EXPECT_TRUE(one(25, std::nullopt).is_null(0, 0));
  EXPECT_EQ(one(25, std::nullopt).text_or_null(0, 0), std::nullopt);
  EXPECT_EQ(one(25, "").text_or_null(0, 0), "");
  EXPECT_EQ(one(20, std::nullopt).int8_or_null(0, 0), std::nullopt);
  EXPECT_EQ(one(1184, std::nullopt).time_or_null(0, 0), std::nullopt);
  EXPECT_TRUE(one(2950, std::nullopt).id<operation_id>(0, 0).is_nil());
}

TEST(Rows, TimeIsInMicroseconds) { EXPECT_EQ(one(1184, "\0\0\0\0\0\0\0\1"s).time(0, 0), from_wire(1)); }

TEST(RowsDeath, AnotherTypeThanBelievedAborts) {
  EXPECT_DEATH(one(25, "12345678").int8(0, 0), "not a int8");
  EXPECT_DEATH(one(20, "12345678").int4(0, 0), "not a int4");
  EXPECT_DEATH(one(20, "12345678").text(0, 0), "not a text");
  EXPECT_DEATH(one(25, "t").boolean(0, 0), "not a boolean");
  EXPECT_DEATH(one(20, "12345678").time(0, 0), "not a timestamptz");
  EXPECT_DEATH(one(20, std::nullopt).int8(0, 0), "not a int8");
  EXPECT_DEATH(one(25, "x").text(1, 0), "not a text");
  EXPECT_DEATH(one(25, "x").text(0, 1), "not a text");
}

TEST(PipelineDeath, WrongNumberOfParametersAborts) {
  const statement takes_one{"takes_one", "SELECT $1", {oid::text}};
  pipeline p;
  EXPECT_DEATH(p.add(takes_one), "takes_one takes 1 parameters and was given 0");
}

TEST(Pipeline, KeepsItsSteps) {
  const statement begin{"begin", "BEGIN", {}};
  pipeline p;
  EXPECT_TRUE(p.empty());
  p.add(begin).add(begin);
  ASSERT_EQ(p.steps().size(), 2U);
  EXPECT_EQ(p.steps()[1].what, &begin);
}

}  // namespace
}  // namespace recibo::postgres
