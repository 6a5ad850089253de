#include "recibo/core/money.hpp"

#include <gtest/gtest.h>

#include <string>

namespace recibo {
namespace {

TEST(Money, ADecimalIsKeptDigitForDigit) {
  for (const std::string text :
       {"0", "19.99", "-3.50", "19.990", "0.1", "007", "-0", "9007199254740993", "123456789012345678901234567890.123456789012"}) {
    const auto read = parse_decimal(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(read->text, text);
  }
}

TEST(Money, AJsonNumberWithAnExponentIsWrittenOut) {
  struct row {
    const char *text, *value;
  };
  for (const auto& [text, value] :
       {row{"1e1", "10"}, row{"1.999e1", "19.99"}, row{"1999E-2", "19.99"}, row{"-5e-2", "-0.05"}, row{"0e60", "0"},
        row{"1e-12", "0.000000000001"}, row{"1E+3", "1000"}, row{"12.50", "12.50"}, row{"1.50e0", "1.50"},
        row{"10e29", "1000000000000000000000000000000"}, row{"0.001e3", "1"}}) {
    const auto read = parse_json_decimal(text);
    if (std::string(value).size() > 30) {
      EXPECT_FALSE(read) << text << ": more digits than an amount has";
      continue;
    }
    ASSERT_TRUE(read) << text;
    EXPECT_TRUE(same_value(*read, decimal{value})) << text << " is " << read->text;
  }
  for (const char* text : {"1e", "1e+", "1e1.5", "e1", "1e400", "1e-13", "1e99999999999999999999", "1ee1", "1e 1"})
    EXPECT_FALSE(parse_json_decimal(text)) << text;
}

TEST(Money, TheSmallestUnitIsThatOfTheCurrency) {
  struct row {
    const char *amount, *currency, *value;
  };
  for (const auto& [amount, currency, value] :
       {row{"1999", "EUR", "19.99"}, row{"5", "EUR", "0.05"}, row{"-5", "EUR", "-0.05"}, row{"0", "EUR", "0"},
        row{"1999", "JPY", "1999"}, row{"1999", "KWD", "1.999"}, row{"1999", "CLF", "0.1999"}, row{"1999.00", "USD", "19.99"},
        row{"007", "USD", "0.07"}}) {
    const auto got = from_minor_unit(decimal{amount}, currency);
    ASSERT_TRUE(got) << amount << ' ' << currency;
    EXPECT_TRUE(same_value(*got, decimal{value})) << amount << ' ' << currency << " is " << got->text;
  }
  EXPECT_FALSE(from_minor_unit(decimal{"19.99"}, "EUR"));
}

TEST(Money, WhatIsNoDecimalIsRefused) {
  for (const std::string text : {"",
                                 "-",
                                 ".",
                                 ".5",
                                 "5.",
                                 "-.5",
                                 "+1",
                                 "--1",
                                 "1e3",
                                 "1E400",
                                 "1,000",
                                 "1 000",
                                 " 1",
                                 "1 ",
                                 "1\n",
                                 "0x10",
                                 "NaN",
                                 "Infinity",
                                 "1.2.3",
                                 "19.99 EUR",
                                 "\xd9\xa1",
                                 "1234567890123456789012345678901",
                                 "0.1234567890123",
                                 "1-"}) {
    const auto read = parse_decimal(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, permanent::malformed_field);
  }
  EXPECT_FALSE(parse_decimal(std::string("1\0", 2)));
}

TEST(Money, EqualAsNumbers) {
  for (const auto& [a, b] :
       {std::pair{"19.9", "19.90"}, {"-0", "0"}, {"0.00", "-0.0"}, {"007", "7"}, {"1", "1.000000000000"}, {"-3.5", "-3.50"}}) {
    EXPECT_TRUE(same_value(decimal{a}, decimal{b})) << a << ' ' << b;
    EXPECT_TRUE(same_value(decimal{b}, decimal{a})) << b << ' ' << a;
  }
}

TEST(Money, NotEqualAsNumbers) {
  for (const auto& [a, b] : {std::pair{"19.99", "1999.00"},
                             {"1", "-1"},
                             {"0.1", "0.01"},
                             {"10", "1"},
                             {"0.10", "10"},
                             {"9007199254740993", "9007199254740992"},
                             {"19.99", "19.990000000001"}}) {
    EXPECT_FALSE(same_value(decimal{a}, decimal{b})) << a << ' ' << b;
  }
}

TEST(Money, ACurrencyIsThreeLettersInCapitals) {
  EXPECT_EQ(parse_currency("EUR").value(), "EUR");
  EXPECT_EQ(parse_currency("eUr").value(), "EUR");
  for (const char* text : {"", "EU", "EURO", "E1R", " EUR", "EU ",
                           "\xc3\x9c"
                           "R",
                           "978", "\xe2\x82\xac"}) {
    const auto read = parse_currency(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().code, permanent::malformed_field);
  }
}

}  // namespace
}  // namespace recibo
