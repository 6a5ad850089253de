// Metrics of look-ups. Labels are names in the configuration and literals of ours. Safe from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace recibo::observe {

class look_up_metrics {
 public:
  look_up_metrics();
  ~look_up_metrics();
  look_up_metrics(const look_up_metrics&) = delete;
  look_up_metrics& operator=(const look_up_metrics&) = delete;

  // recibo_look_up_attempts_total{provider,result}: requests by what became of them.
  void attempt(std::string_view provider, std::string_view result);
  // recibo_look_ups_total{provider,result}: look-ups by the disposition of what they brought, or `failed`.
  void settled(std::string_view provider, std::string_view result);
  // recibo_event_lists_total{provider,result}: readings of event lists: `done`, `failed`, `later`.
  void listed(std::string_view provider, std::string_view result);
  // recibo_look_up_breaker_state{provider}: 0 closed, 1 half open, 2 open.
  void state(std::string_view provider, std::string_view breaker);

  // Text format 0.0.4, to stand behind metrics::render().
  std::string render() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace recibo::observe
