#include "found.hpp"

#include <algorithm>
#include <tuple>

namespace recibo::record {
namespace {

template <class T, class Less>
void sort_unique(std::vector<T>& values, Less less) {
  std::sort(values.begin(), values.end(), less);
  const auto same = [&](const T& a, const T& b) { return !less(a, b) && !less(b, a); };
  values.erase(std::unique(values.begin(), values.end(), same), values.end());
}

void sort_unique(std::vector<storage::alias_name>& names) {
  sort_unique(names, [](const auto& a, const auto& b) { return std::tie(a.provider, a.alias) < std::tie(b.provider, b.alias); });
}

void sort_unique(std::vector<storage::provider_key_name>& names) {
  sort_unique(names, [](const auto& a, const auto& b) { return std::tie(a.provider, a.key) < std::tie(b.provider, b.key); });
}

bool goes_to_failed(const callback& c) { return c.unprocessable.has_value() || c.event.empty(); }

}  // namespace

found::found(const std::vector<const work*>& works, workflow_cache& workflows, bool careful)
    : works_(works), workflows_(workflows), careful_(careful) {
  for (const auto* w : works_) {
    if (const auto* c = std::get_if<callback>(w)) {
      if (goes_to_failed(*c)) {
        failed_names_.push_back({c->provider->name, c->body_digest});
        continue;
      }
      for (const auto& r : c->references) aliases_.push_back({c->provider->name, r});
      for (const auto& r : c->unproven_references) aliases_.push_back({c->provider->name, r});
      if (c->provider->unmatched == config::unmatched::register_)
        for (auto& name : names_of(*c)) meeting_.push_back(std::move(name));
      if (c->provider->scope == config::key_scope::provider) provider_keys_.push_back({c->provider->name, c->key});
      if (!c->request_id.empty()) {
        request_ids_.push_back(c->request_id);
        keys_.push_back({c->request_id, c->key});
      } else {
        for (const auto& r : c->references) lock_aliases_.push_back({c->provider->name, r});
      }
    } else if (const auto* r = std::get_if<registration>(w)) {
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
    } else if (const auto* change = std::get_if<workflow_change>(w)) {
      request_ids_.push_back(change->request_id);
    } else if (const auto* m = std::get_if<rematch>(w)) {
      request_ids_.push_back(m->request_id);
      rematched_.push_back(m->request_id);
    }
  }
  sort_unique(meeting_, std::less<>());
  sort_unique(request_ids_, std::less<>());
  sort_unique(aliases_);
  sort_unique(lock_aliases_);
  sort_unique(keys_, [](const auto& a, const auto& b) { return std::tie(a.request_id, a.key) < std::tie(b.request_id, b.key); });
  sort_unique(provider_keys_);
  sort_unique(client_keys_, [](const auto& a, const auto& b) { return std::tie(a.client, a.key) < std::tie(b.client, b.key); });
  sort_unique(failed_names_, [](const auto& a, const auto& b) {
    return std::tie(a.provider, a.body_digest) < std::tie(b.provider, b.body_digest);
  });
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
  }
  if (!meeting_.empty()) {
    storage::append_find_parked(to, meeting_);
    first_look_.push_back(look::parked);
  }
  if (!rematched_.empty()) {
    storage::append_find_parked_of(to, rematched_);
    first_look_.push_back(look::parked_of);
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
        const std::pair<std::string, sha256_digest> name{row.provider, row.body_digest};
        failed[name].row = std::move(row);
      }
      break;
    case look::any_failed: any_failed = from.boolean(0, 0); break;
    case look::parked:
    case look::parked_of:
      for (auto& row : storage::read_parked(from)) {
        auto& p = parked[{row.disposition == to_string(transition::disposition::conflict), row.id}];
        if (!row.matched.empty()) p.matched.push_back({row.matched_reference, row.provider, row.matched});
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
    case look::reviews:
      for (auto& r : storage::read_reviews(from)) {
        // A resolved one is done: the same again opens a new one. A conflict is kept once, whatever became of it.
        if (!r.open && r.kind != to_string(transition::review_kind::conflict)) continue;
        const std::tuple name{r.operation, r.kind, r.digest, r.key};
        reviews.insert_or_assign(name, review_in_hand{std::move(r), 0});
      }
      break;
  }
}

void found::take_first_look(std::vector<postgres::rows>& answers, std::size_t at) {
  for (const auto what : first_look_) take(what, answers.at(at++));
  take_keys();
}

void found::plan_next_look() {
  const auto learn_for = [&](const operation_in_hand& o, const std::vector<std::string>& references) {
    for (auto& name : unknown_references(o.row.provider, references)) learning_.push_back(std::move(name));
  };
  const auto miss = [&](std::string_view request_id) {
    if (!request_id.empty() && !find(request_id)) missing_.push_back(request_id);
  };
  for (const auto* w : works_) {
    if (const auto* c = std::get_if<callback>(w)) {
      if (goes_to_failed(*c)) continue;
      auto* o = find_for(*c);
      if (!o) {
        miss(c->request_id);
        continue;
      }
      learn_for(*o, c->references);
      const auto claim = o->keys.find(c->key);
      // A key of an operation that was found by alias is not read yet: its conflicts are looked up on suspicion.
      if (c->request_id.empty()) alias_keys_.push_back({o->row.id, c->key});
      if (c->signed_digest) signed_names_.push_back({o->row.id, *c->signed_digest});
      const bool may_conflict = c->request_id.empty() || c->signed_digest || foreign_claim(*c, o->row.id) ||
                                (claim != o->keys.end() && claim->second.content_digest != c->content_digest);
      if (may_conflict || o->row.review_open) conflicts_.push_back({o->row.id, c->content_digest, c->signed_digest});
    } else if (const auto* e = std::get_if<event>(w)) {
      miss(e->request_id);
      if (const auto* o = find(e->request_id)) {
        if (!e->references.empty()) learn_for(*o, e->references);
        if (e->changes && !o->row.corrected) intents_.emplace_back(o->row.id, 0);
      }
    } else if (const auto* r = std::get_if<registration>(w)) {
      if (careful_) miss(r->request_id);
      // What a callback registered is filled in by the client's own registration.
      const auto* o = find(r->request_id);
      if (o && o->row.made_by && !o->row.corrected) intents_.emplace_back(o->row.id, 0);
    } else if (const auto* p = std::get_if<payload_access>(w)) {
      miss(p->request_id);
    } else if (const auto* change = std::get_if<workflow_change>(w)) {
      miss(change->request_id);
      if (auto* o = find(change->request_id); o && !o->item_states) {
        o->item_states.emplace();
        item_states_.push_back(o->row.id);
      }
    } else if (const auto* m = std::get_if<rematch>(w)) {
      miss(m->request_id);
    }
  }
  const config::settings none;
  for (const auto& o : operations) {
    if (!workflows_.find(o.row.workflow, none)) unknown_workflows_.push_back(o.row.workflow);
    if (o.row.corrected) intents_.emplace_back(o.row.id, *o.row.corrected);
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
    for (const auto& o : operations) {
      if (!waits_for(p.row, o.row.provider, o.row.request_id)) continue;
      alias_keys_.push_back({o.row.id, p.row.key});
      if (p.row.signed_digest) signed_names_.push_back({o.row.id, *p.row.signed_digest});
      conflicts_.push_back({o.row.id, p.row.content_digest, p.row.signed_digest});
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
  }
  if (!conflicts_.empty()) {
    storage::append_find_reviews(to, conflicts_);
    next_look_.push_back(look::reviews);
  }
  // Nothing to ask in the second look may still leave something for the third.
  return !next_look_.empty() || (looks_ == 2 && append_next_look(to));
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

std::vector<storage::identity_name> names_of(const callback& c) {
  std::vector<storage::identity_name> out;
  if (!c.request_id.empty()) out.push_back({false, c.provider->name, c.request_id});
  for (const auto& reference : c.references) out.push_back({true, c.provider->name, reference});
  return out;
}

std::vector<storage::identity_name> names_of(const registration& r) {
  std::vector<storage::identity_name> out;
  out.push_back({false, r.provider, r.request_id});
  for (const auto& reference : r.references) out.push_back({true, r.provider, reference});
  return out;
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
