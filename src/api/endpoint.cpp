#include "recibo/api/endpoint.hpp"

#include "handlers.hpp"

namespace recibo::api {

const endpoint_table& endpoints() {
  static const auto made = [] {
    endpoint_table t;
    add_operations(t);
    add_operation_reads(t);
    add_operation_lists(t);
    add_operation_events(t);
    add_timeline(t);
    add_deliveries(t);
    add_reviews(t);
    add_review_actions(t);
    add_failed_callbacks(t);
    add_failed_callback_actions(t);
    add_notifications(t);
    add_destinations(t);
    add_look_ups(t);
    add_providers(t);
    add_refusals(t);
    add_workflows(t);
    add_stats(t);
    add_config(t);
    add_system(t);
    return t;
  }();
  return made;
}

}  // namespace recibo::api
