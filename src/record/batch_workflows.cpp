// What a batch decides about an operation that is to live under another version of its workflow (decision 7).
#include "batch.hpp"

#include "recibo/evidence/facts.hpp"

#include <algorithm>

namespace recibo::record {

void batch::decide_workflow_change(const workflow_change& w, verdict& v) {
  const auto turn_down = [&](error why) {
    v.is = verdict::kind::refused;
    v.why = std::move(why);
  };
  auto* o = found_.find(w.request_id);
  if (!o && !found_.exists(w.request_id)) return turn_down(error(permanent::not_found, "no such operation"));
  if (!o || o->blocked || !o->item_states) {
    v.is = verdict::kind::busy;
    return;
  }
  v.outcome = outcome_of(*o);
  if (o->row.workflow == w.to->version_key()) {
    v.is = verdict::kind::decided;
    v.outcome.replayed = true;
    return;
  }
  if (table_of(*o, *w.settings).name() != w.to->name())
    return turn_down(error(permanent::illegal_transition, "the operation lives in another workflow"));
  const auto mapped = w.states.find(o->row.state);
  const std::string to = mapped == w.states.end() ? o->row.state : mapped->second;
  if (!w.to->find_state(to))
    return turn_down(error(permanent::illegal_transition, "the version that it is to get has no state " + to));
  // Items have histories of their own, in words of the version that they leave: only those that the other has too can go on.
  const auto lost = std::find_if(o->item_states->begin(), o->item_states->end(),
                                 [&](const std::string& state) { return !w.to->find_state(state); });
  if (lost != o->item_states->end())
    return turn_down(error(permanent::illegal_transition, "an item is in the state " + *lost + ", which the version has not"));

  evidence::workflow_changed fact;
  fact.sequence = o->row.sequence + 1;
  fact.at = at_;
  fact.actor = w.actor;
  fact.from_workflow = o->row.workflow;
  fact.to_workflow = w.to->version_key();
  fact.from = o->row.state;
  fact.to = to;
  fact.reason = w.reason;
  append_audit(*o, evidence::workflow_fact(fact), std::nullopt);
  writes_.new_workflow_changes.add(o->row.id, o->row.sequence, fact.from_workflow, fact.to_workflow, fact.from, fact.to, at_,
                                   w.actor, w.reason);
  o->row.workflow = fact.to_workflow;
  if (o->row.state != to) {
    o->row.state = to;
    o->row.state_at = at_;
    look_up_in_state(*w.settings, *o);
  }
  o->table = w.to.get();
  o->settings = w.settings.get();
  workflows_.add(w.to);
  if (!workflows_.stored(o->row.workflow)) writes_.new_workflows.emplace(o->row.workflow, w.to.get());
  v.is = verdict::kind::decided;
  v.outcome = outcome_of(*o);
}

}  // namespace recibo::record
