// Named SQL and row mapping of operations and what belongs to their identity: registrations, aliases, keys.
// The write path's half; lists and views are in reads.hpp.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"
#include "recibo/storage/signed_contents.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::storage {

// An operation as the lock returned it, with what was registered.
struct operation_row {
  operation_id id;
  std::string request_id, provider, state, client;
  std::int64_t workflow = 0;
  std::int32_t version = 0, revision = 0, sequence = 0;
  std::optional<sys_micros> watermark_at;
  std::optional<std::int64_t> watermark_sequence;
  sha256_digest chain_hash{};
  bool review_open = false;
  sys_micros state_at{};
  std::optional<std::string> amount, currency, account;
  sha256_digest intent{};
  std::optional<delivery_id> made_by;     // the callback that registered it; nullopt: a client did
  std::optional<std::int32_t> corrected;  // sequence of the latest correction of what was registered
};

struct alias_name {
  std::string_view provider, alias;
};

struct client_key_name {
  std::string_view client, key;
};

// BEGIN and COMMIT as named statements, so that they travel in the pipeline.
extern const postgres::statement begin, commit;

// Locks the operations with these request IDs that nobody else holds, in the order of their IDs; returns the newest
// version of each. Those that it does not return are busy or absent: a later statement tells (write path, rules 1 and 2).
void append_lock_by_request_id(checked_pipeline& to, const std::vector<std::string_view>& request_ids);
// The same for operations known by an alias; the rows come back as those above do.
void append_lock_by_alias(checked_pipeline& to, const std::vector<alias_name>& names);
// The same for one operation, waiting for it; for the waiting lane, whose transaction has a lock_timeout.
void append_lock_waiting(checked_pipeline& to, std::string_view request_id);
void append_lock_waiting(checked_pipeline& to, const alias_name& name);
std::vector<operation_row> read_operations(const postgres::rows& from);

// Which of these request IDs exist, whoever holds them, and at which provider. Sorted by request ID.
struct existing_row {
  std::string request_id, provider;
};
void append_existing(checked_pipeline& to, const std::vector<std::string_view>& request_ids);
std::vector<existing_row> read_existing(const postgres::rows& from);
const existing_row* find_existing(const std::vector<existing_row>& in, std::string_view request_id);

// What was registered, as corrections have left it: whole, because a correction is written whole.
struct intent_row {
  operation_id operation;
  std::string client, action, metadata;  // metadata: JSON text
  std::optional<std::string> reference, amount, currency, account;
  std::optional<sys_micros> deadline;
  sha256_digest intent{};
};
// `corrected`: of the row that is locked; absent for what was never corrected.
void append_find_intents(checked_pipeline& to, const std::vector<std::pair<operation_id, std::int32_t>>& operations);
std::vector<intent_row> read_intents(const postgres::rows& from);
// Each is a row that is never changed: the registration itself stays as it was made.
struct new_corrections {
  bulk rows;
  new_corrections();
  void add(const intent_row& now, std::int32_t sequence, std::string_view kind, sys_micros at, std::string_view actor);
};

// Which operation each of these aliases belongs to; unknown ones are left out.
struct alias_row {
  std::string provider, alias, request_id;
  operation_id operation;
};
void append_find_aliases(checked_pipeline& to, const std::vector<alias_name>& names);
std::vector<alias_row> read_aliases(const postgres::rows& from);

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

// Makes a workflow table known, if it is not yet.
void append_workflow_version(checked_pipeline& to, std::int64_t version_key, const sha256_digest& digest, std::string_view name,
                             std::string_view definition);
// In which states items of these operations are, each once.
struct item_state_row {
  operation_id operation;
  std::string state;
};
void append_find_item_states(checked_pipeline& to, const std::vector<operation_id>& operations);
std::vector<item_state_row> read_item_states(const postgres::rows& from);
// An operation went from one version of its workflow to another.
struct new_workflow_changes {
  bulk rows;
  new_workflow_changes();
  void add(operation_id id, std::int32_t sequence, std::int64_t from_workflow, std::int64_t to_workflow, std::string_view from,
           std::string_view to, sys_micros at, std::string_view actor, std::string_view reason);
};
// Definitions by key.
void append_find_workflows(checked_pipeline& to, const std::vector<std::int64_t>& version_keys);

// Bulk writers; `add` copies what it is given.
struct new_operations {
  bulk rows;
  new_operations();
  void add(const operation_row& o, sys_micros at);
};
// The folded result of one batch: guarded by the revision that the lock returned.
struct changed_operations {
  bulk rows;
  changed_operations();
  void add(const operation_row& o, std::int32_t locked_revision, sys_micros at);
};
struct new_registrations {
  bulk rows;
  new_registrations();
  void add(operation_id id, std::string_view client, std::string_view action, const std::optional<std::string>& reference,
           const std::optional<std::string>& amount, const std::optional<std::string>& currency,
           const std::optional<sys_micros>& deadline, std::string_view metadata, const sha256_digest& intent,
           sys_micros accepted_at, std::string_view trace_id, const std::optional<std::string>& account,
           const std::optional<delivery_id>& delivery);
};
struct new_aliases {
  bulk rows;
  new_aliases();
  void add(std::string_view provider, std::string_view alias, operation_id id, sys_micros at);
};
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
