// Named SQL and row mapping of idempotency keys: those that callbacks claimed, and those of client requests.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"
#include "recibo/storage/signed_contents.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

struct client_key_name {
  std::string_view client, key;
};

// Claimed keys among these (operation by request ID, key) pairs; run it after the lock.
struct key_row {
  operation_id operation;
  std::string key;
  delivery_id delivery;
  sha256_digest content_digest{}, body_digest{};
  std::string disposition, state;
  std::int32_t answer_status = 200;
  std::optional<std::string> answer_body;
  std::int32_t duplicates = 0;
  // What names the callback beside its key, where the signature does not cover the key.
  std::optional<sha256_digest> signed_digest{};
  // Set under the scope [provider, key]: whose key it is; and when it may be swept, where it is not kept for good.
  std::optional<std::string> provider{};
  std::optional<sys_micros> expires_at{};
  // The delivery that the body is kept under, where it is another: several events came in one request.
  std::optional<delivery_id> payload{};
  // The list of items in the answer, JSON text.
  std::optional<std::string> answer_items{};
};
struct key_name {
  std::string_view request_id, key;
};
void append_find_keys(checked_pipeline& to, const std::vector<key_name>& names);
// The same for operations that were found by alias.
struct operation_key_name {
  operation_id operation;
  std::string_view key;
};
void append_find_operation_keys(checked_pipeline& to, const std::vector<operation_key_name>& names);
// Claimed keys by what the signature covered of a callback that came under them, the first or a later one.
void append_find_signed_keys(checked_pipeline& to, const std::vector<signed_name>& names);
// Claimed keys of the scope [provider, key], whatever operation claimed them.
struct provider_key_name {
  std::string_view provider, key;
};
void append_find_provider_keys(checked_pipeline& to, const std::vector<provider_key_name>& names);
std::vector<key_row> read_keys(const postgres::rows& from);

// Idempotency-Key headers that were used before.
struct client_key_row {
  std::string client, key, request_id;
  operation_id operation;
  sha256_digest fingerprint{};
};
void append_find_client_keys(checked_pipeline& to, const std::vector<client_key_name>& names);
std::vector<client_key_row> read_client_keys(const postgres::rows& from);

struct new_keys {
  bulk rows;
  new_keys();
  void add(const key_row& k);
};
struct repeated_keys {
  bulk rows;
  repeated_keys();
  void add(operation_id id, std::string_view key, std::int32_t times);
};
struct new_client_keys {
  bulk rows;
  new_client_keys();
  void add(std::string_view client, std::string_view key, operation_id id, const sha256_digest& fingerprint, sys_micros at);
};

}  // namespace recibo::storage
