#include "park.hpp"

#include "found.hpp"
#include "recibo/config/answers.hpp"

#include <algorithm>

namespace recibo::record {

using transition::disposition;

park::park(std::vector<const work*> works) : verdicts_(works.size()) {
  for (const auto* w : works) {
    const auto& c = std::get<callback>(*w);
    callbacks_.push_back(&c);
    auto& locks = locks_of_.emplace_back();
    if (c.signed_digest) signed_.push_back({c.provider->name, *c.signed_digest});
    if (!c.request_id.empty()) {
      names_.push_back({{false, c.provider->name, c.request_id}, c.key});
      locks.push_back(names_.back().name.lock_key());
      request_ids_.push_back(c.request_id);
    }
    for (const auto& r : c.references) {
      names_.push_back({{true, c.provider->name, r}, c.key});
      locks.push_back(names_.back().name.lock_key());
      aliases_.push_back({c.provider->name, r});
    }
    locks_.insert(locks_.end(), locks.begin(), locks.end());
  }
  std::sort(locks_.begin(), locks_.end());
  locks_.erase(std::unique(locks_.begin(), locks_.end()), locks_.end());
}

void park::append_first_look(storage::checked_pipeline& to) {
  storage::append_try_locks(to, locks_);
  storage::append_existing(to, request_ids_);
  storage::append_find_aliases(to, aliases_);
  storage::append_find_parked_keys(to, names_);
  std::vector<storage::identity_name> all;
  for (const auto& n : names_) all.push_back(n.name);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  storage::append_count_parked(to, all);
  if (!signed_.empty()) storage::append_find_parked_signed(to, signed_);
}

void park::take_first_look(std::vector<postgres::rows>& answers, std::size_t at) {
  refused_ = storage::read_refused_locks(answers.at(at));
  existing_ = storage::read_existing(answers.at(at + 1));
  known_aliases_ = storage::read_aliases(answers.at(at + 2));
  take_parked(storage::read_parked(answers.at(at + 3)));
  for (auto& counted : storage::read_parked_counts(answers.at(at + 4))) counts_[std::move(counted.name)] = counted.count;
  if (!signed_.empty()) take_parked(storage::read_parked(answers.at(at + 5)));
}

void park::take_parked(std::vector<storage::parked_row> found) {
  for (auto& row : found) {
    auto& rows = parked_[{row.provider, row.key}];
    // It comes once for each name and callback that asked for it.
    if (std::any_of(rows.begin(), rows.end(), [&](const auto& w) { return w.row.id == row.id; })) continue;
    rows.push_back({std::move(row), 0});
  }
}

void park::decide(sys_micros at) {
  for (std::size_t i = 0; i < callbacks_.size(); ++i) {
    const auto& c = *callbacks_[i];
    auto& v = verdicts_[i];
    const bool locked = std::none_of(locks_of_[i].begin(), locks_of_[i].end(),
                                     [&](auto key) { return std::binary_search(refused_.begin(), refused_.end(), key); });
    if (!locked) {
      v.is = verdict::kind::busy;
      continue;
    }
    const auto* row = c.request_id.empty() ? nullptr : storage::find_existing(existing_, c.request_id);
    const bool by_alias = c.request_id.empty() && std::any_of(known_aliases_.begin(), known_aliases_.end(), [&](const auto& a) {
                            return a.provider == c.provider->name &&
                                   std::find(c.references.begin(), c.references.end(), a.alias) != c.references.end();
                          });
    if ((row && row->provider == c.provider->name) || by_alias) {
      v.is = verdict::kind::known;
      continue;
    }
    v.is = verdict::kind::decided;
    decide_one(c, v, at);
  }
}

bool park::share_a_name(const callback& c, const storage::parked_row& p) {
  if (!c.request_id.empty() && p.request_id == c.request_id) return true;
  return std::any_of(c.references.begin(), c.references.end(),
                     [&](const auto& r) { return std::find(p.references.begin(), p.references.end(), r) != p.references.end(); });
}

bool park::is_full(const callback& c) const {
  const auto names = names_of(c);
  return std::any_of(names.begin(), names.end(), [&](const auto& name) {
    const auto counted = counts_.find(name);
    return counted != counts_.end() && counted->second >= c.provider->parking.per_identity;
  });
}

park::waiting* park::known_as(const callback& c) {
  // What was signed comes first: the key beside it is anybody's to write, and may be that of another callback.
  if (c.signed_digest) {
    for (auto& [name, rows] : parked_) {
      if (name.first != c.provider->name) continue;
      for (auto& w : rows)
        if (w.row.signed_digest == c.signed_digest && share_a_name(c, w.row)) return &w;
    }
  }
  auto& rows = parked_[{c.provider->name, c.key}];
  const auto same = std::find_if(rows.begin(), rows.end(), [&](const auto& w) {
    return w.row.content_digest == c.content_digest && share_a_name(c, w.row);
  });
  return same == rows.end() ? nullptr : &*same;
}

void park::decide_one(const callback& c, verdict& v, sys_micros at) {
  auto& rows = parked_[{c.provider->name, c.key}];
  v.outcome.request_id = c.request_id;
  if (auto* const same = known_as(c)) {
    ++same->times;
    v.outcome.disposition = transition::parse_disposition(same->row.disposition).value_or(disposition::parked);
    v.outcome.replayed = v.outcome.disposition == disposition::parked;
    v.outcome.delivery = same->row.id;
    v.outcome.status = same->row.answer_status;
    if (v.outcome.replayed) {
      // Evidence of the repetition (R27), like a claimed key's.
      if (same->row.duplicates + same->times <= duplicates_recorded_max) {
        callback again = c;
        again.key = same->row.key;
        record_delivery(again, to_string(disposition::duplicate), same->row.answer_status,
                        same->row.body_digest == c.body_digest ? same->row.id : c.id);
      }
      v.outcome.body = config::shape_of(c.provider->answers, disposition::parked).body;
    } else {
      v.outcome.detail = "the key was used before with other content; the first stands";
    }
    return;
  }
  if (is_full(c)) {
    // One identity that nobody registers must not fill the table (R43). Not kept, so that it is no success.
    const auto shape = config::shape_of(c.provider->answers, disposition::unknown_operation);
    v.outcome.disposition = disposition::unknown_operation;
    v.outcome.detail = "no operation with this identity is registered, and as many callbacks as are kept wait for it";
    v.outcome.delivery = c.id;
    v.outcome.status = shape.status;
    v.outcome.body = shape.body;
    return;
  }
  for (auto& name : names_of(c)) ++counts_[std::move(name)];
  // Another content under a key that waits already: kept beside it, a conflict now and a review once it is applied (R15).
  const bool claimed = std::any_of(rows.begin(), rows.end(), [&](const auto& w) { return share_a_name(c, w.row); });
  const auto word = claimed ? disposition::conflict : disposition::parked;
  const auto shape = config::shape_of(c.provider->answers, word);
  auto& p = rows.emplace_back().row;
  p.id = c.id;
  p.provider = c.provider->name;
  p.identity = c.request_id.empty() ? "a" + c.references.front() : "r" + c.request_id;
  p.key = c.key;
  p.disposition = to_string(word);
  p.content_digest = c.content_digest;
  p.body_digest = c.body_digest;
  p.signed_digest = c.signed_digest;
  if (!c.request_id.empty()) p.request_id = c.request_id;
  p.references = c.references;
  p.event = c.event;
  p.event_raw = c.event_raw;
  p.result = c.result;
  p.secret = c.secret_name;
  p.occurred_at = c.occurred_at;
  p.provider_sequence = c.sequence;
  if (c.amount) p.amount = c.amount->text;
  p.currency = c.currency;
  p.account = c.account;
  p.answer_status = shape.status;
  p.parked_at = at;
  new_parked_.add(p, c.references);
  record_delivery(c, p.disposition, shape.status, c.id);
  v.outcome.disposition = word;
  v.outcome.delivery = c.id;
  v.outcome.status = shape.status;
  v.outcome.body = shape.body;
  if (word == disposition::conflict) v.outcome.detail = "the key was used before with other content; the first stands";
}

void park::record_delivery(const callback& c, std::string_view disposition, int status, delivery_id payload) {
  auto d = delivery_of(c);
  d.disposition = disposition;
  if (!c.request_id.empty()) d.request_id = c.request_id;
  d.payload = payload;
  d.answer_status = status;
  new_deliveries_.add(d);
  if (payload == c.id) new_payloads_.add(c.id, c.body, c.content_type);
}

void park::append_writes(storage::checked_pipeline& to) {
  storage::repeated_parked repeated;
  for (const auto& [name, rows] : parked_)
    for (const auto& w : rows)
      if (w.times > 0) repeated.add(w.row.id, w.times);
  std::move(new_deliveries_.rows).append_to(to);
  std::move(new_payloads_.rows).append_to(to);
  std::move(new_parked_.rows).append_to(to);
  std::move(new_parked_.identities).append_to(to);
  std::move(repeated.rows).append_to(to);
}

}  // namespace recibo::record
