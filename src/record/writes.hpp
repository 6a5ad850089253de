// The rows that a batch has decided to write, one statement a table.
#pragma once

#include "found.hpp"
#include "recibo/storage/deliveries.hpp"
#include "recibo/storage/evidence.hpp"
#include "recibo/storage/keys.hpp"
#include "recibo/storage/look_ups.hpp"
#include "recibo/storage/operations.hpp"
#include "recibo/storage/parked.hpp"
#include "recibo/storage/registrations.hpp"
#include "recibo/storage/replays.hpp"
#include "recibo/storage/reviews.hpp"
#include "recibo/storage/signed_contents.hpp"
#include "recibo/storage/timers.hpp"
#include "recibo/storage/workflow_versions.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace recibo::record {

// What it borrows (texts of works, tables) outlives it.
struct writes {
  storage::new_operations new_operations;
  storage::changed_operations changed_operations;
  storage::new_registrations new_registrations;
  storage::new_corrections new_corrections;
  storage::new_workflow_changes new_workflow_changes;
  storage::renamed_item_states renamed_item_states;
  storage::new_aliases new_aliases;
  storage::new_keys new_keys;
  // Claimed keys that were repeated, by operation and key.
  std::map<std::pair<operation_id, std::string>, std::int32_t> repeated_keys;
  storage::new_signed_contents new_signed_contents;
  storage::new_client_keys new_client_keys;
  storage::new_deliveries new_deliveries;
  storage::new_payloads new_payloads;
  storage::new_transitions new_transitions;
  storage::new_audit new_audit;
  storage::new_notifications new_notifications;
  storage::new_reviews new_reviews;
  // Reviews that were seen again and are no longer open in `found`; the others are counted there.
  std::map<review_id, std::int32_t> repeated_reviews;
  storage::assigned_reviews assigned_reviews;
  storage::resolved_reviews resolved_reviews;
  storage::reminded_reviews reminded_reviews;
  storage::new_review_actions new_review_actions;
  storage::new_payload_accesses new_payload_accesses;
  storage::applied_parked applied_parked;
  storage::outgrown_reviews outgrown_reviews;
  // Callbacks that could not be understood before, and now were.
  storage::resent_failed resent_failed;
  storage::closed_failed closed_failed;
  storage::tried_failed tried_failed;
  storage::relisted_failed relisted_failed;
  storage::new_replays new_replays;
  storage::set_timers set_timers;
  storage::ended_timers ended_timers;
  storage::fired_timers fired_timers;
  storage::resumed_deadlines resumed_deadlines;
  // By operation and reference: of each one waits at most.
  std::map<std::pair<operation_id, std::string>, storage::look_up_row> new_look_ups;
  storage::hastened_look_ups hastened_look_ups;
  storage::answered_look_ups answered_look_ups;
  // Tables that the database may not have yet, by key.
  std::map<std::int64_t, const transition::workflow*> new_workflows;

  // Adds every statement; the caller adds COMMIT. Call once. `seen` tells what has changed of what was there.
  void append_to(storage::checked_pipeline& to, const found& seen, sys_micros at) &&;
};

}  // namespace recibo::record
