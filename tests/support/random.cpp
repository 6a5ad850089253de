#include "support/random.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

namespace recibo::test {

std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* given = std::getenv("RECIBO_TEST_SEED");
    return given ? std::strtoull(given, nullptr, 10) : std::uint64_t{std::random_device{}()};
  }();
  return value;
}

std::mt19937_64 random_for_test() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  std::uint64_t mixed = 14695981039346656037ULL;  // FNV-1a, so that it is the same in every build
  for (const std::string_view part : {test ? test->test_suite_name() : "", test ? test->name() : ""}) {
    for (const char c : part) mixed = (mixed ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  }
  return std::mt19937_64(mixed ^ seed());
}

}  // namespace recibo::test
