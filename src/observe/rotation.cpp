#include "recibo/observe/rotation.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <mutex>

namespace recibo::observe {
namespace {

double as_unix_seconds(sys_micros at) noexcept { return static_cast<double>(at.time_since_epoch().count()) / 1e6; }

}  // namespace

struct rotation_metrics::impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Gauge>& expires =
      prometheus::BuildGauge()
          .Name("recibo_secret_expires_seconds")
          .Help("Unix time when a secret's validity ends, where the configuration says so")
          .Register(registry);
  prometheus::Family<prometheus::Counter>& reloads =
      prometheus::BuildCounter()
          .Name("recibo_config_reloads_total")
          .Help("Attempts to take a changed configuration or changed secrets, by result")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& last = prometheus::BuildGauge()
                                                    .Name("recibo_config_last_reload_seconds")
                                                    .Help("Unix time of the last such attempt, by result; 0: none")
                                                    .Register(registry);
  struct series {
    prometheus::Counter* count;
    prometheus::Gauge* last;
  };
  series taken = add("taken"), refused = add("refused");

  mutable std::mutex lock;
  std::vector<prometheus::Gauge*> ends;

  series add(const char* result) { return {&reloads.Add({{"result", result}}), &last.Add({{"result", result}})}; }
};

rotation_metrics::rotation_metrics() : impl_(std::make_unique<impl>()) {}
rotation_metrics::~rotation_metrics() = default;

void rotation_metrics::secrets_end(const std::vector<ending>& all) {
  const std::lock_guard guard(impl_->lock);
  for (auto* one : impl_->ends) impl_->expires.Remove(one);
  impl_->ends.clear();
  for (const auto& one : all) {
    impl_->ends.push_back(&impl_->expires.Add({{"provider", one.provider}, {"secret", one.secret}}));
    impl_->ends.back()->Set(as_unix_seconds(one.until));
  }
}

void rotation_metrics::reload(bool taken, sys_micros at) noexcept {
  auto& which = taken ? impl_->taken : impl_->refused;
  which.count->Increment();
  which.last->Set(as_unix_seconds(at));
}

std::string rotation_metrics::render() const {
  const std::lock_guard guard(impl_->lock);
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace recibo::observe
