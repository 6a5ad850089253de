// What a batch decides about look-ups: who asks for one, and what one came to (R23, R40).
#include "batch.hpp"

#include "recibo/config/answers.hpp"
#include "recibo/core/json_value.hpp"
#include "recibo/core/json_writer.hpp"

#include <algorithm>
#include <map>

namespace recibo::record {

using transition::disposition;

namespace {

// The word of record::retry_… for what a look-up that has ended came to; empty: nothing has happened at the provider.
std::string_view judge_retry(const storage::retry_look_up& said, std::string_view item_id) {
  // That the provider does not know the operation is the best that can be heard of it.
  const auto& why = said.reason;
  const bool not_asked = why == "no_reference" || why == "reference_refused" || why == "no_status";
  if (said.status == "failed")
    return why == "not_found" ? std::string_view() : not_asked || why == "gone" ? retry_unclear : retry_unknown;
  const auto word = transition::parse_disposition(said.disposition);
  const bool no_news =
      word && (*word == disposition::redundant || *word == disposition::stale || *word == disposition::duplicate);
  if (!no_news || said.repeatable.empty()) return retry_unclear;
  const auto list = parse_json(said.repeatable);
  if (!list) return retry_unclear;
  const auto is_it = [&](const json_value& one) { return one.text == item_id; };
  return std::any_of(list->elements.begin(), list->elements.end(), is_it) ? std::string_view() : retry_unclear;
}

}  // namespace

void batch::decide_look_up(const look_up& l, verdict& v) {
  const auto refuse = [&](permanent why, std::string detail) {
    v.is = verdict::kind::refused;
    v.why = error(why, std::move(detail));
  };
  auto* o = found_.find(l.request_id);
  if (!o && !found_.exists(l.request_id)) return refuse(permanent::not_found, "no such operation");
  if (!o || o->blocked) {
    v.is = verdict::kind::busy;
    return;
  }
  if (l.client && o->row.client != *l.client) return refuse(permanent::not_found, "no such operation");
  const auto of = l.settings->providers.find(o->row.provider);
  if (of == l.settings->providers.end() || !of->second.status)
    return refuse(permanent::check_failed, "the configuration does not say how this provider is asked");
  want_look_up(of->second, *o, "request", l.actor, {});
  v.is = verdict::kind::decided;
  v.outcome = outcome_of(*o);
}

bool batch::asks_first(const config::settings& settings, const operation_in_hand& o, std::string_view event, bool has_evidence) {
  // Who brings evidence has asked by other means.
  if (event != retry_event || has_evidence) return false;
  const auto of = settings.providers.find(o.row.provider);
  return of != settings.providers.end() && of->second.status && of->second.status->before_retry;
}

bool batch::may_retry(const event& e, operation_in_hand& o, verdict& v) {
  // What was read of its moves is from before this batch's.
  if (o.changed || o.created) {
    v.is = verdict::kind::busy;
    return false;
  }
  const auto [word, asked_at] = ask_before_retry(*e.settings, o, e.item_id.value_or(""), e.actor, e.asked_at);
  if (word.empty()) return true;
  v.is = verdict::kind::decided;
  v.outcome = outcome_of(o);
  v.outcome.detail = word;
  v.outcome.asked_at = asked_at;
  return false;
}

std::pair<std::string_view, std::int32_t> batch::ask_before_retry(const config::settings& settings, operation_in_hand& o,
                                                                  const std::string& item_id, const std::string& actor,
                                                                  const std::optional<std::int32_t>& asked_at, bool by_clock) {
  const auto known = found_.retries.find(o.row.id);
  const auto* const said = known == found_.retries.end() ? nullptr : &known->second;
  const auto since = asked_at.value_or(said ? said->sequence : 0);
  const bool moved = said && said->moved && *said->moved > since;
  if (asked_at && moved) return {retry_overtaken, since};
  if (said && !moved && (said->status == "queued" || said->status == "asking")) {
    // Only somebody who waits may end a back-off: the clock has time.
    if (!by_clock) writes_.hastened_look_ups.add(o.row.id);
    return {retry_asks, since};
  }
  // What was said a moment ago to a retry that did not wait for it holds for this one, as long as nothing has moved; and for the
  // clock, which comes back when it can, what it has asked itself.
  if (said && !moved && (said->fresh || asked_at || (by_clock && said->by_clock))) return {judge_retry(*said, item_id), since};
  want_look_up(settings.providers.at(o.row.provider), o, retry_event, actor, {}, o.row.sequence);
  return {retry_asks, o.row.sequence};
}

void batch::want_look_up(const config::provider& of, const operation_in_hand& o, std::string_view cause, std::string asked_by,
                         const std::string& reference, std::optional<std::int32_t> sequence) {
  if (!of.status) return;
  storage::look_up_row row;
  row.operation = o.row.id;
  row.provider = of.name;
  // What the URL has no place for makes no difference to what is asked.
  if (of.status->by_reference) row.reference = reference;
  row.cause = cause;
  row.asked_by = std::move(asked_by);
  row.sequence = sequence;
  std::pair what(o.row.id, row.reference);
  const auto [known, fresh] = writes_.new_look_ups.try_emplace(std::move(what), row);
  if (fresh) return;
  ++known->second.times;
  if (!sequence) return;
  known->second.cause = row.cause;
  known->second.asked_by = std::move(row.asked_by);
  known->second.sequence = sequence;
}

void batch::look_up_in_state(const config::settings& settings, const operation_in_hand& o) {
  const auto of = settings.providers.find(o.row.provider);
  if (of == settings.providers.end() || !of->second.status) return;
  const auto& states = of->second.status->states;
  if (std::find(states.begin(), states.end(), o.row.state) == states.end()) return;
  want_look_up(of->second, o, "state", "recibo", {});
}

void batch::decide_hint(const callback& c, operation_in_hand& o, verdict& v, const storage::parked_row* waited) {
  const auto& of = *c.provider;
  // Whatever was hinted before, and under whatever key: identical bytes may mean new content.
  want_look_up(of, o, "hint", of.name, c.references.empty() ? std::string() : c.references.front());
  if (auto* const claim = claim_of(c, o)) return decide_duplicate(c, o, *claim, v, waited);
  const auto shape = config::shape_of(of.answers, disposition::hint);
  record_delivery(c, o, to_string(disposition::hint), shape.status, std::nullopt, nullptr, waited);
  if (!of.status)
    open_review(c, o, "look_up", nullptr, "a hint, and the configuration does not say any more how its provider is asked");
  claim_key(c, o, disposition::hint, shape.status, shape.body, waited);
  v.outcome = outcome_of(o);
  v.outcome.disposition = disposition::hint;
  v.outcome.delivery = c.id;
  v.outcome.status = shape.status;
  v.outcome.body = shape.body;
}

void batch::decide_looked_up(const callback& c, verdict& v) {
  auto* o = found_.find_for(c);
  if (!o && !found_.exists(c.request_id)) {
    v.is = verdict::kind::refused;
    v.why = error(permanent::not_found, "no such operation");
    return;
  }
  if (!o || o->blocked) {
    v.is = verdict::kind::busy;
    return;
  }
  if (c.understood() && c.event != "ignore") {
    const auto learned = found_.unknown_references(o->row.provider, c.references);
    if (!found_.may_meet(learned) || (!learned.empty() && !found_.may_apply(o->row.provider, o->row.request_id, learned))) {
      o->blocked = true;
      v.is = verdict::kind::busy;
      return;
    }
    if (!learned.empty() && teaches(c, *o)) {
      learn(c.references, *o);
      apply_parked(*o, c.settings, learned);
    }
  }
  decide_known(c, *o, v, nullptr);
  if (v.is == verdict::kind::decided) settle_look_up(c, *o, v.outcome);
}

std::string batch::repeatable_by(const callback& c, operation_in_hand& o) {
  const auto of = c.settings->providers.find(o.row.provider);
  if (of == c.settings->providers.end() || !of->second.status || !c.understood() || c.named_instead) return {};
  const auto& safe = of->second.status->safe_to_retry;
  if (safe.empty()) return {};
  const auto& table = table_of(o, *c.settings);
  // What the table would take now is news, also where it was said before and is not taken again.
  const auto is_safe = [&](const std::string& word, const std::string& event, const std::string& state) {
    if (std::find(safe.begin(), safe.end(), word) == safe.end()) return false;
    return event == "ignore" || !transition::decide_event(table, state, event, transition::actor_kind::provider, true);
  };
  bool all = c.event_raw.empty() ? !c.items.empty() : is_safe(c.event_raw, c.event, o.row.state);
  std::map<std::string_view, bool> items;
  for (const auto& one : c.items) {
    const auto* const item = one.item_id.empty() ? nullptr : found_.find_item(o, one.item_id);
    const bool may = item && one.understood() && is_safe(one.event_raw, one.event, item->row.state);
    all = all && may;
    const auto known = items.try_emplace(one.item_id, may).first;
    known->second = known->second && may;
  }
  std::int64_t total = 0;
  for (const auto& [state, count] : o.items_by_state) total += count;
  if (!c.items.empty()) all = all && static_cast<std::int64_t>(items.size()) == total;
  json_writer out;
  out.begin_array();
  if (all) out.text("");
  for (const auto& [item, may] : items)
    if (may) out.text(item);
  return out.end_array().take();
}

void batch::settle_look_up(const callback& c, operation_in_hand& o, const outcome& decided) {
  const auto& a = *c.looked_up;
  storage::answered_look_ups::row row;
  row.id = a.id;
  row.holder = {reinterpret_cast<const char*>(a.holder.data()), a.holder.size()};
  row.attempt = a.number;
  row.status = a.outcome == "answered" ? "answered" : "failed";
  row.outcome = a.outcome;
  row.disposition = to_string(decided.replayed ? disposition::duplicate : decided.disposition);
  row.host = a.host;
  // Of what was said before, the delivery that said it is as good a proof as this one, of which there may be only a count.
  row.delivery = decided.delivery;
  row.duration_ms = static_cast<std::int32_t>(a.duration.count());
  if (a.answer_status) row.answer_status = *a.answer_status;
  const auto repeatable = repeatable_by(c, o);
  row.repeatable = repeatable;
  writes_.answered_look_ups.add(row, at_);
}

}  // namespace recibo::record
