#include "recibo/observe/look_ups.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

namespace recibo::observe {

struct look_up_metrics::impl {
  prometheus::Registry registry;
  prometheus::Family<prometheus::Counter>& attempts = prometheus::BuildCounter()
                                                          .Name("recibo_look_up_attempts_total")
                                                          .Help("Requests to status endpoints, by provider and result")
                                                          .Register(registry);
  prometheus::Family<prometheus::Counter>& settled = prometheus::BuildCounter()
                                                         .Name("recibo_look_ups_total")
                                                         .Help("Look-ups by provider and what was decided about their answer")
                                                         .Register(registry);
  prometheus::Family<prometheus::Counter>& listed =
      prometheus::BuildCounter()
          .Name("recibo_event_lists_total")
          .Help("Readings of providers' lists of events: done, failed, or later (all attempts in vain, and then again)")
          .Register(registry);
  prometheus::Family<prometheus::Gauge>& breaker = prometheus::BuildGauge()
                                                       .Name("recibo_look_up_breaker_state")
                                                       .Help("Breaker of a provider's look-ups: 0 closed, 1 half open, 2 open")
                                                       .Register(registry);
};

look_up_metrics::look_up_metrics() : impl_(std::make_unique<impl>()) {}
look_up_metrics::~look_up_metrics() = default;

void look_up_metrics::attempt(std::string_view provider, std::string_view result) {
  impl_->attempts.Add({{"provider", std::string(provider)}, {"result", std::string(result)}}).Increment();
}

void look_up_metrics::settled(std::string_view provider, std::string_view result) {
  impl_->settled.Add({{"provider", std::string(provider)}, {"result", std::string(result)}}).Increment();
}

void look_up_metrics::listed(std::string_view provider, std::string_view result) {
  impl_->listed.Add({{"provider", std::string(provider)}, {"result", std::string(result)}}).Increment();
}

void look_up_metrics::state(std::string_view provider, std::string_view breaker) {
  impl_->breaker.Add({{"provider", std::string(provider)}}).Set(breaker == "closed" ? 0 : breaker == "half_open" ? 1 : 2);
}

std::string look_up_metrics::render() const { return prometheus::TextSerializer().Serialize(impl_->registry.Collect()); }

}  // namespace recibo::observe
