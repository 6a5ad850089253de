#include "writes.hpp"

namespace recibo::record {

void writes::append_to(storage::checked_pipeline& to, const found& seen, sys_micros at) && {
  for (const auto& [key, table] : new_workflows)
    storage::append_workflow_version(to, key, table->digest(), table->name(), table->definition());
  storage::new_items new_items;
  storage::changed_items changed_items;
  for (const auto& o : seen.operations) {
    if (o.created) {
      new_operations.add(o.row, at);
    } else if (o.changed) {
      changed_operations.add(o.row, o.locked_revision, at);
    }
    for (const auto& [id, i] : o.items) {
      if (i.created) {
        new_items.add(i.row, at);
      } else if (i.changed) {
        changed_items.add(i.row, i.read_version, at);
      }
    }
  }
  storage::repeated_keys repetitions;
  for (const auto& [name, times] : repeated_keys) repetitions.add(name.first, name.second, times);
  storage::new_failed new_failed;
  storage::repeated_failed repeated_failed;
  for (const auto& [name, f] : seen.failed) {
    if (f.created && !f.closed) new_failed.add(f.row, at);
    if (f.times > 0 && !f.closed) repeated_failed.add(f.row.id, f.times, at);
  }
  for (const auto& [name, r] : seen.reviews) {
    if (r.times > 0) repeated_reviews[r.row.id] += r.times;
  }
  storage::repeated_reviews seen_again;
  for (const auto& [id, times] : repeated_reviews) seen_again.add(id, times, at);

  std::move(new_operations.rows).append_to(to);
  std::move(new_registrations.rows).append_to(to);
  std::move(changed_operations.rows).append_to(to);
  std::move(new_corrections.rows).append_to(to);
  std::move(new_workflow_changes.rows).append_to(to);
  std::move(new_aliases.rows).append_to(to);
  // Before what moved from there in this very batch.
  std::move(renamed_item_states.rows).append_to(to);
  std::move(new_items.rows).append_to(to);
  std::move(changed_items.rows).append_to(to);
  std::move(new_client_keys.rows).append_to(to);
  std::move(new_keys.rows).append_to(to);
  std::move(repetitions.rows).append_to(to);
  std::move(new_signed_contents.rows).append_to(to);
  std::move(new_deliveries.rows).append_to(to);
  std::move(new_payloads.rows).append_to(to);
  std::move(new_transitions.rows).append_to(to);
  std::move(new_audit.rows).append_to(to);
  std::move(new_notifications.rows).append_to(to);
  std::move(assigned_reviews.rows).append_to(to);
  // Before the new ones: of one content there is one open review at a time.
  std::move(resolved_reviews.rows).append_to(to);
  std::move(new_reviews.rows).append_to(to);
  std::move(seen_again.rows).append_to(to);
  std::move(reminded_reviews.rows).append_to(to);
  std::move(new_review_actions.rows).append_to(to);
  // What is done goes first: the same bytes may fail anew in this very batch.
  std::move(closed_failed.rows).append_to(to);
  std::move(resent_failed.rows).append_to(to);
  std::move(tried_failed.rows).append_to(to);
  std::move(relisted_failed.rows).append_to(to);
  std::move(new_failed.rows).append_to(to);
  std::move(repeated_failed.rows).append_to(to);
  std::move(new_payload_accesses.rows).append_to(to);
  std::move(applied_parked.rows).append_to(to);
  std::move(outgrown_reviews.rows).append_to(to);
  std::move(new_replays.rows).append_to(to);
  std::move(ended_timers.rows).append_to(to);
  std::move(fired_timers.rows).append_to(to);
  std::move(set_timers.rows).append_to(to);
  std::move(resumed_deadlines.rows).append_to(to);
  // What is settled goes first: what is asked anew in this batch does not wait for it.
  std::move(answered_look_ups.rows).append_to(to);
  std::move(hastened_look_ups.rows).append_to(to);
  storage::new_look_ups asked;
  for (const auto& [what, row] : new_look_ups) asked.add(row, at);
  std::move(asked.rows).append_to(to);
}

}  // namespace recibo::record
