#include "park.hpp"

#include "found.hpp"
#include "group.hpp"
#include "items_text.hpp"
#include "recibo/config/answers.hpp"
#include "recibo/record/left_out.hpp"
#include "recibo/record/listed.hpp"
#include "sort_unique.hpp"

#include <algorithm>

namespace recibo::record {

using transition::disposition;

park::park(std::vector<const work*> works) : works_(std::move(works)), verdicts_(works_.size()) {
  for (const auto* w : works_) for_each_callback(*w, [this](const callback& c) { want(c); });
  std::sort(locks_.begin(), locks_.end());
  locks_.erase(std::unique(locks_.begin(), locks_.end()), locks_.end());
  sort_unique(failed_names_);
}

void park::want(const callback& c) {
  auto& w = wanted_.emplace_back();
  w.what = &c;
  if (c.replay || c.signed_digest) failed_names_.push_back(failed_name_of(c));
  if (!c.understood() || c.event == "ignore") return;
  if (c.signed_digest) signed_.push_back({c.provider->name, *c.signed_digest});
  if (!c.request_id.empty()) {
    names_.push_back({{false, c.provider->name, c.request_id}, c.key});
    w.locks.push_back(names_.back().name.lock_key());
    request_ids_.push_back(c.request_id);
  }
  for (const auto& r : c.references) {
    names_.push_back({{true, c.provider->name, r}, c.key});
    w.locks.push_back(names_.back().name.lock_key());
    aliases_.push_back({c.provider->name, r});
  }
  locks_.insert(locks_.end(), w.locks.begin(), w.locks.end());
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
  storage::append_any_failed(to);
  if (!signed_.empty()) storage::append_find_parked_signed(to, signed_);
  if (failed_names_.empty()) return;
  storage::append_find_failed(to, failed_names_);
  storage::append_find_failed_signed(to, failed_names_);
}

void park::take_first_look(std::vector<postgres::rows>& answers, std::size_t at) {
  refused_ = storage::read_refused_locks(answers.at(at));
  existing_ = storage::read_existing(answers.at(at + 1));
  known_aliases_ = storage::read_aliases(answers.at(at + 2));
  take_parked(storage::read_parked(answers.at(at + 3)));
  for (auto& counted : storage::read_parked_counts(answers.at(at + 4))) counts_[std::move(counted.name)] = counted.count;
  any_failed_ = answers.at(at + 5).boolean(0, 0);
  std::size_t next = at + 6;
  if (!signed_.empty()) take_parked(storage::read_parked(answers.at(next++)));
  if (failed_names_.empty()) return;
  still_failed_ = storage::read_failed(answers.at(next));
  for (const auto& signed_of_it : storage::read_failed_signed(answers.at(next + 1)))
    for (auto& f : still_failed_)
      if (f.id == signed_of_it.id) f.signed_as.push_back(signed_of_it.what);
}

void park::take_parked(std::vector<storage::parked_row> found) {
  for (auto& row : found) {
    auto& rows = parked_[{row.provider, row.key}];
    // It comes once for each name and callback that asked for it.
    if (std::any_of(rows.begin(), rows.end(), [&](const auto& w) { return w.row.id == row.id; })) continue;
    rows.push_back({std::move(row), 0});
  }
}

park::meaning park::meaning_of(const wanted& w) const {
  const auto& c = *w.what;
  // What cannot be understood, or is ignored, needs no operation: a batch deals with it.
  if (!c.understood() || c.event == "ignore") return meaning::known;
  const bool held = std::any_of(w.locks.begin(), w.locks.end(),
                                [&](auto key) { return std::binary_search(refused_.begin(), refused_.end(), key); });
  if (held) return meaning::locked;
  const auto* row = c.request_id.empty() ? nullptr : storage::find_existing(existing_, c.request_id);
  const bool by_alias = c.request_id.empty() && std::any_of(known_aliases_.begin(), known_aliases_.end(), [&](const auto& a) {
                          return a.provider == c.provider->name &&
                                 std::find(c.references.begin(), c.references.end(), a.alias) != c.references.end();
                        });
  return (row && row->provider == c.provider->name) || by_alias ? meaning::known : meaning::absent;
}

void park::decide(sys_micros at) {
  std::size_t next = 0;
  for (std::size_t i = 0; i < works_.size(); ++i) {
    auto& v = verdicts_[i];
    if (const auto* g = std::get_if<callback_group>(works_[i])) {
      decide_group(*g, next, v, at);
      continue;
    }
    const auto& w = wanted_[next++];
    switch (meaning_of(w)) {
      case meaning::locked: v.is = verdict::kind::busy; break;
      case meaning::known: v.is = verdict::kind::known; break;
      case meaning::absent:
        if (w.what->replay) {
          decide_replay(*w.what, v, at);
          break;
        }
        v.is = verdict::kind::decided;
        v.outcome = decide_one(*w.what, at);
        if (!has_failed_items(w.what->items)) close_resent(*w.what, v.outcome, at);
        break;
    }
  }
}

void park::decide_replay(const callback& c, verdict& v, sys_micros at) {
  const auto open =
      std::find_if(still_failed_.begin(), still_failed_.end(), [&](const auto& f) { return f.id == c.replay->failed; });
  if (open == still_failed_.end()) {
    v.is = verdict::kind::refused;
    v.why = error(permanent::already_resolved, "this failed callback is done: replayed, sent again or discarded");
    return;
  }
  auto left = left_of(open->left_out, *c.replay);
  const auto mine = replayed_part(left, *c.replay, place_of(*c.provider));
  if (mine == left.end() || mine->items != c.replay->items) {
    v.is = verdict::kind::refused;
    v.why = error(permanent::already_resolved, "this event of the failed callback is done");
    return;
  }
  // Once in a plan: what is left of it is written once.
  if (std::find(tried_.begin(), tried_.end(), open->id) != tried_.end()) {
    v.is = verdict::kind::busy;
    return;
  }
  replay_closes_ = left.size() == 1;
  v.is = verdict::kind::decided;
  v.outcome = decide_one(c, at);
  if (v.outcome.disposition == disposition::unknown_operation) {
    // Not kept among those that wait, so it stays where it is.
    const auto word = to_string(disposition::unknown_operation);
    auto tried = replay_of(c, at);
    tried.delivery = open->delivery;
    tried.disposition = word;
    tried.closes = false;
    new_replays_.add(tried);
    tried_failed_.add(open->id, at, open->disposition, word, v.outcome.detail, open->left_out);
    tried_.push_back(open->id);
    return;
  }
  if (c.replay->new_delivery) new_deliveries_.add(failed_delivery_of(c, *open));
  left.erase(mine);
  if (!left.empty()) {
    tried_failed_.add(open->id, at, open->disposition, open->reason, open->detail, write_left_out(left));
    tried_.push_back(open->id);
    return;
  }
  closed_failed_.add(c.replay->failed);
  still_failed_.erase(open);
}

void park::close_resent(const callback& c, const outcome& decided, sys_micros at) {
  if (!any_failed_ || decided.disposition == disposition::unknown_operation) return;
  resent_failed_.add(failed_name_of(c), c.id, at, decided.replayed);
}

void park::decide_group(const callback_group& g, std::size_t& at_wanted, verdict& v, sys_micros at) {
  const auto first = at_wanted;
  bool locked = false, all = true;
  for (std::size_t i = 0; i < g.parts.size(); ++i) {
    if (is_settled(g, i)) continue;
    const auto means = meaning_of(wanted_[at_wanted++]);
    locked = locked || means == meaning::locked;
    all = all && means == meaning::absent;
  }
  if (locked) {
    v.is = verdict::kind::busy;
    return;
  }
  group_ = &g;
  group_payload_ = g.payload;
  v.settled = g.settled;
  v.settled.resize(g.parts.size());
  auto next = first;
  for (std::size_t i = 0; i < g.parts.size(); ++i) {
    if (is_settled(g, i)) continue;
    const auto& w = wanted_[next++];
    if (meaning_of(w) != meaning::absent) continue;
    v.settled[i] = decide_one(*w.what, at);
  }
  group_ = nullptr;
  v.payload = group_payload_;
  v.is = all ? verdict::kind::decided : verdict::kind::known;
  if (!all) return;
  std::vector<outcome> outcomes;
  for (auto& one : v.settled) outcomes.push_back(std::move(*one));
  const bool kept = std::none_of(outcomes.begin(), outcomes.end(),
                                 [](const auto& one) { return one.disposition == disposition::unknown_operation; });
  const bool whole = std::none_of(g.parts.begin(), g.parts.end(), [](const auto& c) { return has_failed_items(c.items); });
  v.outcome = combine(g, std::move(outcomes));
  if (kept && whole) close_resent(g.parts.front(), v.outcome, at);
}

delivery_id park::keep_payload(const callback& c) {
  if (!group_) {
    new_payloads_.add(c.id, c.body, c.content_type);
    return c.id;
  }
  if (!group_payload_) {
    group_payload_ = c.id;
    new_payloads_.add(c.id, group_->body, group_->content_type);
  }
  return *group_payload_;
}

bool park::share_a_name(const callback& c, const storage::parked_row& p) {
  // Two request IDs are two operations, whatever reference both carry: whose that is will be seen (R34).
  if (!c.request_id.empty() && p.request_id) return p.request_id == c.request_id;
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

bool park::was_signed(const storage::parked_row& p, const sha256_digest& digest) {
  return p.signed_digest == digest || std::find(p.signed_again.begin(), p.signed_again.end(), digest) != p.signed_again.end();
}

park::waiting* park::known_as(const callback& c) {
  // What was signed comes first: the key beside it is anybody's to write, and may be that of another callback.
  if (c.signed_digest) {
    for (auto& [name, rows] : parked_) {
      if (name.first != c.provider->name) continue;
      for (auto& w : rows)
        if (was_signed(w.row, *c.signed_digest) && share_a_name(c, w.row)) return &w;
    }
  }
  auto& rows = parked_[{c.provider->name, c.key}];
  const auto same = std::find_if(rows.begin(), rows.end(), [&](const auto& w) {
    return same_content(w.row.content_digest, c.content_digest, c.key) && share_a_name(c, w.row);
  });
  return same == rows.end() ? nullptr : &*same;
}

outcome park::decide_one(const callback& c, sys_micros at) {
  for (const auto& f : still_failed_) {
    if (c.replay || failed_key(f.provider, f.body_digest, f.key_beside) != failed_key_of(c)) continue;
    auto first = first_key_of(c, f);
    if (!first) continue;
    callback again = c;
    again.key = std::move(*first);
    return decide_one(again, at);
  }
  outcome out;
  auto& rows = parked_[{c.provider->name, c.key}];
  out.request_id = c.request_id;
  if (auto* const same = known_as(c)) {
    if (c.signed_digest && !was_signed(same->row, *c.signed_digest)) {
      same->row.signed_again.push_back(*c.signed_digest);
      new_signed_contents_.add(same->row.id, *c.signed_digest, same->row.key, at);
    }
    remember_failed(c, same->row, at);
    if (c.replay) {
      record_replay(c, to_string(disposition::duplicate), at);
    } else {
      ++same->times;
    }
    out.disposition = transition::parse_disposition(same->row.disposition).value_or(disposition::parked);
    out.replayed = out.disposition == disposition::parked;
    out.delivery = same->row.id;
    out.status = same->row.answer_status;
    if (out.replayed) {
      out.body = config::shape_of(c.provider->answers, disposition::parked).body;
      if (c.replay) return out;
      // Evidence of the repetition (R27), like a claimed key's.
      if (same->row.duplicates + same->times <= duplicates_recorded_max) {
        callback again = c;
        again.key = same->row.key;
        std::optional<delivery_id> payload;
        if (same->row.body_digest == c.body_digest) payload = same->row.payload.value_or(same->row.id);
        record_delivery(again, to_string(disposition::duplicate), same->row.answer_status, payload);
      }
    } else {
      out.detail = "the key was used before with other content; the first stands";
    }
    return out;
  }
  if (is_full(c)) {
    // One identity that nobody registers must not fill the table (R43). Not kept, so that it is no success.
    const auto shape = config::shape_of(c.provider->answers, disposition::unknown_operation);
    out.disposition = disposition::unknown_operation;
    out.detail = "no operation with this identity is registered, and as many callbacks as are kept wait for it";
    // Of several events of one request those that are not kept have no delivery to name.
    if (!group_) out.delivery = c.id;
    out.status = shape.status;
    out.body = shape.body;
    return out;
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
  p.key_beside = c.key_beside;
  if (c.part) p.part = static_cast<std::int32_t>(*c.part);
  if (has_failed_items(c.items)) p.head = c.head;
  p.signed_digest = c.signed_digest;
  if (!c.request_id.empty()) p.request_id = c.request_id;
  p.references = c.references;
  p.event = c.event;
  p.event_raw = c.event_raw;
  p.result = c.result;
  p.items = write_item_news(c.items);
  p.secret = c.secret_name;
  p.occurred_at = c.occurred_at;
  p.provider_sequence = c.sequence;
  if (c.amount) p.amount = c.amount->text;
  p.currency = c.currency;
  p.account = c.account;
  p.answer_status = shape.status;
  p.parked_at = at;
  if (c.replay) {
    p.replay =
        storage::parked_row::replayed{record_replay(c, p.disposition, at), c.replay->failed, c.replay->actor, c.replay->reason};
  } else {
    record_delivery(c, p.disposition, shape.status, std::nullopt);
  }
  if (group_payload_ && group_ && *group_payload_ != c.id) p.payload = group_payload_;
  if (c.replay && c.replay->part) p.payload = c.replay->payload;
  new_parked_.add(p, c.references);
  remember_failed(c, p, at);
  out.disposition = word;
  out.delivery = c.id;
  out.status = shape.status;
  out.body = shape.body;
  if (word == disposition::conflict) out.detail = "the key was used before with other content; the first stands";
  return out;
}

void park::remember_failed(const callback& c, storage::parked_row& p, sys_micros at) {
  if (!c.signed_digest) return;
  const auto add = [&](const sha256_digest& signed_of_it) {
    const auto digest = signed_with_key(c, signed_of_it);
    if (was_signed(p, digest)) return;
    p.signed_again.push_back(digest);
    new_signed_contents_.add(p.id, digest, p.key, at);
  };
  for (const auto& f : still_failed_) {
    if (failed_key(f.provider, f.body_digest, f.key_beside) != failed_key_of(c)) continue;
    if (f.signed_digest) add(*f.signed_digest);
    for (const auto& known : f.signed_as) add(known.digest);
  }
}

void park::record_delivery(const callback& c, std::string_view disposition, int status, std::optional<delivery_id> payload) {
  auto d = delivery_of(c);
  d.disposition = disposition;
  if (!c.request_id.empty()) d.request_id = c.request_id;
  d.payload = payload ? *payload : keep_payload(c);
  d.answer_status = status;
  new_deliveries_.add(d);
}

storage::replay_id park::record_replay(const callback& c, std::string_view disposition, sys_micros at) {
  auto r = replay_of(c, at);
  r.disposition = disposition;
  r.closes = replay_closes_;
  new_replays_.add(r);
  return r.id;
}

void park::append_writes(storage::checked_pipeline& to) {
  storage::repeated_parked repeated;
  for (const auto& [name, rows] : parked_)
    for (const auto& w : rows)
      if (w.times > 0) repeated.add(w.row.id, w.times);
  std::move(new_deliveries_.rows).append_to(to);
  std::move(new_payloads_.rows).append_to(to);
  std::move(closed_failed_.rows).append_to(to);
  std::move(resent_failed_.rows).append_to(to);
  std::move(tried_failed_.rows).append_to(to);
  std::move(new_replays_.rows).append_to(to);
  std::move(new_parked_.rows).append_to(to);
  std::move(new_parked_.identities).append_to(to);
  std::move(new_signed_contents_.rows).append_to(to);
  std::move(repeated.rows).append_to(to);
}

}  // namespace recibo::record
