// What found asks after its first look: only what that left open.
#include "found.hpp"
#include "group.hpp"
#include "items_text.hpp"
#include "sort_unique.hpp"

namespace recibo::record {

void found::plan_next_look() {
  const auto learn_for = [&](const operation_in_hand& o, const std::vector<std::string>& references) {
    for (auto& name : unknown_references(o.row.provider, references)) learning_.push_back(std::move(name));
  };
  const auto miss = [&](std::string_view request_id) {
    if (!request_id.empty() && !find(request_id)) missing_.push_back(request_id);
  };
  const auto look_for = [&](const callback& c) {
    if ((!c.understood() || c.event == "ignore") && !c.looked_up) return;
    auto* o = find_for(c);
    if (!o) return miss(c.request_id);
    learn_for(*o, c.references);
    const auto claim = o->keys.find(c.key);
    // A key of an operation that was found by alias is not read yet: its conflicts are looked up on suspicion.
    if (c.request_id.empty()) alias_keys_.push_back({o->row.id, c.key});
    if (c.signed_digest) signed_names_.push_back({o->row.id, *c.signed_digest});
    if (const auto before = failed.find(failed_key_of(c)); before != failed.end()) {
      if (auto first = first_key_of(c, before->second.row)) {
        const auto& key = first_keys_.emplace_back(std::move(*first));
        alias_keys_.push_back({o->row.id, key});
        if (c.provider->scope == config::key_scope::provider) provider_keys_.push_back({c.provider->name, key});
      }
    }
    const bool may_conflict = c.request_id.empty() || c.signed_digest || foreign_claim(c, o->row.id) ||
                              (claim != o->keys.end() && claim->second.content_digest != c.content_digest);
    if (may_conflict || o->row.review_open) conflicts_.push_back({o->row.id, c.content_digest, c.signed_digest});
    plan_items(*o, c.items, c.content_digest);
  };
  for (const auto* w : works_) {
    for_each_callback(*w, look_for);
    if (const auto* e = std::get_if<event>(w)) {
      miss(e->request_id);
      if (const auto* o = find(e->request_id)) {
        if (!e->references.empty()) learn_for(*o, e->references);
        if (e->name == retry_event) retried_.push_back(o->row.id);
        if (e->changes && !o->row.corrected) intents_.emplace_back(o->row.id, 0);
        if (e->item_id) {
          item_names_.push_back({o->row.id, *e->item_id});
          counted_.push_back(o->row.id);
        }
      }
    } else if (const auto* r = std::get_if<registration>(w)) {
      if (careful_) miss(r->request_id);
      // What a callback registered is filled in by the client's own registration.
      const auto* o = find(r->request_id);
      if (o && o->row.made_by && !o->row.corrected) {
        intents_.emplace_back(o->row.id, 0);
        if (!r->items.empty()) counted_.push_back(o->row.id);
        for (const auto& item : r->items) item_names_.push_back({o->row.id, item.item_id});
      }
    } else if (const auto* p = std::get_if<payload_access>(w)) {
      miss(p->request_id);
    } else if (const auto* l = std::get_if<look_up>(w)) {
      miss(l->request_id);
    } else if (const auto* change = std::get_if<workflow_change>(w)) {
      miss(change->request_id);
      if (auto* o = find(change->request_id); o && !o->item_states) {
        o->item_states.emplace();
        item_states_.push_back(o->row.id);
      }
    } else if (const auto* m = std::get_if<rematch>(w)) {
      miss(m->request_id);
    } else if (const auto* a = std::get_if<review_action>(w)) {
      miss(a->request_id);
      if (const auto* o = find(a->request_id)) acting_for_.push_back(o->row.id);
    } else if (const auto* late = std::get_if<review_due>(w)) {
      miss(late->request_id);
    } else if (const auto* t = std::get_if<timer_due>(w)) {
      miss(t->request_id);
      if (const auto* o = find(t->request_id)) {
        running_out_.push_back(o->row.id);
        // What runs out may raise a retry; which event it is, is read with it.
        const auto of = t->settings->providers.find(o->row.provider);
        if (of != t->settings->providers.end() && of->second.status) retried_.push_back(o->row.id);
        // Both timers of one state are one exception.
        if (o->row.review_open) conflicts_.push_back({o->row.id, overdue_digest(o->row), std::nullopt});
      }
    }
  }
  const config::settings none;
  for (const auto& o : operations) {
    if (!workflows_.find(o.row.workflow, none)) unknown_workflows_.push_back(o.row.workflow);
    if (o.row.corrected) intents_.emplace_back(o.row.id, *o.row.corrected);
  }
}

// The items that it speaks of, how many there are of each state, and the reviews that it may have opened before.
void found::plan_items(const operation_in_hand& o, const std::vector<item_news>& items, const sha256_digest& content) {
  if (items.empty()) return;
  counted_.push_back(o.row.id);
  for (const auto& i : items) {
    if (i.item_id.empty()) continue;
    item_names_.push_back({o.row.id, i.item_id});
    if (o.row.review_open) conflicts_.push_back({o.row.id, item_digest(i.item_id, content), std::nullopt});
  }
}

// The references that parked callbacks bring are learned when they are applied.
void found::plan_parked_references() {
  for (const auto& [order, p] : parked)
    for (auto& name : unknown_references(p.row.provider, p.row.references)) learning_.push_back(std::move(name));
}

// What is parked for operations that exist is decided with the batch: its keys and reviews are needed too.
void found::plan_parked_look() {
  for (auto& [order, p] : parked) {
    p.keys_read = true;
    // Whether its provider's keys mean one thing for all operations is not known here; others have no such rows.
    provider_keys_.push_back({p.row.provider, p.row.key});
    if (has_failed_items(p.items) && !failed.contains({p.row.provider, p.row.body_digest, p.row.key_beside}))
      failed_later_.push_back({p.row.provider, p.row.body_digest, p.row.key_beside});
    for (const auto& o : operations) {
      if (!waits_for(p.row, o.row.provider, o.row.request_id)) continue;
      alias_keys_.push_back({o.row.id, p.row.key});
      if (p.row.signed_digest) signed_names_.push_back({o.row.id, *p.row.signed_digest});
      conflicts_.push_back({o.row.id, p.row.content_digest, p.row.signed_digest});
      plan_items(o, p.items, p.row.content_digest);
    }
  }
}

bool found::append_next_look(storage::checked_pipeline& to) {
  next_look_.clear();
  learning_.clear();
  missing_.clear();
  unknown_workflows_.clear();
  intents_.clear();
  item_states_.clear();
  alias_keys_.clear();
  signed_names_.clear();
  provider_keys_.clear();
  conflicts_.clear();
  item_names_.clear();
  counted_.clear();
  failed_later_.clear();
  acting_for_.clear();
  running_out_.clear();
  retried_.clear();
  switch (++looks_) {
    case 2:
      plan_next_look();
      plan_parked_references();
      break;
    // The second look may have found parked callbacks, under references that are about to be learned.
    case 3:
      plan_parked_look();
      plan_parked_references();
      break;
    default: return false;
  }
  sort_unique(missing_, std::less<>());
  sort_unique(unknown_workflows_, std::less<>());
  sort_unique(learning_, std::less<>());
  sort_unique(counted_, std::less<>());
  sort_unique(item_names_,
              [](const auto& a, const auto& b) { return std::tie(a.operation, a.item_id) < std::tie(b.operation, b.item_id); });
  sort_unique(failed_later_);
  sort_unique(acting_for_, std::less<>());

  if (!learning_.empty()) {
    std::vector<std::int64_t> locks;
    std::vector<storage::alias_name> names;
    for (const auto& name : learning_) {
      locks.push_back(name.lock_key());
      names.push_back({name.provider, name.identity});
    }
    sort_unique(locks, std::less<>());
    tried_locks_.insert(tried_locks_.end(), locks.begin(), locks.end());
    sort_unique(tried_locks_, std::less<>());
    storage::append_try_locks(to, locks);
    next_look_.push_back(look::meet);
    storage::append_find_aliases(to, names);
    next_look_.push_back(look::aliases);
    storage::append_find_parked(to, learning_);
    next_look_.push_back(look::parked);
  }
  if (!missing_.empty()) {
    storage::append_existing(to, missing_);
    next_look_.push_back(look::existing);
  }
  if (!unknown_workflows_.empty()) {
    storage::append_find_workflows(to, unknown_workflows_);
    next_look_.push_back(look::workflows);
  }
  if (!item_states_.empty()) {
    storage::append_find_item_states(to, item_states_);
    next_look_.push_back(look::item_states);
  }
  if (!intents_.empty()) {
    storage::append_find_intents(to, intents_);
    next_look_.push_back(look::intents);
  }
  if (!alias_keys_.empty()) {
    storage::append_find_operation_keys(to, alias_keys_);
    next_look_.push_back(look::alias_keys);
  }
  if (!provider_keys_.empty()) {
    sort_unique(provider_keys_);
    storage::append_find_provider_keys(to, provider_keys_);
    next_look_.push_back(look::provider_keys);
  }
  if (!signed_names_.empty()) {
    storage::append_find_signed_keys(to, signed_names_);
    next_look_.push_back(look::signed_keys);
    storage::append_find_signed_contents(to, signed_names_);
    next_look_.push_back(look::signed_contents);
  }
  if (!conflicts_.empty()) {
    storage::append_find_reviews(to, conflicts_);
    next_look_.push_back(look::reviews);
  }
  if (!item_names_.empty()) {
    storage::append_find_items(to, item_names_);
    next_look_.push_back(look::items);
  }
  if (!counted_.empty()) {
    storage::append_count_items(to, counted_);
    next_look_.push_back(look::item_counts);
  }
  if (!failed_later_.empty()) {
    storage::append_find_failed(to, failed_later_);
    next_look_.push_back(look::failed);
    storage::append_find_failed_signed(to, failed_later_);
    next_look_.push_back(look::failed_signed);
  }
  if (looks_ == 2 && !acted_on_.empty()) {
    storage::append_lock_reviews(to, acted_on_);
    next_look_.push_back(look::acted_reviews);
  }
  if (!acting_for_.empty()) {
    storage::append_count_open_reviews(to, acting_for_);
    next_look_.push_back(look::open_reviews);
  }
  if (!retried_.empty()) {
    sort_unique(retried_, std::less<>());
    storage::append_find_retry_look_ups(to, retried_);
    next_look_.push_back(look::retries);
  }
  if (!running_out_.empty()) {
    sort_unique(running_out_, std::less<>());
    storage::append_find_timers(to, running_out_);
    next_look_.push_back(look::timers);
    storage::append_find_downtimes(to, running_out_);
    next_look_.push_back(look::downtimes);
  }
  // Nothing to ask in the second look may still leave something for the third.
  return !next_look_.empty() || (looks_ == 2 && append_next_look(to));
}

}  // namespace recibo::record
