#include "batch.hpp"

#include "recibo/evidence/facts.hpp"

#include <cassert>

namespace recibo::record {

void batch::decide(sys_micros at) {
  at_ = at;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    auto& v = verdicts_[i];
    const auto& w = *works_[i];
    if (const auto* c = std::get_if<callback>(&w)) {
      decide_callback(*c, v);
    } else if (const auto* r = std::get_if<registration>(&w)) {
      decide_registration(*r, v);
    } else if (const auto* e = std::get_if<event>(&w)) {
      decide_event(*e, v);
    } else if (const auto* p = std::get_if<payload_access>(&w)) {
      decide_payload_access(*p, v);
    } else if (const auto* m = std::get_if<rematch>(&w)) {
      decide_rematch(*m, v);
    }
  }
}

const transition::workflow& batch::table_of(in_hand& o, const config::settings& settings) {
  if (!o.table) o.table = workflows_.find(o.row.workflow, settings);
  assert(o.table && "append_second_look asks for every unknown workflow");
  return *o.table;
}

outcome batch::outcome_of(const in_hand& o) const {
  outcome out;
  out.request_id = o.row.request_id;
  out.state = o.row.state;
  out.version = o.row.version;
  out.revision = o.row.revision;
  return out;
}

void batch::append_audit(in_hand& o, const evidence::audit_fact& fact, const std::optional<delivery_id>& delivery) {
  ++o.row.sequence;
  ++o.row.revision;
  assert(fact.sequence == o.row.sequence);
  const auto digest = evidence::fact_digest(o.row.id, fact);
  o.row.chain_hash = evidence::chain_next(o.row.chain_hash, digest);
  o.changed = true;
  new_audit_.add(o.row.id, o.row.sequence, fact.kind, at_, fact.actor, delivery, digest, o.row.chain_hash);
}

std::int32_t batch::notify(const config::settings& settings, in_hand& o, std::string_view type) {
  std::int32_t count = 0;
  for (const auto& [name, destination] : settings.destinations) {
    if (!destination.subscribes(type)) continue;
    new_notifications_.add(make_id<notification_id>(at_), o.row.id, o.row.sequence, name, type, at_);
    ++count;
  }
  return count;
}

std::optional<std::string> batch::taken_reference(const std::vector<std::string>& references, const in_hand& o) const {
  for (const auto& r : references) {
    const auto* a = find_alias(o.row.provider, r);
    if (a && a->operation != o.row.id) return r;
  }
  return std::nullopt;
}

void batch::learn(const std::vector<std::string>& references, in_hand& o) {
  for (const auto& r : references) {
    if (find_alias(o.row.provider, r)) continue;
    storage::alias_row row{o.row.provider, r, o.row.request_id, o.row.id};
    alias_rows_.emplace(std::pair{o.row.provider, r}, std::move(row));
    new_aliases_.add(o.row.provider, r, o.row.id, at_);
  }
}

void batch::append_writes(storage::checked_pipeline& to) {
  for (const auto& [key, table] : new_workflows_)
    storage::append_workflow_version(to, key, table->digest(), table->name(), table->definition());
  for (const auto& o : operations_) {
    if (o.created) {
      new_operations_.add(o.row, at_);
    } else if (o.changed) {
      changed_operations_.add(o.row, o.locked_revision, at_);
    }
  }
  storage::repeated_keys repeated_keys;
  for (const auto& [name, times] : repeated_keys_) repeated_keys.add(name.first, name.second, times);
  storage::new_failed new_failed;
  storage::repeated_failed repeated_failed;
  for (const auto& [name, f] : failed_) {
    if (f.created) new_failed.add(f.row, at_);
    if (f.times > 0) repeated_failed.add(f.row.id, f.times, at_);
  }
  storage::repeated_reviews repeated_reviews;
  for (const auto& [name, r] : reviews_) {
    if (r.second > 0) repeated_reviews.add(r.first.id, r.second, at_);
  }

  std::move(new_operations_.rows).append_to(to);
  std::move(new_registrations_.rows).append_to(to);
  std::move(changed_operations_.rows).append_to(to);
  std::move(new_aliases_.rows).append_to(to);
  std::move(new_items_.rows).append_to(to);
  std::move(new_client_keys_.rows).append_to(to);
  std::move(new_keys_.rows).append_to(to);
  std::move(repeated_keys.rows).append_to(to);
  std::move(new_deliveries_.rows).append_to(to);
  std::move(new_payloads_.rows).append_to(to);
  std::move(new_transitions_.rows).append_to(to);
  std::move(new_audit_.rows).append_to(to);
  std::move(new_notifications_.rows).append_to(to);
  std::move(new_reviews_.rows).append_to(to);
  std::move(repeated_reviews.rows).append_to(to);
  std::move(new_failed.rows).append_to(to);
  std::move(repeated_failed.rows).append_to(to);
  std::move(new_payload_accesses_.rows).append_to(to);
  std::move(applied_parked_.rows).append_to(to);
  if (!understood_.empty()) storage::append_close_failed(to, understood_);
}

void batch::committed() {
  for (const auto& [key, table] : new_workflows_) workflows_.mark_stored(key);
}

}  // namespace recibo::record
