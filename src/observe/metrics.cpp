#include "recibo/observe/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <shared_mutex>

namespace recibo::observe {
namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

constexpr std::array<std::string_view, 17> disposition_words{
    "applied",     "redundant",  "partial",       "duplicate",         "stale",   "parked",    "review",
    "conflict",    "unmapped",   "unprocessable", "unknown_operation", "ignored", "handshake", "unauthenticated",
    "unavailable", "overloaded", "hint",
};
constexpr std::array<std::string_view, 8> reason_words{
    "signature_missing",   "signature_mismatch", "signature_repeated", "timestamp_missing",
    "timestamp_malformed", "timestamp_stale",    "content_missing",    "other",
};
constexpr std::array<std::string_view, 2> sequence_words{"overruled", "doubted"};
constexpr std::array<std::string_view, 4> stage_words{"verify", "queue", "commit", "total"};
constexpr std::array<std::string_view, 5> connection_states{"idle", "busy", "connecting", "waiting", "writer"};
constexpr std::array<std::string_view, 13> refusal_words{
    "over_limit",
    "proxy_header_malformed",
    "proxy_header_timeout",
    "tls_timeout",
    "tls_closed",
    "tls_plain_http",
    "tls_version",
    "tls_cipher",
    "tls_alpn",
    "tls_client_certificate_missing",
    "tls_client_certificate_refused",
    "tls_alert",
    "tls_other",
};
constexpr std::array<std::string_view, 4> status_classes{"2xx", "3xx", "4xx", "5xx"};

// From a verification to the longest `answer_within`.
const Histogram::BucketBoundaries seconds_buckets{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
                                                  0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};
const Histogram::BucketBoundaries batch_buckets{1, 2, 4, 8, 16, 32, 64, 128, 256};

// Position of a word in one of the lists above; their size when it is not there.
template <std::size_t N>
std::size_t index_of(const std::array<std::string_view, N>& words, std::string_view word) noexcept {
  return static_cast<std::size_t>(std::find(words.begin(), words.end(), word) - words.begin());
}

template <class T>
using by_name = std::map<std::string, T, std::less<>>;

template <class Map>
auto* find(Map& in, std::string_view name) noexcept {
  const auto it = in.find(name);
  return it == in.end() ? nullptr : &it->second;
}

// The series of one provider. The pointers stay good as long as the registry: nothing but secrets is ever removed from these
// families.
struct provider_series {
  std::array<Counter*, disposition_words.size()> callbacks{};
  std::array<Counter*, reason_words.size()> failures{};
  std::array<Counter*, sequence_words.size()> sequences{};
  std::array<Histogram*, stage_words.size()> stages{};
  by_name<Gauge*> operations, secrets;
  Gauge *silence = nullptr, *silent = nullptr;
};

struct listener_series {
  std::array<Counter*, status_classes.size()> requests{};
  Gauge* connections = nullptr;
  std::array<Counter*, refusal_words.size()> refused{};
  Gauge* expiry = nullptr;  // with TLS only
};

double unix_seconds(sys_micros at) noexcept { return static_cast<double>(at.time_since_epoch().count()) / 1e6; }

}  // namespace

struct metrics::impl {
  prometheus::Registry registry;

  Family<Counter>& callbacks = prometheus::BuildCounter()
                                   .Name("recibo_callbacks_total")
                                   .Help("Callbacks answered, by provider and disposition")
                                   .Register(registry);
  Family<Histogram>& seconds = prometheus::BuildHistogram()
                                   .Name("recibo_callback_seconds")
                                   .Help("Time of a callback in each stage: verify, queue, commit, total")
                                   .Register(registry);
  Family<Counter>& failures = prometheus::BuildCounter()
                                  .Name("recibo_signature_failures_total")
                                  .Help("Callbacks whose signature did not verify, by reason")
                                  .Register(registry);
  Family<Counter>& sequences = prometheus::BuildCounter()
                                   .Name("recibo_sequence_decisions_total")
                                   .Help("Callbacks whose sequence overruled a move of the table, or was not believed")
                                   .Register(registry);
  Family<Gauge>& last_used = prometheus::BuildGauge()
                                 .Name("recibo_secret_last_used_seconds")
                                 .Help("Unix time when a secret last verified a delivery in this process, 0 before the first")
                                 .Register(registry);
  Family<Histogram>& batch = prometheus::BuildHistogram()
                                 .Name("recibo_record_batch_size")
                                 .Help("Callbacks, registrations and events in one transaction")
                                 .Register(registry);
  Family<Gauge>& depth =
      prometheus::BuildGauge().Name("recibo_queue_depth").Help("Entries waiting for a writer").Register(registry);
  Family<Gauge>& operations =
      prometheus::BuildGauge().Name("recibo_operations").Help("Operations by provider and state").Register(registry);
  Family<Gauge>& ages = prometheus::BuildGauge()
                            .Name("recibo_oldest_age_seconds")
                            .Help("Age of the oldest entry of each queue, 0 when it is empty")
                            .Register(registry);
  Family<Gauge>& silences = prometheus::BuildGauge()
                                .Name("recibo_provider_silence_seconds")
                                .Help("Time since a callback of the provider last verified, at any replica")
                                .Register(registry);
  Family<Gauge>& silent = prometheus::BuildGauge()
                              .Name("recibo_provider_silent")
                              .Help("1 while a provider is silent for longer than its silence_alert")
                              .Register(registry);
  Family<Gauge>& db =
      prometheus::BuildGauge().Name("recibo_db_connections").Help("Database connections by state").Register(registry);
  Family<Gauge>& build =
      prometheus::BuildGauge().Name("recibo_build_info").Help("1, with the version as a label").Register(registry);
  Family<Gauge>& config = prometheus::BuildGauge()
                              .Name("recibo_config_info")
                              .Help("1 for the digest of the configuration in force")
                              .Register(registry);
  Family<Counter>& requests = prometheus::BuildCounter()
                                  .Name("recibo_http_requests_total")
                                  .Help("HTTP answers by listener and class of status")
                                  .Register(registry);
  Family<Gauge>& connections =
      prometheus::BuildGauge().Name("recibo_http_connections").Help("Open HTTP connections by listener").Register(registry);

  Family<Counter>& refused = prometheus::BuildCounter()
                                 .Name("recibo_http_connections_refused_total")
                                 .Help("Connections that ended before their first request, by listener and reason")
                                 .Register(registry);
  Family<Gauge>& expiry = prometheus::BuildGauge()
                              .Name("recibo_tls_certificate_expiry_seconds")
                              .Help("Unix time when the certificate of a listener expires")
                              .Register(registry);

  Histogram& batch_size = batch.Add({}, batch_buckets);
  Gauge& queue_depth = depth.Add({});
  std::array<Gauge*, connection_states.size()> db_states{};

  // Taken shared by every call, exclusively by configure() alone. The maps only grow, but for secrets.
  mutable std::shared_mutex lock;
  by_name<provider_series> providers;
  by_name<Gauge*> queues;
  by_name<listener_series> listeners;
  Gauge* digest = nullptr;

  impl() {
    for (std::size_t i = 0; i < connection_states.size(); ++i) {
      db_states[i] = &db.Add({{"state", std::string(connection_states[i])}});
    }
    build.Add({{"version", RECIBO_VERSION}}).Set(1);
  }

  // Counters start at 0 rather than at their first event, which `increase()` would not see otherwise.
  void add(const metric_labels::provider& one) {
    provider_series& series = providers[one.name];
    for (std::size_t i = 0; i < disposition_words.size(); ++i) {
      series.callbacks[i] = &callbacks.Add({{"provider", one.name}, {"disposition", std::string(disposition_words[i])}});
    }
    for (std::size_t i = 0; i < reason_words.size(); ++i) {
      series.failures[i] = &failures.Add({{"provider", one.name}, {"reason", std::string(reason_words[i])}});
    }
    for (std::size_t i = 0; i < sequence_words.size(); ++i) {
      series.sequences[i] = &sequences.Add({{"provider", one.name}, {"decision", std::string(sequence_words[i])}});
    }
    for (std::size_t i = 0; i < stage_words.size(); ++i) {
      series.stages[i] = &seconds.Add({{"provider", one.name}, {"stage", std::string(stage_words[i])}}, seconds_buckets);
    }
    series.silence = &silences.Add({{"provider", one.name}});
    series.silent = &silent.Add({{"provider", one.name}});
    for (const auto& state : one.states) {
      series.operations[state] = &operations.Add({{"provider", one.name}, {"state", state}});
    }
    for (const auto& secret : one.secrets) {
      series.secrets[secret] = &last_used.Add({{"provider", one.name}, {"secret", secret}});
    }
  }

  // Secrets that the configuration names no longer: a rotation leaves no series behind.
  void forget_secrets(const metric_labels& labels) {
    for (auto& [name, series] : providers) {
      const auto one = std::find_if(labels.providers.begin(), labels.providers.end(),
                                    [&wanted = name](const auto& p) { return p.name == wanted; });
      std::erase_if(series.secrets, [&](const auto& gauge) {
        const bool kept = one != labels.providers.end() &&
                          std::find(one->secrets.begin(), one->secrets.end(), gauge.first) != one->secrets.end();
        if (!kept) last_used.Remove(gauge.second);
        return !kept;
      });
    }
  }

  void add_listener(const std::string& name) {
    listener_series& series = listeners[name];
    for (std::size_t i = 0; i < status_classes.size(); ++i) {
      series.requests[i] = &requests.Add({{"listener", name}, {"status_class", std::string(status_classes[i])}});
    }
    series.connections = &connections.Add({{"listener", name}});
    for (std::size_t i = 0; i < refusal_words.size(); ++i) {
      series.refused[i] = &refused.Add({{"listener", name}, {"reason", std::string(refusal_words[i])}});
    }
  }
};

metrics::metrics(const metric_labels& labels) : impl_(std::make_unique<impl>()) { configure(labels); }

metrics::~metrics() = default;

void metrics::configure(const metric_labels& labels) {
  const std::unique_lock guard(impl_->lock);
  impl_->forget_secrets(labels);
  for (const auto& one : labels.providers) impl_->add(one);
  for (const auto& name : labels.queues) impl_->queues[name] = &impl_->ages.Add({{"queue", name}});
  for (const auto& name : labels.listeners) impl_->add_listener(name);
  if (impl_->digest) impl_->config.Remove(std::exchange(impl_->digest, nullptr));
  if (!labels.config_digest.empty()) {
    impl_->digest = &impl_->config.Add({{"digest", labels.config_digest}});
    impl_->digest->Set(1);
  }
}

void metrics::callback(std::string_view provider, std::string_view disposition) noexcept {
  const std::shared_lock guard(impl_->lock);
  const auto* series = find(impl_->providers, provider);
  const std::size_t at = index_of(disposition_words, disposition);
  if (series && at < disposition_words.size()) series->callbacks[at]->Increment();
}

void metrics::stage(std::string_view provider, std::string_view stage, double seconds) noexcept {
  const std::shared_lock guard(impl_->lock);
  const auto* series = find(impl_->providers, provider);
  const std::size_t at = index_of(stage_words, stage);
  if (series && at < stage_words.size()) series->stages[at]->Observe(seconds);
}

void metrics::signature_failure(std::string_view provider, std::string_view reason) noexcept {
  const std::shared_lock guard(impl_->lock);
  if (const auto* series = find(impl_->providers, provider)) {
    series->failures[std::min(index_of(reason_words, reason), reason_words.size() - 1)]->Increment();
  }
}

void metrics::sequence_decision(std::string_view provider, std::string_view decision) noexcept {
  const std::shared_lock guard(impl_->lock);
  const auto* series = find(impl_->providers, provider);
  const std::size_t at = index_of(sequence_words, decision);
  if (series && at < sequence_words.size()) series->sequences[at]->Increment();
}

void metrics::secret_used(std::string_view provider, std::string_view secret, sys_micros at) noexcept {
  const std::shared_lock guard(impl_->lock);
  const auto* series = find(impl_->providers, provider);
  auto* const* gauge = series ? find(series->secrets, secret) : nullptr;
  // Two threads may race here; the loser's time is then microseconds too old, which nobody can see.
  if (gauge && (*gauge)->Value() < unix_seconds(at)) (*gauge)->Set(unix_seconds(at));
}

void metrics::record_batch(std::size_t callbacks) noexcept { impl_->batch_size.Observe(static_cast<double>(callbacks)); }

void metrics::queue_depth(std::size_t entries) noexcept { impl_->queue_depth.Set(static_cast<double>(entries)); }

void metrics::operations(std::string_view provider, std::string_view state, double count) noexcept {
  const std::shared_lock guard(impl_->lock);
  const auto* series = find(impl_->providers, provider);
  if (auto* const* gauge = series ? find(series->operations, state) : nullptr) (*gauge)->Set(count);
}

void metrics::oldest_age(std::string_view queue, double seconds) noexcept {
  const std::shared_lock guard(impl_->lock);
  if (auto* const* gauge = find(impl_->queues, queue)) (*gauge)->Set(seconds);
}

void metrics::provider_silence(std::string_view provider, double seconds, bool silent) noexcept {
  const std::shared_lock guard(impl_->lock);
  const auto* series = find(impl_->providers, provider);
  if (!series) return;
  series->silence->Set(seconds);
  series->silent->Set(silent ? 1 : 0);
}

void metrics::db_connections(std::string_view state, int count) noexcept {
  const std::size_t at = index_of(connection_states, state);
  if (at < connection_states.size()) impl_->db_states[at]->Set(count);
}

void metrics::http_request(std::string_view listener, int status) noexcept {
  const std::shared_lock guard(impl_->lock);
  const auto* series = find(impl_->listeners, listener);
  if (series && status >= 200 && status < 600) series->requests[static_cast<std::size_t>(status / 100 - 2)]->Increment();
}

void metrics::http_connections(std::string_view listener, int change) noexcept {
  const std::shared_lock guard(impl_->lock);
  if (const auto* series = find(impl_->listeners, listener)) series->connections->Increment(change);
}

void metrics::http_refused(std::string_view listener, std::string_view reason) noexcept {
  const std::shared_lock guard(impl_->lock);
  const auto* series = find(impl_->listeners, listener);
  if (series) series->refused[std::min(index_of(refusal_words, reason), refusal_words.size() - 1)]->Increment();
}

void metrics::certificate_expiry(std::string_view listener, std::optional<sys_micros> at) noexcept {
  const std::unique_lock guard(impl_->lock);
  auto* series = find(impl_->listeners, listener);
  if (!series) return;
  if (series->expiry && !at) impl_->expiry.Remove(std::exchange(series->expiry, nullptr));
  if (!at) return;
  if (!series->expiry) series->expiry = &impl_->expiry.Add({{"listener", std::string(listener)}});
  series->expiry->Set(unix_seconds(*at));
}

std::string metrics::render() const {
  // Shared: configure() must not remove a series while it is read.
  const std::shared_lock guard(impl_->lock);
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace recibo::observe
