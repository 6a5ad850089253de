// Runs the integration tests on one private PostgreSQL, which is gone at the end, whatever the tests say.
#include "support/cluster.hpp"
#include "support/random.hpp"

#include <gtest/gtest.h>

#include <cstdio>

namespace {

class private_postgres : public testing::Environment {
 public:
  void TearDown() override { recibo::test::cluster::end_shared(); }
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  std::printf("seed %llu (RECIBO_TEST_SEED replays it)\n", static_cast<unsigned long long>(recibo::test::seed()));
  testing::AddGlobalTestEnvironment(new private_postgres);
  return RUN_ALL_TESTS();
}
