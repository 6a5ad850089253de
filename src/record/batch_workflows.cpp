// What a batch decides about an operation that is to live under another version of its workflow (decision 7).
#include "batch.hpp"

#include "recibo/core/json_writer.hpp"
#include "recibo/evidence/facts.hpp"

#include <map>
#include <string>

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
  // Items go on in the states that they are in, by the names that the other version has for them.
  std::map<std::string, std::string> renamed;
  for (const auto& state : *o->item_states) {
    const auto named = w.states.find(state);
    const auto& name = named == w.states.end() ? state : named->second;
    if (!w.to->find_state(name))
      return turn_down(error(permanent::illegal_transition, "an item is in the state " + state + ", which the version has not"));
    if (name != state) renamed.emplace(state, name);
  }

  evidence::workflow_changed fact;
  fact.sequence = o->row.sequence + 1;
  fact.at = at_;
  fact.actor = w.actor;
  fact.from_workflow = o->row.workflow;
  fact.to_workflow = w.to->version_key();
  fact.from = o->row.state;
  fact.to = to;
  fact.reason = w.reason;
  const auto item_states = rename_items(*o, renamed);
  fact.item_states = item_states;
  append_audit(*o, evidence::workflow_fact(fact), std::nullopt);
  writes_.new_workflow_changes.add(o->row.id, o->row.sequence, fact.from_workflow, fact.to_workflow, fact.from, fact.to, at_,
                                   w.actor, w.reason, item_states);
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

std::string batch::rename_items(operation_in_hand& o, const std::map<std::string, std::string>& renamed) {
  if (renamed.empty()) return {};
  const auto name_of = [&](const std::string& state) {
    const auto known = renamed.find(state);
    return known == renamed.end() ? state : known->second;
  };
  json_writer text;
  text.begin_object();
  for (const auto& [from, to] : renamed) {
    text.text(from, to);
    writes_.renamed_item_states.add(o.row.id, from, to, at_);
  }
  text.end_object();
  // Those that this batch has read are moved on with their rows.
  for (auto& [id, item] : o.items) item.row.state = name_of(item.row.state);
  transition::item_counts counts;
  for (const auto& [state, count] : o.items_by_state) counts[name_of(state)] += count;
  o.items_by_state = std::move(counts);
  return text.take();
}

}  // namespace recibo::record
