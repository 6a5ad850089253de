#include "recibo/verify/callback_token.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/verify/keyed_hash.hpp"

#include <cstdint>

namespace recibo::verify {
namespace {

constexpr char version = 1;
constexpr std::size_t expiry_size = 8, mac_size = 32, head_size = 1 + expiry_size + mac_size;

std::int64_t seconds_of(std::optional<sys_micros> at) {
  return at ? std::chrono::floor<std::chrono::seconds>(*at).time_since_epoch().count() : 0;
}

std::string written(std::int64_t seconds) {
  std::string out(expiry_size, '\0');
  auto rest = static_cast<std::uint64_t>(seconds);
  for (std::size_t i = expiry_size; i-- > 0; rest >>= 8) out[i] = static_cast<char>(rest & 0xff);
  return out;
}

std::int64_t read_seconds(std::string_view bytes) {
  std::uint64_t out = 0;
  for (const char c : bytes) out = out << 8 | static_cast<unsigned char>(c);
  return static_cast<std::int64_t>(out);
}

std::string mac_of(const named_secret& key, std::string_view provider, std::string_view request_id, std::string_view expiry) {
  canonical bytes;
  bytes.add("recibo.callback_token/1").add(provider).add(request_id).add(expiry);
  return keyed_hash(hash_name::sha256, key.text.reveal(), bytes.bytes());
}

bool is_usable(const named_secret& one, sys_micros now) { return one.valid_at(now) && !one.text.empty(); }

}  // namespace

std::string mint_callback_token(const keyring& keys, std::string_view provider, std::string_view request_id,
                                std::optional<sys_micros> expires, sys_micros now) {
  for (const named_secret& one : keys.secrets) {
    if (!is_usable(one, now)) continue;
    const std::string expiry = written(seconds_of(expires));
    std::string bytes(1, version);
    bytes.append(expiry).append(mac_of(one, provider, request_id, expiry)).append(request_id);
    return to_base64url(bytes);
  }
  return {};
}

result<callback_identity> verify_callback_token(const keyring& keys, std::string_view provider, std::string_view token,
                                                sys_micros now) {
  const error not_ours(permanent::signature_mismatch, "this callback URL was not made here for this provider");
  if (token.size() > callback_token_max) return not_ours;
  const auto bytes = from_base64url(token);
  // One spelling alone: padding, or bits that are thrown away, would make two URLs of one.
  if (!bytes || bytes->size() <= head_size || bytes->front() != version || to_base64url(*bytes) != token) return not_ours;
  const std::string_view all = *bytes;
  const std::string_view expiry = all.substr(1, expiry_size), mac = all.substr(1 + expiry_size, mac_size),
                         request_id = all.substr(head_size);
  const named_secret* made_by = nullptr;
  for (const named_secret& one : keys.secrets) {
    if (!is_usable(one, now)) continue;
    // Every secret computes, so that the time does not tell which one it was.
    if (equal_constant_time(mac, mac_of(one, provider, request_id, expiry)) && made_by == nullptr) made_by = &one;
  }
  if (made_by == nullptr) return not_ours;
  const std::int64_t until = read_seconds(expiry);
  if (until != 0 && seconds_of(now) >= until) return error(permanent::timestamp_stale, "this callback URL has expired");
  return callback_identity{std::string(request_id), made_by->name};
}

}  // namespace recibo::verify
