// The batch's looks: what has to be locked and read, and taking what came back.
#include "batch.hpp"

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

bool goes_to_failed(const callback& c) { return c.unprocessable.has_value() || c.event.empty(); }

}  // namespace

batch::batch(std::vector<const work*> works, workflow_cache& workflows, bool careful)
    : works_(std::move(works)), verdicts_(works_.size()), workflows_(workflows), careful_(careful) {
  for (const auto* w : works_) {
    if (const auto* c = std::get_if<callback>(w)) {
      if (goes_to_failed(*c)) {
        failed_names_.push_back({c->provider->name, c->body_digest});
        continue;
      }
      for (const auto& r : c->references) aliases_.push_back({c->provider->name, r});
      if (!c->request_id.empty()) {
        request_ids_.push_back(c->request_id);
        keys_.push_back({c->request_id, c->key});
      } else {
        for (const auto& r : c->references) lock_aliases_.push_back({c->provider->name, r});
      }
    } else if (const auto* r = std::get_if<registration>(w)) {
      request_ids_.push_back(r->request_id);
      for (const auto& a : r->references) aliases_.push_back({r->provider, a});
      if (r->idempotency_key) client_keys_.push_back({r->client, *r->idempotency_key});
    } else if (const auto* e = std::get_if<event>(w)) {
      request_ids_.push_back(e->request_id);
      if (e->idempotency_key) client_keys_.push_back({e->actor, *e->idempotency_key});
    } else if (const auto* p = std::get_if<payload_access>(w)) {
      if (!p->request_id.empty()) request_ids_.push_back(p->request_id);
    }
  }
  sort_unique(request_ids_, std::less<>());
  sort_unique(aliases_);
  sort_unique(lock_aliases_);
  sort_unique(keys_, [](const auto& a, const auto& b) { return std::tie(a.request_id, a.key) < std::tie(b.request_id, b.key); });
  sort_unique(client_keys_, [](const auto& a, const auto& b) { return std::tie(a.client, a.key) < std::tie(b.client, b.key); });
  sort_unique(failed_names_,
              [](const auto& a, const auto& b) { return std::tie(a.provider, a.body_digest) < std::tie(b.provider, b.body_digest); });
}

void batch::append_first_look(storage::checked_pipeline& to) {
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
  if (!client_keys_.empty()) {
    storage::append_find_client_keys(to, client_keys_);
    first_look_.push_back(look::client_keys);
  }
  if (!failed_names_.empty()) {
    storage::append_find_failed(to, failed_names_);
    first_look_.push_back(look::failed);
  }
  storage::append_any_failed(to);
  first_look_.push_back(look::any_failed);
}

void batch::take_first_look(std::vector<postgres::rows>& answers, std::size_t at) {
  std::vector<storage::key_row> keys;
  const auto take_operations = [&](const postgres::rows& from) {
    for (auto& row : storage::read_operations(from)) {
      if (by_request_id_.contains(row.request_id)) continue;
      auto& o = operations_.emplace_back();
      o.locked_revision = row.revision;
      o.row = std::move(row);
      by_request_id_.emplace(o.row.request_id, &o);
      by_id_.emplace(o.row.id, &o);
    }
  };
  for (const auto what : first_look_) {
    const auto& from = answers.at(at++);
    switch (what) {
      case look::lock:
      case look::lock_alias: take_operations(from); break;
      case look::aliases:
        for (auto& row : storage::read_aliases(from)) alias_rows_.insert_or_assign({row.provider, row.alias}, std::move(row));
        break;
      case look::keys: keys = storage::read_keys(from); break;
      case look::client_keys:
        for (auto& row : storage::read_client_keys(from)) client_key_rows_.insert_or_assign({row.client, row.key}, std::move(row));
        break;
      case look::failed:
        for (auto& row : storage::read_failed(from)) {
          const std::pair<std::string, sha256_digest> name{row.provider, row.body_digest};
          failed_[name].row = std::move(row);
        }
        break;
      case look::any_failed: any_failed_ = from.boolean(0, 0); break;
      case look::existing:
      case look::workflows:
      case look::alias_keys:
      case look::reviews: break;
    }
  }
  for (auto& k : keys) {
    if (const auto o = by_id_.find(k.operation); o != by_id_.end()) o->second->keys.emplace(k.key, std::move(k));
  }
}

bool batch::append_second_look(storage::checked_pipeline& to) {
  for (const auto* w : works_) {
    if (const auto* c = std::get_if<callback>(w)) {
      if (goes_to_failed(*c)) continue;
      if (auto* o = find_for(*c)) {
        if (c->request_id.empty()) alias_keys_.push_back({o->row.id, c->key});
        const auto claim = o->keys.find(c->key);
        if (claim != o->keys.end() && claim->second.content_digest != c->content_digest)
          conflicts_.push_back({o->row.id, to_string(transition::review_kind::conflict), c->content_digest});
      } else if (!c->request_id.empty() && !find(c->request_id)) {
        missing_.push_back(c->request_id);
      }
    } else if (const auto* e = std::get_if<event>(w)) {
      if (!find(e->request_id)) missing_.push_back(e->request_id);
    } else if (const auto* r = std::get_if<registration>(w)) {
      if (careful_ && !find(r->request_id)) missing_.push_back(r->request_id);
    } else if (const auto* p = std::get_if<payload_access>(w)) {
      if (!p->request_id.empty() && !find(p->request_id)) missing_.push_back(p->request_id);
    }
  }
  const config::settings none;
  for (auto& o : operations_) {
    if (!workflows_.find(o.row.workflow, none)) unknown_workflows_.push_back(o.row.workflow);
  }
  sort_unique(missing_, std::less<>());
  sort_unique(unknown_workflows_, std::less<>());

  if (!missing_.empty()) {
    storage::append_existing(to, missing_);
    second_look_.push_back(look::existing);
  }
  if (!unknown_workflows_.empty()) {
    storage::append_find_workflows(to, unknown_workflows_);
    second_look_.push_back(look::workflows);
  }
  if (!alias_keys_.empty()) {
    storage::append_find_operation_keys(to, alias_keys_);
    second_look_.push_back(look::alias_keys);
  }
  // A key of an alias-found operation may be claimed with other content: its conflicts are looked up on suspicion.
  for (const auto* w : works_) {
    const auto* c = std::get_if<callback>(w);
    if (!c || goes_to_failed(*c) || !c->request_id.empty()) continue;
    if (auto* o = find_for(*c)) conflicts_.push_back({o->row.id, to_string(transition::review_kind::conflict), c->content_digest});
  }
  if (!conflicts_.empty()) {
    storage::append_find_reviews(to, conflicts_);
    second_look_.push_back(look::reviews);
  }
  return !second_look_.empty();
}

result<void> batch::take_second_look(std::vector<postgres::rows>& answers, std::size_t at) {
  for (const auto what : second_look_) {
    const auto& from = answers.at(at++);
    switch (what) {
      case look::existing: existing_ = storage::read_existing(from); break;
      case look::workflows:
        for (int i = 0; i < from.size(); ++i) {
          auto table = transition::workflow::parse(from.text(i, 1));
          if (!table) return error(transient::our_fault, "a stored workflow cannot be read");
          workflows_.add(std::make_shared<const transition::workflow>(std::move(*table)));
          workflows_.mark_stored(from.int8(i, 0));
        }
        break;
      case look::alias_keys:
        for (auto& k : storage::read_keys(from)) {
          if (const auto o = by_id_.find(k.operation); o != by_id_.end()) o->second->keys.emplace(k.key, std::move(k));
        }
        break;
      case look::reviews:
        for (auto& r : storage::read_reviews(from)) reviews_.insert_or_assign({r.operation, r.kind, r.digest}, std::pair{std::move(r), 0});
        break;
      case look::lock:
      case look::lock_alias:
      case look::aliases:
      case look::keys:
      case look::client_keys:
      case look::failed:
      case look::any_failed: break;
    }
  }
  std::sort(existing_.begin(), existing_.end());
  return {};
}

batch::in_hand* batch::find(std::string_view request_id) {
  const auto it = by_request_id_.find(request_id);
  return it == by_request_id_.end() ? nullptr : it->second;
}

batch::in_hand* batch::find_for(const callback& c) {
  if (!c.request_id.empty()) {
    auto* o = find(c.request_id);
    return o && o->row.provider == c.provider->name ? o : nullptr;
  }
  for (const auto& r : c.references) {
    if (const auto* a = find_alias(c.provider->name, r)) {
      const auto o = by_id_.find(a->operation);
      if (o != by_id_.end()) return o->second;
    }
  }
  return nullptr;
}

bool batch::exists(std::string_view request_id) const { return std::binary_search(existing_.begin(), existing_.end(), request_id, std::less<>()); }

const storage::alias_row* batch::find_alias(std::string_view provider, std::string_view alias) const {
  const auto it = alias_rows_.find(std::pair<std::string, std::string>(provider, alias));
  return it == alias_rows_.end() ? nullptr : &it->second;
}

const storage::client_key_row* batch::find_client_key(std::string_view client, std::string_view key) const {
  const auto it = client_key_rows_.find(std::pair<std::string, std::string>(client, key));
  return it == client_key_rows_.end() ? nullptr : &it->second;
}

}  // namespace recibo::record
