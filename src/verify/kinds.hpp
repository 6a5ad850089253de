// What the generic verifier and the schemes with code of their own share.
#pragma once

#include "recibo/verify/foreign_key.hpp"
#include "recibo/verify/verifier.hpp"

#include "mac.hpp"
#include "prepared.hpp"
#include "reading.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace recibo::verify {

// permanent::timestamp_malformed, timestamp_stale. Ages in whole units of the format, as providers' libraries compare them.
result<void> judge_time(timestamp_format format, std::optional<std::chrono::seconds> tolerance, std::string_view text,
                        sys_micros now);

// nullopt: not in the encoding.
std::optional<std::string> decode_signature(signature_encoding how, std::string_view text);

// Whether `one` may be tried at all: valid now, and not empty.
inline bool usable(const named_secret& one, sys_micros now) noexcept { return !one.key.empty() && one.valid_at(now); }

// The kinds with code of their own; each as verify() for its kind.
result<std::string> verify_plaid(const scheme& how, reading& from, const keyring& keys, sys_micros now,
                                 const fetched_key* fetched);
result<std::string> verify_sns(const scheme& how, reading& from, const keyring& keys, sys_micros now, const fetched_key* fetched);
result<std::string> verify_http_signatures(const scheme& how, reading& from, const keyring& keys, sys_micros now);

// What they ask for.
// Whether the token is whole and holds the hash of another body than the one beside it.
bool plaid_speaks_of_other_body(reading& from);
result<std::optional<needed_key>> plaid_key(const scheme& how, reading& from, const keyring& keys, sys_micros now);
result<std::optional<needed_key>> sns_key(reading& from, const keyring& keys, sys_micros now);

// A key ID that can stand in a path and in a cache as it is.
bool is_key_id(std::string_view id) noexcept;

// The fetched key for `needed`; permanent::signature_mismatch: it has expired, transient::not_ready: it was not given.
result<public_key_ptr> take_fetched(const needed_key& needed, const fetched_key* fetched, sys_micros now);

}  // namespace recibo::verify
