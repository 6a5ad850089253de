// What a work names, and by which keys it may be known already.
#include "found.hpp"

#include <algorithm>
#include <utility>

namespace recibo::record {

namespace {

// `key` of `c` with these parts where it has its unsigned ones; empty: they are of another configuration.
std::string key_with(const callback& c, std::string_view unsigned_parts) {
  std::string out;
  for (std::size_t i = 0; i < c.key_frame.size(); ++i) {
    out += c.key_frame[i];
    if (i + 1 == c.key_frame.size()) break;
    const auto field = canonical_field(unsigned_parts);
    if (field.empty()) return {};
    out += field;
    unsigned_parts.remove_prefix(field.size());
  }
  return unsigned_parts.empty() ? out : std::string();
}

}  // namespace

std::optional<std::string> first_key_of(const callback& c, const storage::failed_row& failed) {
  if (!c.signed_digest || c.key_frame.empty()) return std::nullopt;
  for (const auto& known : failed.signed_as) {
    if (signed_with_key(c, known.digest) != *c.signed_digest) continue;
    auto key = key_with(c, known.unsigned_key);
    return key.empty() || key == c.key ? std::nullopt : std::optional(std::move(key));
  }
  return std::nullopt;
}

failed_key failed_key_of(const callback& c) { return {c.provider->name, c.body_digest, c.key_beside}; }

storage::failed_name failed_name_of(const callback& c) { return {c.provider->name, c.body_digest, c.key_beside}; }

sha256_digest signed_with_key(const callback& c, const sha256_digest& signed_of_it) {
  canonical own;
  own.add(binary(signed_of_it));
  return sha256(c.signed_parts + own.bytes());
}

bool has_failed_items(const std::vector<item_news>& items) {
  return std::any_of(items.begin(), items.end(), [](const auto& i) { return !i.understood(); });
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

}  // namespace recibo::record
