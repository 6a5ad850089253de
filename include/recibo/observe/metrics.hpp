// Counters, gauges and histograms under the names of contract section 8, in Prometheus' text format.
// Labels come from the configuration alone: a call that names a provider, secret or queue that was never configured
// counts nothing, so that nothing a sender controls becomes a series (S40).
// Safe from any thread. A call looks its series up under a shared lock and adds an atomic: well below a microsecond.
#pragma once

#include "recibo/core/clock.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::observe {

// What may become a label.
struct metric_labels {
  struct provider {
    std::string name;
    std::vector<std::string> states;   // of its workflow
    std::vector<std::string> secrets;  // their names
  };
  std::vector<provider> providers;
  // Of recibo_oldest_age_seconds: "parked", "review", "failed", "timers", "overdue", "operations:processing", "outbox:ledger", …
  std::vector<std::string> queues;
  // Of recibo_http_*: "callbacks", "api".
  std::vector<std::string> listeners{"callbacks", "api"};
  // SHA-256 of the configuration, hex.
  std::string config_digest;
};

class metrics {
 public:
  explicit metrics(const metric_labels& labels);
  ~metrics();
  metrics(const metrics&) = delete;
  metrics& operator=(const metrics&) = delete;

  // After a reload: adds what is new and shows the new digest. Counters of a provider that has gone stay, because a
  // counter that vanishes reads as a restart.
  void configure(const metric_labels& labels);

  // recibo_callbacks_total{provider,disposition}: the words of contract section 4; another word counts nothing.
  void callback(std::string_view provider, std::string_view disposition) noexcept;
  // recibo_callback_seconds{provider,stage}: "verify", "queue", "commit", "total".
  void stage(std::string_view provider, std::string_view stage, double seconds) noexcept;
  // recibo_signature_failures_total{provider,reason}: the word of the error; one that is no signature failure is "other".
  void signature_failure(std::string_view provider, std::string_view reason) noexcept;
  // recibo_sequence_decisions_total{provider,decision}: "overruled", a move that the table allowed and the provider's
  // sequence called stale; "doubted", a sequence that fits no count, so that the table alone decided (R10).
  void sequence_decision(std::string_view provider, std::string_view decision) noexcept;
  // recibo_secret_last_used_seconds{provider,secret}: Unix time of the newest delivery that it verified in this process,
  // 0 before the first (R38). Never goes back.
  void secret_used(std::string_view provider, std::string_view secret, sys_micros at) noexcept;

  // recibo_record_batch_size and recibo_queue_depth, the latter summed over writers by the caller.
  void record_batch(std::size_t callbacks) noexcept;
  void queue_depth(std::size_t entries) noexcept;

  // recibo_operations{provider,state} and recibo_oldest_age_seconds{queue}, from the last look at the database.
  void operations(std::string_view provider, std::string_view state, double count) noexcept;
  void oldest_age(std::string_view queue, double seconds) noexcept;
  // recibo_provider_silence_seconds{provider}: since a callback of it last verified, at any replica; and
  // recibo_provider_silent{provider}: 1 while that is longer than its silence_alert.
  void provider_silence(std::string_view provider, double seconds, bool silent) noexcept;
  // recibo_db_connections{state}: "idle", "busy", "connecting", "waiting", "writer".
  void db_connections(std::string_view state, int count) noexcept;

  // recibo_http_requests_total{listener,status_class} by the status of the answer, and recibo_http_connections{listener}.
  void http_request(std::string_view listener, int status) noexcept;
  void http_connections(std::string_view listener, int change) noexcept;
  // recibo_http_connections_refused_total{listener,reason}: connections that ended before their first request. "over_limit",
  // "proxy_header_malformed", "proxy_header_timeout", "tls_timeout", "tls_closed", "tls_plain_http", "tls_version",
  // "tls_cipher", "tls_alpn", "tls_client_certificate_missing", "tls_client_certificate_refused", "tls_alert", "tls_other".
  void http_refused(std::string_view listener, std::string_view reason) noexcept;
  // recibo_tls_certificate_expiry_seconds{listener}: Unix time; nullopt: plain HTTP, and no series.
  void certificate_expiry(std::string_view listener, std::optional<sys_micros> at) noexcept;

  // Everything, as `GET /metrics` answers it: text format 0.0.4.
  std::string render() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace recibo::observe
