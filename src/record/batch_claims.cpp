// Which key a callback claims, and what is its claim already: by key, and by what was signed where the key is not (R3, R15).
#include "batch.hpp"

#include <algorithm>
#include <cassert>

namespace recibo::record {

using transition::disposition;

storage::key_row* batch::claim_of(const callback& c, operation_in_hand& o) {
  // What was signed comes first: the key beside it is anybody's to write, and may be that of another callback.
  if (c.signed_digest) {
    const auto same = [&](const auto& one) { return one.second.signed_digest == c.signed_digest; };
    const auto by_content = std::find_if(o.keys.begin(), o.keys.end(), same);
    if (by_content != o.keys.end()) return &by_content->second;
    const auto seen = o.signed_as.find(*c.signed_digest);
    const auto by_seen = seen == o.signed_as.end() ? o.keys.end() : o.keys.find(seen->second);
    if (by_seen != o.keys.end()) return &by_seen->second;
  }
  const auto by_key = o.keys.find(c.key);
  return by_key == o.keys.end() ? nullptr : &by_key->second;
}

const std::string* batch::earlier_key(const callback& c, const operation_in_hand& o, const storage::key_row* claim) {
  if (claim != nullptr && claim->key != c.key) return &claim->key;
  // Where a key means one thing for all operations, the claim may be another one's.
  const auto seen = c.signed_digest ? o.signed_as.find(*c.signed_digest) : o.signed_as.end();
  return seen == o.signed_as.end() || seen->second == c.key ? nullptr : &seen->second;
}

void batch::remember_signed(const sha256_digest& digest, operation_in_hand& o, const std::string& key) {
  const auto claim = o.keys.find(key);
  if (claim != o.keys.end() && claim->second.signed_digest == digest) return;
  if (o.signed_as.emplace(digest, key).second) writes_.new_signed_contents.add(o.row.id, digest, key, at_);
}

void batch::remember_failed(const callback& c, operation_in_hand& o) {
  if (!c.signed_digest) return;
  const auto failed = found_.failed.find(failed_key_of(c));
  if (failed == found_.failed.end() || failed->second.row.id.is_nil()) return;
  const auto* const claim = claim_of(c, o);
  const std::string key = claim ? claim->key : c.key;
  const auto& row = failed->second.row;
  if (row.signed_digest) remember_signed(signed_with_key(c, *row.signed_digest), o, key);
  for (const auto& again : row.signed_again) remember_signed(signed_with_key(c, again), o, key);
}

// What was signed was refused as a conflict before, under whatever key: that nobody has used this one changes nothing.
review_in_hand* batch::conflict_of(const callback& c, operation_in_hand& o) {
  if (!c.signed_digest) return nullptr;
  const std::string kind(transition::to_string(transition::review_kind::conflict));
  for (auto at = found_.reviews.lower_bound({o.row.id, kind, sha256_digest{}, std::string()}); at != found_.reviews.end(); ++at) {
    if (std::get<0>(at->first) != o.row.id || std::get<1>(at->first) != kind) break;
    if (at->second.row.signed_digest == c.signed_digest) return &at->second;
  }
  return nullptr;
}

transition::decision batch::judge(const callback& c, operation_in_hand& o) {
  std::optional<transition::claim> earlier;
  const auto* const claim = claim_of(c, o);
  const bool refused_before = claim == nullptr && c.signed_digest && o.signed_as.contains(*c.signed_digest);
  const bool conflicted =
      refused_before || ((claim == nullptr || claim->signed_digest != c.signed_digest) && conflict_of(c, o) != nullptr);
  // Another operation's answer is never given, whatever the contents are.
  if (conflicted || (claim == nullptr && found_.foreign_claim(c, o.row.id) != nullptr)) {
    transition::decision again;
    again.outcome = disposition::conflict;
    return again;
  }
  if (claim != nullptr) earlier = transition::claim{claim->content_digest};
  return transition::decide(table_of(o, *c.settings), subject_of(o), earlier, news_of(c), c.provider->order);
}

void batch::claim_key(const callback& c, operation_in_hand& o, disposition d, int status, const std::optional<std::string>& body,
                      const storage::parked_row* waited, std::string items) {
  assert(transition::claims_key(d));
  storage::key_row k;
  k.operation = o.row.id;
  k.key = c.key;
  k.delivery = c.id;
  k.content_digest = c.content_digest;
  k.body_digest = c.body_digest;
  k.signed_digest = c.signed_digest;
  if (waited) {
    k.payload = waited->payload;
  } else if (c.replay && c.replay->part) {
    k.payload = c.replay->payload;
  } else if (group_payload_ && group_ && *group_payload_ != c.id) {
    k.payload = group_payload_;
  }
  k.disposition = to_string(d);
  k.state = o.row.state;
  k.answer_status = status;
  k.answer_body = body;
  if (c.provider->scope == config::key_scope::provider) k.provider = c.provider->name;
  if (c.provider->keep_keys) k.expires_at = at_ + *c.provider->keep_keys;
  if (!items.empty()) k.answer_items = std::move(items);
  writes_.new_keys.add(k);
  if (k.provider) found_.provider_claims.emplace(std::pair{*k.provider, k.key}, k);
  o.keys.emplace(c.key, std::move(k));
}

}  // namespace recibo::record
