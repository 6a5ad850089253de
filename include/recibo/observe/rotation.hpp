// Metrics of what changes while the service runs: reloads of the configuration, and when secrets end. Few and rarely touched,
// so they stand beside the hot ones of metrics.hpp. Safe from any thread.
#pragma once

#include "recibo/core/clock.hpp"

#include <memory>
#include <string>
#include <vector>

namespace recibo::observe {

class rotation_metrics {
 public:
  rotation_metrics();
  ~rotation_metrics();
  rotation_metrics(const rotation_metrics&) = delete;
  rotation_metrics& operator=(const rotation_metrics&) = delete;

  struct ending {
    std::string provider, secret;  // names in the configuration
    sys_micros until;
  };
  // recibo_secret_expires_seconds{provider,secret}: Unix time of the end of a secret's validity, for those that have one. What
  // is not among `all` is taken away.
  void secrets_end(const std::vector<ending>& all);

  // recibo_config_reloads_total{result}: "taken" or "refused", and recibo_config_last_reload_seconds{result}: Unix time.
  void reload(bool taken, sys_micros at) noexcept;

  // Text format 0.0.4, to stand behind metrics::render().
  std::string render() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace recibo::observe
