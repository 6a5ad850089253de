// Metrics of the outbox (contract section 8). Labels are names in the configuration. Safe from any thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace recibo::observe {

class notification_metrics {
 public:
  notification_metrics();
  ~notification_metrics();
  notification_metrics(const notification_metrics&) = delete;
  notification_metrics& operator=(const notification_metrics&) = delete;

  // recibo_notifications_total{destination,result}: attempts by what became of them; `result` is a literal of ours.
  void attempt(std::string_view destination, std::string_view result);
  // recibo_notification_attempts{destination}: how many it took until it was delivered or dead.
  void settled(std::string_view destination, int attempts);
  // recibo_breaker_state{destination}: 0 closed, 1 half open, 2 open. recibo_destination_paused{destination}: 1 when nothing
  // is sent until a person resumes it.
  void state(std::string_view destination, std::string_view breaker, bool paused);

  // Text format 0.0.4, to stand behind metrics::render().
  std::string render() const;

 private:
  struct impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace recibo::observe
