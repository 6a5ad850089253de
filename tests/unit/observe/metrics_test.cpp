#include "recibo/observe/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace recibo::observe {
namespace {

using testing::HasSubstr;
using testing::Not;

metric_labels labels() {
  metric_labels made;
  made.providers.push_back({"acme", {"accepted", "completed"}, {"current", "old"}});
  made.providers.push_back({"other", {"accepted"}, {"only"}});
  made.queues = {"parked", "review"};
  made.config_digest = "d1";
  return made;
}

std::size_t series(const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1) count += text[at] == '#' ? 0 : 1;
  return count;
}

TEST(Metrics, CountUnderTheNamesOfTheContract) {
  metrics m(labels());
  m.callback("acme", "applied");
  m.callback("acme", "applied");
  m.callback("other", "unauthenticated");
  m.signature_failure("other", "timestamp_stale");
  m.signature_failure("other", "clock_in_doubt");
  m.stage("acme", "commit", 0.004);
  m.record_batch(3);
  m.queue_depth(17);
  m.operations("acme", "completed", 12);
  m.oldest_age("parked", 90.5);
  m.provider_silence("acme", 1800.5, true);
  m.db_connections("busy", 4);
  m.http_request("callbacks", 202);
  m.http_request("callbacks", 503);
  m.http_connections("api", 1);
  m.http_connections("api", 1);
  m.http_connections("api", -1);
  m.secret_used("acme", "old", sys_micros(std::chrono::seconds(1'790'848'800)));
  m.secret_used("acme", "old", sys_micros(std::chrono::seconds(1'790'848'700)));

  const std::string text = m.render();
  for (const char* line : {
           "recibo_callbacks_total{disposition=\"applied\",provider=\"acme\"} 2\n",
           "recibo_callbacks_total{disposition=\"duplicate\",provider=\"acme\"} 0\n",
           "recibo_callbacks_total{disposition=\"unauthenticated\",provider=\"other\"} 1\n",
           "recibo_signature_failures_total{provider=\"other\",reason=\"timestamp_stale\"} 1\n",
           "recibo_signature_failures_total{provider=\"other\",reason=\"other\"} 1\n",
           "recibo_callback_seconds_count{provider=\"acme\",stage=\"commit\"} 1\n",
           "recibo_callback_seconds_bucket{provider=\"acme\",stage=\"commit\",le=\"0.0025\"} 0\n",
           "recibo_callback_seconds_bucket{provider=\"acme\",stage=\"commit\",le=\"0.005\"} 1\n",
           "recibo_record_batch_size_sum 3\n",
           "recibo_queue_depth 17\n",
           "recibo_operations{provider=\"acme\",state=\"completed\"} 12\n",
           "recibo_oldest_age_seconds{queue=\"parked\"} 90.5\n",
           "recibo_provider_silence_seconds{provider=\"acme\"} 1800.5\n",
           "recibo_provider_silent{provider=\"acme\"} 1\n",
           "recibo_provider_silent{provider=\"other\"} 0\n",
           "recibo_db_connections{state=\"busy\"} 4\n",
           "recibo_http_requests_total{listener=\"callbacks\",status_class=\"2xx\"} 1\n",
           "recibo_http_requests_total{listener=\"callbacks\",status_class=\"5xx\"} 1\n",
           "recibo_http_connections{listener=\"api\"} 1\n",
           "recibo_config_info{digest=\"d1\"} 1\n",
           "recibo_build_info{version=\"",
           "recibo_secret_last_used_seconds{provider=\"acme\",secret=\"old\"} 1790848800\n",
           "recibo_secret_last_used_seconds{provider=\"acme\",secret=\"current\"} 0\n",
       }) {
    EXPECT_THAT(text, HasSubstr(line));
  }
}

// S40: nothing a sender controls becomes a series.
TEST(Metrics, UnknownNamesMakeNoSeries) {
  metrics m(labels());
  const std::size_t before = series(m.render());
  for (int i = 0; i < 1000; ++i) {
    const std::string name = "nope" + std::to_string(i);
    m.callback(name, "applied");
    m.callback("acme", name);
    m.stage(name, "total", 1);
    m.stage("acme", name, 1);
    m.signature_failure(name, "signature_mismatch");
    m.signature_failure("acme", name);
    m.secret_used("acme", name, now());
    m.operations("acme", name, 1);
    m.oldest_age(name, 1);
    m.provider_silence(name, 1, true);
    m.db_connections(name, 1);
    m.http_request(name, 200);
    m.http_request("api", i);
    m.http_connections(name, 1);
  }
  EXPECT_EQ(series(m.render()), before);
}

TEST(Metrics, AReloadAddsProvidersAndReplacesTheDigest) {
  metrics m(labels());
  m.callback("acme", "applied");
  metric_labels next;
  next.providers.push_back({"fresh", {}, {}});
  next.config_digest = "d2";
  m.configure(next);
  m.callback("fresh", "parked");
  const std::string text = m.render();
  EXPECT_THAT(text, HasSubstr("recibo_callbacks_total{disposition=\"parked\",provider=\"fresh\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("recibo_callbacks_total{disposition=\"applied\",provider=\"acme\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("recibo_config_info{digest=\"d2\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("d1")));
}

TEST(Metrics, ConfiguredNamesAreEscaped) {
  metric_labels odd;
  odd.providers.push_back({"a\"b\\c\nd", {}, {}});
  metrics m(odd);
  EXPECT_THAT(m.render(), HasSubstr("provider=\"a\\\"b\\\\c\\nd\""));
}

TEST(Metrics, ThreadsCountWhileAnotherReadsAndReloads) {
  metrics m(labels());
  constexpr int each = 20'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&m] {
      for (int i = 0; i < each; ++i) {
        m.callback("acme", "applied");
        m.stage("acme", "total", 0.001);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    m.configure(labels());
    EXPECT_THAT(m.render(), HasSubstr("recibo_callbacks_total"));
  }
  for (auto& thread : threads) thread.join();
  EXPECT_THAT(m.render(),
              HasSubstr("recibo_callbacks_total{disposition=\"applied\",provider=\"acme\"} " + std::to_string(2 * each) + "\n"));
}

}  // namespace
}  // namespace recibo::observe
