#include "batch.hpp"

#include "recibo/evidence/facts.hpp"
#include "recibo/observe/metrics.hpp"

#include <cassert>

namespace recibo::record {

batch::batch(std::vector<const work*> works, workflow_cache& workflows, bool careful)
    : works_(std::move(works)), verdicts_(works_.size()), workflows_(workflows), found_(works_, workflows, careful) {}

void batch::decide(sys_micros at) {
  at_ = at;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    auto& v = verdicts_[i];
    const auto& w = *works_[i];
    if (const auto* c = std::get_if<callback>(&w)) {
      decide_callback(*c, v);
    } else if (const auto* g = std::get_if<callback_group>(&w)) {
      decide_group(*g, v);
    } else if (const auto* r = std::get_if<registration>(&w)) {
      decide_registration(*r, v);
    } else if (const auto* e = std::get_if<event>(&w)) {
      decide_event(*e, v);
    } else if (const auto* p = std::get_if<payload_access>(&w)) {
      decide_payload_access(*p, v);
    } else if (const auto* m = std::get_if<rematch>(&w)) {
      decide_rematch(*m, v);
    } else if (const auto* w_change = std::get_if<workflow_change>(&w)) {
      decide_workflow_change(*w_change, v);
    } else if (const auto* a = std::get_if<review_action>(&w)) {
      decide_review_action(*a, v);
    } else if (const auto* d = std::get_if<discard>(&w)) {
      decide_discard(*d, v);
    } else if (const auto* old = std::get_if<parked_review>(&w)) {
      decide_parked_review(*old, v);
    } else if (const auto* t = std::get_if<timer_due>(&w)) {
      decide_timer(*t, v);
    } else if (const auto* late = std::get_if<review_due>(&w)) {
      decide_review_due(*late, v);
    } else if (const auto* l = std::get_if<look_up>(&w)) {
      decide_look_up(*l, v);
    }
  }
  for (auto& [name, f] : found_.failed) {
    if (f.created && !f.left.empty()) f.row.left_out = write_left_out(f.left);
    if (f.relisted && !f.closed) writes_.relisted_failed.add(f.row.id, f.row.left_out);
  }
  plan_timers();
  // A registration tells what is true when it commits: what came behind it in this batch has had its effect too (R1).
  for (std::size_t i = 0; i < works_.size(); ++i) {
    auto& v = verdicts_[i];
    if (!std::holds_alternative<registration>(*works_[i]) || v.is != verdict::kind::decided || v.outcome.replayed) continue;
    if (const auto* o = found_.find(v.outcome.request_id)) v.outcome = outcome_of(*o);
  }
}

const transition::workflow& batch::table_of(operation_in_hand& o, const config::settings& settings) {
  if (!o.table) o.table = workflows_.find(o.row.workflow, settings);
  o.settings = &settings;
  assert(o.table && "append_next_look asks for every unknown workflow");
  return *o.table;
}

outcome batch::outcome_of(const operation_in_hand& o) const {
  outcome out;
  out.request_id = o.row.request_id;
  out.state = o.row.state;
  out.version = o.row.version;
  out.revision = o.row.revision;
  out.at = at_;
  return out;
}

void batch::append_audit(operation_in_hand& o, const evidence::audit_fact& fact, const std::optional<delivery_id>& delivery) {
  ++o.row.sequence;
  ++o.row.revision;
  assert(fact.sequence == o.row.sequence);
  const auto digest = evidence::fact_digest(o.row.id, fact);
  o.row.chain_hash = evidence::chain_next(o.row.chain_hash, digest);
  o.changed = true;
  writes_.new_audit.add(o.row.id, o.row.sequence, fact.kind, at_, fact.actor, delivery, digest, o.row.chain_hash);
}

std::int32_t batch::notify(const config::settings& settings, operation_in_hand& o, std::string_view type) {
  std::int32_t count = 0;
  for (const auto& [name, destination] : settings.destinations) {
    if (!destination.subscribes(type)) continue;
    writes_.new_notifications.add(make_id<notification_id>(at_), o.row.id, o.row.sequence, name, type, at_);
    told_.insert(name);
    ++count;
  }
  return count;
}

std::optional<std::string> batch::taken_reference(const std::vector<std::string>& references, const operation_in_hand& o) const {
  for (const auto& r : references) {
    const auto* a = found_.find_alias(o.row.provider, r);
    if (a && a->operation != o.row.id) return r;
  }
  return std::nullopt;
}

void batch::learn(const std::vector<std::string>& references, operation_in_hand& o) {
  for (const auto& r : references) {
    if (found_.find_alias(o.row.provider, r)) continue;
    found_.add_alias({o.row.provider, r, o.row.request_id, o.row.id});
    writes_.new_aliases.add(o.row.provider, r, o.row.id, at_);
  }
}

void batch::append_writes(storage::checked_pipeline& to) { std::move(writes_).append_to(to, found_, at_); }

void batch::committed(observe::metrics* counts) {
  if (counts)
    for (const auto& [provider, decision] : sequence_decisions_) counts->sequence_decision(provider, decision);
  for (const auto& [key, table] : writes_.new_workflows) workflows_.mark_stored(key);
}

}  // namespace recibo::record
