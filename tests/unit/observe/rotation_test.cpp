#include "recibo/observe/rotation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace recibo::observe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

sys_micros seconds(std::int64_t n) { return sys_micros(std::chrono::seconds(n)); }

TEST(RotationMetrics, CountReloadsByResult) {
  rotation_metrics m;
  EXPECT_THAT(m.render(), HasSubstr("recibo_config_reloads_total{result=\"refused\"} 0"));
  m.reload(true, seconds(1'760'000'000));
  m.reload(false, seconds(1'760'000'001));
  m.reload(false, seconds(1'760'000'002));
  EXPECT_THAT(m.render(), HasSubstr("recibo_config_reloads_total{result=\"taken\"} 1"));
  EXPECT_THAT(m.render(), HasSubstr("recibo_config_reloads_total{result=\"refused\"} 2"));
  EXPECT_THAT(m.render(), HasSubstr("recibo_config_last_reload_seconds{result=\"refused\"} 1760000002"));
}

TEST(RotationMetrics, SecretsThatAreGoneAreGone) {
  rotation_metrics m;
  m.secrets_end({{"acme", "old", seconds(1'800'000'000)}, {"acme", "older", seconds(1'700'000'000)}});
  EXPECT_THAT(m.render(), HasSubstr("recibo_secret_expires_seconds{provider=\"acme\",secret=\"old\"} 1800000000"));
  m.secrets_end({{"acme", "new", seconds(1'900'000'000)}});
  EXPECT_THAT(m.render(), Not(HasSubstr("secret=\"old\"")));
  EXPECT_THAT(m.render(), HasSubstr("secret=\"new\"} 1900000000"));
}

}  // namespace
}  // namespace recibo::observe
