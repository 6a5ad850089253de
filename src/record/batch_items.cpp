// What a batch decides about the items of an operation (R7): each by itself, against its own state; and what they come to.
#include "batch.hpp"

#include "recibo/config/answers.hpp"
#include "recibo/evidence/facts.hpp"
#include "recibo/record/left_out.hpp"

#include <algorithm>
#include <span>
#include <unordered_map>

namespace recibo::record {

using transition::disposition;

namespace {

item_result judged(disposition outcome, std::string attention, std::string detail) {
  item_result out;
  out.outcome = outcome;
  out.attention = std::move(attention);
  out.detail = std::move(detail);
  return out;
}

item_result for_review(transition::review_kind why, std::string detail) {
  return judged(disposition::review, std::string(transition::to_string(why)), std::move(detail));
}

item_result not_understood(const item_news& said) {
  const auto outcome = said.unprocessable ? disposition::unprocessable : disposition::unmapped;
  auto detail = said.unprocessable ? std::string(code_word(said.unprocessable->code)) + ": " + said.unprocessable->detail
                                   : std::string("the event is not in the provider's map");
  return judged(outcome, std::string(transition::to_string(outcome)), std::move(detail));
}

transition::news news_of(const item_news& said, sys_micros received_at) {
  transition::news out;
  out.event = said.event;
  out.occurred_at = transition::believable(said.occurred_at, received_at);
  out.sequence = said.sequence;
  return out;
}

bool is_failed(const item_result& r) { return r.outcome == disposition::unmapped || r.outcome == disposition::unprocessable; }

// What is said twice is said once; what is left of rule is not said.
std::vector<const item_news*> worth_deciding(const std::vector<const item_news*>& said) {
  std::vector<const item_news*> out;
  for (const auto* one : said) {
    const auto same = [&](const auto* known) { return *known == *one; };
    if (one->event != "ignore" && std::none_of(out.begin(), out.end(), same)) out.push_back(one);
  }
  return out;
}

// The same event with two results cannot both be true.
bool results_contradict(const std::vector<const item_news*>& said) {
  for (const auto* a : said)
    for (const auto* b : said)
      if (a->event == b->event && a->result != b->result && !a->result.empty() && !b->result.empty()) return true;
  return false;
}

}  // namespace

item_in_hand& batch::add_item(operation_in_hand& o, const std::string& item_id) {
  auto& item = o.items[item_id];
  item.created = true;
  item.row.operation = o.row.id;
  item.row.item_id = item_id;
  item.row.state = o.table->initial();
  std::int64_t before = 0;
  for (const auto& [state, count] : o.items_by_state) before += count;
  item.row.ordinal = static_cast<std::int32_t>(before);
  ++o.items_by_state[item.row.state];
  return item;
}

item_result batch::decide_item(const callback& c, operation_in_hand& o, const std::vector<const item_news*>& said,
                               std::vector<item_step>& steps) {
  // One element that nobody understands may contradict the others: none of the item's is applied before it is mended.
  const auto bad = std::find_if(said.begin(), said.end(), [](const auto* one) { return !one->understood(); });
  auto* item = found_.find_item(o, said.front()->item_id);
  if (!item && !said.front()->item_id.empty() && bad == said.end()) {
    std::int64_t total = 0;
    for (const auto& [state, count] : o.items_by_state) total += count;
    // Where nobody registered the operation, nobody could name its items either.
    if (!o.row.client.empty() || total >= static_cast<std::int64_t>(items_in_callback_max))
      return for_review(transition::review_kind::unknown_item, "the operation has no such item");
    item = &add_item(o, said.front()->item_id);
  }
  item_result out;
  if (bad != said.end()) {
    out = not_understood(**bad);
    if (item) out.state = item->row.state;
    return out;
  }
  const auto news = worth_deciding(said);
  out.state = item->row.state;
  if (news.empty()) return out;

  transition::subject now;
  now.state = item->row.state;
  now.watermark_at = item->row.watermark_at;
  now.watermark_sequence = item->row.watermark_sequence;
  std::vector<transition::news> all;
  all.reserve(news.size());
  for (const auto* one : news) all.push_back(news_of(*one, c.received_at));
  const auto& table = table_of(o, *c.settings);
  const auto together = transition::decide_together(table, now, all, c.provider->order);
  if (together.contradicts || results_contradict(news)) {
    out = for_review(transition::review_kind::contradiction, "what the callback says of it contradicts itself");
    out.state = item->row.state;
    return out;
  }
  std::vector<disposition> words;
  for (const auto i : together.order) {
    const auto d = transition::decide(table, now, std::nullopt, all[i], c.provider->order);
    note(c, d);
    words.push_back(d.outcome);
    if (d.outcome == disposition::review) {
      out.attention = transition::to_string(d.why_review);
      out.detail = "event '" + std::string(all[i].event) + "' in state '" + std::string(now.state) + "'";
    }
    if (!d.taken) continue;
    steps.push_back({item, d.taken, news[i]});
    now.state = d.taken->to;
    now.watermark_sequence = transition::watermark_after(now.watermark_sequence, all[i].sequence);
  }
  out.outcome = transition::combined(words);
  out.state = now.state;
  return out;
}

batch::items_decision batch::decide_each_item(const callback& c, operation_in_hand& o) {
  std::vector<std::vector<const item_news*>> by_item;
  std::unordered_map<std::string_view, std::size_t> place;
  const auto only = c.replay ? std::span<const std::size_t>(c.replay->items) : std::span<const std::size_t>();
  std::vector<std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < c.items.size(); ++i) {
    if (!only.empty() && std::find(only.begin(), only.end(), i) == only.end()) continue;
    const auto& one = c.items[i];
    // An element without an identity stands for itself.
    const auto [known, fresh] =
        one.item_id.empty() ? std::pair(place.end(), true) : place.try_emplace(one.item_id, by_item.size());
    if (fresh) {
      by_item.push_back({&one});
      places.push_back({i});
    } else {
      by_item[known->second].push_back(&one);
      places[known->second].push_back(i);
    }
  }
  items_decision out;
  for (std::size_t i = 0; i < by_item.size(); ++i) {
    auto result = decide_item(c, o, by_item[i], out.steps);
    result.item_id = by_item[i].front()->item_id;
    result.index = places[i].front();
    if (is_failed(result)) out.left_out.insert(out.left_out.end(), places[i].begin(), places[i].end());
    out.results.push_back(std::move(result));
  }
  std::sort(out.left_out.begin(), out.left_out.end());
  return out;
}

void batch::decide_items(const callback& c, operation_in_hand& o, verdict& v, const storage::parked_row* waited) {
  table_of(o, *c.settings);
  const auto items = decide_each_item(c, o);
  std::optional<transition::decision> own;
  if (!c.event.empty()) own = judge(c, o);
  std::vector<disposition> words;
  if (own) words.push_back(own->outcome);
  for (const auto& r : items.results) words.push_back(r.outcome);
  auto word = transition::combined(words);
  // What it says is on record with its key, whatever could be understood of it.
  if (!transition::claims_key(word)) word = disposition::partial;
  const auto shape = config::shape_of(c.provider->answers, word);
  auto text = write_item_results(items.results);

  if (c.replay && !c.replay->met) {
    still_left_ = items.left_out;
    replay_closes_ = replay_closes_ && still_left_.empty();
  }
  if (own) note(c, *own);
  // Reviews belong to the fact of the delivery; each move that follows is a fact of its own, the operation's own too.
  record_delivery(c, o, to_string(word), shape.status, std::nullopt, nullptr, waited, text);
  if (own && own->outcome == disposition::review)
    open_review(c, o, transition::to_string(own->why_review), nullptr, "event '" + c.event + "' in state '" + o.row.state + "'");
  review_items(c, o, items);
  if (own && own->taken) {
    take_own_move(c, o, *own->taken);
    record_step(c, o, *own->taken, o.row.version, {}, c.result);
  }
  record_items(c, o, items);
  keep_failed_items(c, items, shape.status, waited != nullptr);
  claim_key(c, o, word, shape.status, shape.body, waited, text);

  v.outcome = outcome_of(o);
  v.outcome.disposition = word;
  v.outcome.delivery = c.id;
  v.outcome.status = shape.status;
  v.outcome.body = shape.body;
  v.outcome.items = std::move(text);
}

void batch::review_items(const callback& c, operation_in_hand& o, const items_decision& items) {
  for (const auto& r : items.results)
    if (r.outcome == disposition::review) open_review(c, o, r.attention, nullptr, r.detail, &r);
}

void batch::record_items(const callback& c, operation_in_hand& o, const items_decision& items) {
  for (const auto& step : items.steps) record_item_step(c, o, step);
  mark_items(c, o, items.results);
  if (!items.steps.empty()) move_by_items(o, *c.settings, {transition::actor_kind::provider, c.provider->name, c.id});
}

void batch::move_item(operation_in_hand& o, item_in_hand& item, const transition::move& taken) {
  --o.items_by_state[item.row.state];
  ++o.items_by_state[taken.to];
  item.row.state = taken.to;
  ++item.row.version;
  item.row.attention.reset();
  item.row.attention_detail.reset();
  item.row.attention_delivery.reset();
  item.row.attention_at.reset();
  item.changed = true;
}

void batch::record_item_step(const callback& c, operation_in_hand& o, const item_step& step) {
  auto& item = *step.item;
  move_item(o, item, *step.taken);
  const auto at = transition::believable(step.said->occurred_at, c.received_at);
  if (at && (!item.row.watermark_at || *item.row.watermark_at < *at)) item.row.watermark_at = at;
  item.row.watermark_sequence = transition::watermark_after(item.row.watermark_sequence, step.said->sequence);
  if (!step.said->result.empty()) item.row.result = step.said->result;
  record_step(c, o, *step.taken, item.row.version, item.row.item_id, step.said->result);
}

void batch::record_step(const callback& c, operation_in_hand& o, const transition::move& taken, std::int32_t version,
                        const std::string& item_id, const std::string& result) {
  evidence::item_moved fact;
  fact.sequence = o.row.sequence + 1;
  fact.at = at_;
  fact.provider = c.provider->name;
  fact.delivery = c.id;
  fact.move.event = taken.event;
  fact.move.from = taken.from;
  fact.move.to = taken.to;
  fact.move.version = version;
  fact.move.item_id = item_id;
  fact.move.result = result;
  append_audit(o, evidence::item_fact(fact), c.id);

  storage::transition_row t;
  t.operation = o.row.id;
  t.sequence = o.row.sequence;
  t.version = version;
  if (!item_id.empty()) t.item_id = item_id;
  t.event = taken.event;
  t.from = taken.from;
  t.to = taken.to;
  t.at = at_;
  t.actor_kind = to_string(transition::actor_kind::provider);
  t.actor = c.provider->name;
  t.delivery = c.id;
  t.result = result;
  t.notifications = notify(*c.settings, o, (item_id.empty() ? "operation." : "item.") + taken.to);
  writes_.new_transitions.add(t);
}

void batch::mark_items(const callback& c, operation_in_hand& o, const std::vector<item_result>& results) {
  for (const auto& r : results) {
    if (r.attention.empty()) continue;
    auto* item = r.item_id.empty() ? nullptr : found_.find_item(o, r.item_id);
    if (!item) continue;
    item->row.attention = r.attention;
    item->row.attention_detail = r.detail;
    item->row.attention_delivery = c.id;
    item->row.attention_at = at_;
    item->changed = true;
  }
}

void batch::keep_failed_items(const callback& c, const items_decision& items, int status, bool waited) {
  const auto& results = items.results;
  const auto first = std::find_if(results.begin(), results.end(), is_failed);
  // The failed callback that is replayed stays, with what is still left of it.
  if (first == results.end() || (c.replay && !c.replay->met)) return;
  auto& f = found_.failed[failed_key_of(c)];
  const bool counted = std::exchange(group_failed_, group_ != nullptr);
  // Nothing of these bytes was understood before, and now some of it is: that one is done, and what is left is another.
  const bool overtaken = !c.part && !c.replay && !f.row.id.is_nil() && !f.closed && !f.created && f.row.left_out.empty();
  if (overtaken) {
    writes_.resent_failed.add(failed_name_of(c), c.id, at_, false);
  } else if (!f.row.id.is_nil() && !f.closed) {
    // What waited came with the request that is counted already.
    if (!counted && !waited) ++f.times;
    list_left(f, {c.part, c.id, items.left_out, place_of(*c.provider)});
    return;
  }
  // What was signed of it is remembered with what is left of it.
  const auto signed_as = overtaken ? f.row.signed_as : std::vector<storage::failed_signed>();
  const auto signed_digest = overtaken ? f.row.signed_digest : std::nullopt;
  f = {};
  const auto more = std::count_if(first, results.end(), is_failed) - 1;
  f.created = true;
  f.row.id = make_id<failed_callback_id>(at_);
  f.row.provider = c.provider->name;
  f.row.body_digest = c.body_digest;
  f.row.key_beside = c.key_beside;
  f.row.disposition = transition::to_string(first->outcome);
  f.row.reason = "item_" + f.row.disposition;
  f.row.detail =
      (first->item_id.empty() ? "element " + std::to_string(first->index) : "item " + first->item_id) + ": " + first->detail;
  if (more > 0) f.row.detail += "; and " + std::to_string(more) + " more";
  f.row.delivery = c.id;
  if (!c.request_id.empty()) f.row.request_id = c.request_id;
  if (!c.event_raw.empty()) f.row.event = c.event_raw;
  f.row.answer_status = status;
  f.row.head = c.head;
  f.row.signed_digest = signed_digest;
  f.row.signed_as = signed_as;
  for (const auto& known : signed_as) writes_.new_signed_contents.add(f.row.id, known.digest, known.unsigned_key, at_);
  if (group_) group_made_ = &f;
  f.left.push_back({c.part, c.id, items.left_out, place_of(*c.provider)});
}

void batch::move_by_items(operation_in_hand& o, const config::settings& settings, const mover& by) {
  const auto* taken = transition::decide_by_items(table_of(o, settings), o.row.state, o.items_by_state);
  if (!taken) return;
  o.row.state = taken->to;
  o.row.state_at = at_;
  ++o.row.version;
  look_up_in_state(settings, o);

  evidence::items_moved fact;
  fact.sequence = o.row.sequence + 1;
  fact.at = at_;
  fact.who = by.who;
  fact.actor = by.actor;
  fact.delivery = by.delivery;
  fact.move.event = taken->event;
  fact.move.from = taken->from;
  fact.move.to = taken->to;
  fact.move.version = o.row.version;
  append_audit(o, evidence::items_fact(fact), by.delivery);

  storage::transition_row t;
  t.operation = o.row.id;
  t.sequence = o.row.sequence;
  t.version = o.row.version;
  t.event = taken->event;
  t.from = taken->from;
  t.to = taken->to;
  t.at = at_;
  t.actor_kind = to_string(by.who);
  t.actor = by.actor;
  t.delivery = by.delivery;
  t.notifications = notify(settings, o, "operation." + taken->to);
  writes_.new_transitions.add(t);
}

}  // namespace recibo::record
