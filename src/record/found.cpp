#include "found.hpp"

#include "group.hpp"
#include "items_text.hpp"
#include "sort_unique.hpp"

#include <algorithm>
#include <tuple>

namespace recibo::record {
found::found(const std::vector<const work*>& works, workflow_cache& workflows, bool careful)
    : works_(works), workflows_(workflows), careful_(careful) {
  for (const auto* w : works_) {
    for_each_callback(*w, [this](const callback& c) { want(c); });
    if (const auto* r = std::get_if<registration>(w)) {
      request_ids_.push_back(r->request_id);
      for (const auto& a : r->references) aliases_.push_back({r->provider, a});
      for (auto& name : names_of(*r)) meeting_.push_back(std::move(name));
      if (r->idempotency_key) client_keys_.push_back({r->client, *r->idempotency_key});
    } else if (const auto* e = std::get_if<event>(w)) {
      request_ids_.push_back(e->request_id);
      if (e->idempotency_key) client_keys_.push_back({e->actor, *e->idempotency_key});
      // The provider of its references is the operation's, which only the lock tells: they are looked up second.
    } else if (const auto* p = std::get_if<payload_access>(w)) {
      if (!p->request_id.empty()) request_ids_.push_back(p->request_id);
    } else if (const auto* l = std::get_if<look_up>(w)) {
      request_ids_.push_back(l->request_id);
    } else if (const auto* change = std::get_if<workflow_change>(w)) {
      request_ids_.push_back(change->request_id);
    } else if (const auto* m = std::get_if<rematch>(w)) {
      request_ids_.push_back(m->request_id);
      rematched_.push_back(m->request_id);
    } else if (const auto* a = std::get_if<review_action>(w)) {
      if (!a->request_id.empty()) request_ids_.push_back(a->request_id);
      if (a->idempotency_key) client_keys_.push_back({a->actor, *a->idempotency_key});
      acted_on_.push_back(a->review);
    } else if (const auto* t = std::get_if<timer_due>(w)) {
      request_ids_.push_back(t->request_id);
    } else if (const auto* late = std::get_if<review_due>(w)) {
      if (!late->request_id.empty()) request_ids_.push_back(late->request_id);
      acted_on_.push_back(late->review);
    } else if (const auto* d = std::get_if<discard>(w)) {
      failed_names_.push_back({d->provider, d->body_digest, d->key_beside});
    } else if (const auto* o = std::get_if<parked_review>(w)) {
      growing_old_.push_back(o->parked);
    }
  }
  sort_unique(acted_on_, std::less<>());
  sort_unique(growing_old_, std::less<>());
  sort_unique(meeting_, std::less<>());
  sort_unique(request_ids_, std::less<>());
  sort_unique(aliases_);
  sort_unique(lock_aliases_);
  sort_unique(keys_, [](const auto& a, const auto& b) { return std::tie(a.request_id, a.key) < std::tie(b.request_id, b.key); });
  sort_unique(provider_keys_);
  sort_unique(client_keys_, [](const auto& a, const auto& b) { return std::tie(a.client, a.key) < std::tie(b.client, b.key); });
  sort_unique(failed_names_);
}

// What a callback is looked up by.
void found::want(const callback& c) {
  const bool failed_before = c.replay || c.signed_digest || c.part;
  const bool fails = !c.understood() || has_failed_items(c.items);
  if (!c.looked_up && (failed_before || fails)) failed_names_.push_back(failed_name_of(c));
  if (c.event == "ignore" && !c.looked_up) return;
  if (!c.understood() && !c.looked_up) return;
  for (const auto& r : c.references) aliases_.push_back({c.provider->name, r});
  for (const auto& r : c.unproven_references) aliases_.push_back({c.provider->name, r});
  if (c.provider->unmatched == config::unmatched::register_)
    for (auto& name : names_of(c)) meeting_.push_back(std::move(name));
  if (c.provider->scope == config::key_scope::provider) provider_keys_.push_back({c.provider->name, c.key});
  if (!c.request_id.empty()) {
    request_ids_.push_back(c.request_id);
    keys_.push_back({c.request_id, c.key});
  } else {
    for (const auto& r : c.references) lock_aliases_.push_back({c.provider->name, r});
  }
}

void found::append_first_look(storage::checked_pipeline& to) {
  // First of all: what these names mean may be read in later statements only (rule 3).
  if (!meeting_.empty()) {
    for (const auto& name : meeting_) tried_locks_.push_back(name.lock_key());
    sort_unique(tried_locks_, std::less<>());
    storage::append_try_locks(to, tried_locks_);
    first_look_.push_back(look::meet);
  }
  if (!request_ids_.empty()) {
    storage::append_lock_by_request_id(to, request_ids_);
    first_look_.push_back(look::lock);
  }
  if (!lock_aliases_.empty()) {
    storage::append_lock_by_alias(to, lock_aliases_);
    first_look_.push_back(look::lock_alias);
  }
  if (!aliases_.empty()) {
    storage::append_find_aliases(to, aliases_);
    first_look_.push_back(look::aliases);
  }
  if (!keys_.empty()) {
    storage::append_find_keys(to, keys_);
    first_look_.push_back(look::keys);
  }
  if (!provider_keys_.empty()) {
    storage::append_find_provider_keys(to, provider_keys_);
    first_look_.push_back(look::provider_keys);
  }
  if (!client_keys_.empty()) {
    storage::append_find_client_keys(to, client_keys_);
    first_look_.push_back(look::client_keys);
  }
  if (!failed_names_.empty()) {
    storage::append_find_failed(to, failed_names_);
    first_look_.push_back(look::failed);
    storage::append_find_failed_signed(to, failed_names_);
    first_look_.push_back(look::failed_signed);
  }
  if (!meeting_.empty()) {
    storage::append_find_parked(to, meeting_);
    first_look_.push_back(look::parked);
  }
  if (!rematched_.empty()) {
    storage::append_find_parked_of(to, rematched_);
    first_look_.push_back(look::parked_of);
  }
  if (!growing_old_.empty()) {
    storage::append_lock_old_parked(to, growing_old_);
    first_look_.push_back(look::old_parked);
  }
  storage::append_any_failed(to);
  first_look_.push_back(look::any_failed);
}

void found::take(look what, const postgres::rows& from) {
  switch (what) {
    case look::meet:
      for (const auto key : storage::read_refused_locks(from)) refused_locks_.push_back(key);
      std::sort(refused_locks_.begin(), refused_locks_.end());
      break;
    case look::lock:
    case look::lock_alias:
      for (auto& row : storage::read_operations(from)) {
        if (by_request_id_.contains(row.request_id)) continue;
        auto& o = operations.emplace_back();
        o.locked_revision = row.revision;
        o.locked_state = row.state;
        o.locked_version = row.version;
        o.locked_workflow = row.workflow;
        o.row = std::move(row);
        by_request_id_.emplace(o.row.request_id, &o);
        by_id_.emplace(o.row.id, &o);
      }
      break;
    case look::aliases:
      for (auto& row : storage::read_aliases(from)) alias_rows_.insert_or_assign({row.provider, row.alias}, std::move(row));
      break;
    case look::keys:
    case look::alias_keys:
    case look::signed_keys:
      for (auto& k : storage::read_keys(from)) key_rows_.push_back(std::move(k));
      break;
    case look::signed_contents:
      for (auto& row : storage::read_signed_contents(from)) {
        const auto o = by_id_.find(row.operation);
        if (o != by_id_.end()) o->second->signed_as.emplace(row.digest, std::move(row.key));
      }
      break;
    case look::provider_keys:
      for (auto& k : storage::read_keys(from)) {
        std::pair name{k.provider.value_or(""), k.key};
        provider_claims.emplace(std::move(name), std::move(k));
      }
      break;
    case look::client_keys:
      for (auto& row : storage::read_client_keys(from)) client_key_rows_.insert_or_assign({row.client, row.key}, std::move(row));
      break;
    case look::failed:
      for (auto& row : storage::read_failed(from)) {
        const failed_key name(row.provider, row.body_digest, row.key_beside);
        failed[name].row = std::move(row);
      }
      break;
    case look::failed_signed:
      for (const auto& signed_of_it : storage::read_failed_signed(from)) {
        const auto owner =
            std::find_if(failed.begin(), failed.end(), [&](const auto& f) { return f.second.row.id == signed_of_it.id; });
        if (owner != failed.end()) owner->second.row.signed_as.push_back(signed_of_it.what);
      }
      break;
    case look::any_failed: any_failed = from.boolean(0, 0); break;
    case look::parked:
    case look::parked_of:
      for (auto& row : storage::read_parked(from)) {
        auto& p = parked[{row.disposition == to_string(transition::disposition::conflict), row.id}];
        if (!row.matched.empty()) p.matched.push_back({row.matched_reference, row.provider, row.matched});
        if (p.items.empty()) p.items = read_item_news(row.items);
        p.row = std::move(row);
      }
      break;
    case look::existing: existing_ = storage::read_existing(from); break;
    case look::workflows:
      for (int i = 0; i < from.size(); ++i) {
        auto table = transition::workflow::parse(from.text(i, 1));
        if (!table) continue;
        workflows_.add(std::make_shared<const transition::workflow>(std::move(*table)));
        workflows_.mark_stored(from.int8(i, 0));
      }
      break;
    case look::intents:
      for (auto& row : storage::read_intents(from)) {
        const auto it = by_id_.find(row.operation);
        if (it == by_id_.end()) continue;
        auto& o = *it->second;
        o.row.client = row.client;
        o.row.amount = row.amount;
        o.row.currency = row.currency;
        o.row.account = row.account;
        o.row.intent = row.intent;
        o.intent = std::move(row);
      }
      break;
    case look::item_states:
      for (auto& row : storage::read_item_states(from)) {
        const auto it = by_id_.find(row.operation);
        if (it != by_id_.end() && it->second->item_states) it->second->item_states->push_back(std::move(row.state));
      }
      break;
    case look::items:
      for (auto& row : storage::read_items(from)) {
        const auto o = by_id_.find(row.operation);
        if (o == by_id_.end()) continue;
        auto name = row.item_id;
        const auto version = row.version;
        o->second->items.emplace(std::move(name), item_in_hand{std::move(row), version});
      }
      break;
    case look::item_counts:
      for (const auto& row : storage::read_item_counts(from)) {
        const auto o = by_id_.find(row.operation);
        if (o != by_id_.end()) o->second->items_by_state[row.state] = row.count;
      }
      break;
    case look::reviews:
      for (auto& r : storage::read_reviews(from)) {
        // A resolved one is done: the same again opens a new one. A conflict is kept once, whatever became of it.
        if (!r.open && r.kind != to_string(transition::review_kind::conflict)) continue;
        const std::tuple name{r.operation, r.kind, r.digest, r.key};
        reviews.insert_or_assign(name, review_in_hand{std::move(r), 0});
      }
      break;
    case look::acted_reviews:
      for (auto& r : storage::read_acted_reviews(from)) acted_reviews_.insert_or_assign(r.id, std::move(r));
      break;
    case look::open_reviews:
      for (const auto& of : storage::read_open_reviews(from)) {
        if (const auto o = by_id_.find(of.operation); o != by_id_.end()) o->second->reviews_open = of.count;
      }
      break;
    case look::retries:
      for (auto& one : storage::read_retry_look_ups(from)) retries.insert_or_assign(one.operation, std::move(one));
      break;
    case look::timers:
      for (auto& t : storage::read_timers(from)) timers.insert_or_assign({t.operation, t.kind}, std::move(t));
      break;
    case look::downtimes: downtimes = storage::read_downtimes(from); break;
    case look::old_parked:
      for (auto& p : storage::read_old_parked(from)) old_parked.insert_or_assign(p.id, std::move(p));
      break;
  }
}

void found::take_first_look(std::vector<postgres::rows>& answers, std::size_t at) {
  for (const auto what : first_look_) take(what, answers.at(at++));
  take_keys();
}

result<void> found::take_next_look(std::vector<postgres::rows>& answers, std::size_t at) {
  for (const auto what : next_look_) take(what, answers.at(at++));
  take_keys();
  const config::settings none;
  for (const auto key : unknown_workflows_)
    if (!workflows_.find(key, none)) return error(transient::our_fault, "a stored workflow cannot be read");
  return {};
}

void found::take_keys() {
  for (auto& k : key_rows_) {
    const auto o = by_id_.find(k.operation);
    if (o == by_id_.end()) continue;
    auto key = k.key;
    o->second->keys.emplace(std::move(key), std::move(k));
  }
  key_rows_.clear();
}

operation_in_hand* found::find(std::string_view request_id) {
  const auto it = by_request_id_.find(request_id);
  return it == by_request_id_.end() ? nullptr : it->second;
}

operation_in_hand* found::find_for(const callback& c) {
  if (!c.request_id.empty()) {
    auto* o = find(c.request_id);
    return o && o->row.provider == c.provider->name ? o : nullptr;
  }
  // The first reference that is known decides, whether its operation is ours or busy: not the luck of the locks.
  for (const auto& r : c.references) {
    const auto* a = find_alias(c.provider->name, r);
    if (!a) continue;
    const auto o = by_id_.find(a->operation);
    return o == by_id_.end() ? nullptr : o->second;
  }
  return nullptr;
}

found::stranger found::meaning_of(const callback& c) const {
  // A request ID of another provider is unknown to this one; one that exists and was not locked is busy.
  if (!c.request_id.empty()) {
    if (by_request_id_.contains(c.request_id)) return stranger::elsewhere;
    if (exists_at(c.request_id, c.provider->name)) return stranger::busy;
    return exists(c.request_id) ? stranger::elsewhere : stranger::unknown;
  }
  const bool known = std::any_of(c.references.begin(), c.references.end(),
                                 [&](const auto& r) { return find_alias(c.provider->name, r) != nullptr; });
  return known ? stranger::busy : stranger::unknown;
}

bool found::exists(std::string_view request_id) const { return storage::find_existing(existing_, request_id) != nullptr; }

bool found::exists_at(std::string_view request_id, std::string_view provider) const {
  const auto* row = storage::find_existing(existing_, request_id);
  return row && row->provider == provider;
}

bool found::may_meet(const std::vector<storage::identity_name>& names) const {
  return std::all_of(names.begin(), names.end(), [&](const auto& name) {
    const auto key = name.lock_key();
    return std::binary_search(tried_locks_.begin(), tried_locks_.end(), key) &&
           !std::binary_search(refused_locks_.begin(), refused_locks_.end(), key);
  });
}

item_in_hand* found::find_item(operation_in_hand& o, std::string_view item_id) {
  const auto it = o.items.find(item_id);
  return it == o.items.end() ? nullptr : &it->second;
}

std::vector<storage::identity_name> found::unknown_references(std::string_view provider,
                                                              const std::vector<std::string>& references) const {
  std::vector<storage::identity_name> out;
  for (const auto& r : references)
    if (!find_alias(provider, r)) out.push_back({true, std::string(provider), r});
  return out;
}

const storage::alias_row* found::find_alias(std::string_view provider, std::string_view alias) const {
  const auto it = alias_rows_.find(std::pair<std::string, std::string>(provider, alias));
  return it == alias_rows_.end() ? nullptr : &it->second;
}

const storage::key_row* found::foreign_claim(const callback& c, const operation_id& o) const {
  if (c.provider->scope != config::key_scope::provider) return nullptr;
  const auto it = provider_claims.find({c.provider->name, c.key});
  return it == provider_claims.end() || it->second.operation == o ? nullptr : &it->second;
}

const storage::client_key_row* found::find_client_key(std::string_view client, std::string_view key) const {
  const auto it = client_key_rows_.find(std::pair<std::string, std::string>(client, key));
  return it == client_key_rows_.end() ? nullptr : &it->second;
}

storage::acted_review* found::find_review(review_id id) {
  const auto it = acted_reviews_.find(id);
  return it == acted_reviews_.end() ? nullptr : &it->second;
}

bool found::waits_for(const storage::parked_row& p, std::string_view provider, std::string_view request_id) {
  return p.provider == provider && (!p.request_id || *p.request_id == request_id);
}

bool found::may_apply(std::string_view provider, std::string_view request_id,
                      const std::vector<storage::identity_name>& names) const {
  return std::all_of(parked.begin(), parked.end(), [&](const auto& one) {
    const auto& p = one.second;
    if (p.applied || !waits_for(p.row, provider, request_id)) return true;
    const auto meant = [&](const auto& name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    if (!names.empty() && std::none_of(p.matched.begin(), p.matched.end(), meant)) return true;
    return may_meet(unknown_references(provider, p.row.references));
  });
}

operation_in_hand& found::add_operation(storage::operation_row row) {
  auto& o = operations.emplace_back();
  o.created = true;
  o.row = std::move(row);
  by_request_id_.emplace(o.row.request_id, &o);
  by_id_.emplace(o.row.id, &o);
  return o;
}

void found::add_alias(storage::alias_row row) {
  std::pair name{row.provider, row.alias};
  alias_rows_.emplace(std::move(name), std::move(row));
}

void found::add_client_key(storage::client_key_row row) {
  std::pair name{row.client, row.key};
  client_key_rows_.emplace(std::move(name), std::move(row));
}

}  // namespace recibo::record
