// Named SQL and row mapping of operations: the write path's half; lists and views are in reads.hpp.
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"

#include <optional>
#include <string>
#include <string_view>
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

}  // namespace recibo::storage
