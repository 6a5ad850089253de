#include "recibo/observe/notifications.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace recibo::observe {
namespace {

const prometheus::Histogram::BucketBoundaries attempt_buckets{1, 2, 3, 4, 6, 8, 12, 20, 50, 100};

}  // namespace

// Families look a series up by its labels under their own lock: an attempt is a request over the network, and does not notice.
struct notification_metrics::impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& attempts = prometheus::BuildCounter()
                                                          .Name("recibo_notifications_total")
                                                          .Help("Attempts to deliver a notification, by destination and result")
                                                          .Register(registry);
  prometheus::Family<prometheus::Histogram>& needed =
      prometheus::BuildHistogram()
          .Name("recibo_notification_attempts")
          .Help("Attempts that a notification took until it was delivered or dead")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& breaker = prometheus::BuildGauge()
                                                       .Name("recibo_breaker_state")
                                                       .Help("Breaker of a destination: 0 closed, 1 half open, 2 open")
                                                       .Register(registry);
  prometheus::Family<prometheus::Gauge>& paused = prometheus::BuildGauge()
                                                      .Name("recibo_destination_paused")
                                                      .Help("1 when nothing is sent to a destination until a person resumes it")
                                                      .Register(registry);
};

notification_metrics::notification_metrics() : impl_(std::make_unique<impl>()) {}
notification_metrics::~notification_metrics() = default;

void notification_metrics::attempt(std::string_view destination, std::string_view result) {
  impl_->attempts.Add({{"destination", std::string(destination)}, {"result", std::string(result)}}).Increment();
}

void notification_metrics::settled(std::string_view destination, int attempts) {
  impl_->needed.Add({{"destination", std::string(destination)}}, attempt_buckets).Observe(attempts);
}

void notification_metrics::state(std::string_view destination, std::string_view breaker, bool paused) {
  const prometheus::Labels labels{{"destination", std::string(destination)}};
  impl_->breaker.Add(labels).Set(breaker == "closed" ? 0 : breaker == "half_open" ? 1 : 2);
  impl_->paused.Add(labels).Set(paused ? 1 : 0);
}

std::string notification_metrics::render() const { return prometheus::TextSerializer().Serialize(impl_->registry.Collect()); }

}  // namespace recibo::observe
