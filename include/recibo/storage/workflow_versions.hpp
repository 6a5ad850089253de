// Named SQL and row mapping of the versions of workflows, and of operations that went from one to another (decision 7).
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace recibo::storage {

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
  // `item_states`: JSON object, old name → new; empty: no item was in a state that is called otherwise now.
  void add(operation_id id, std::int32_t sequence, std::int64_t from_workflow, std::int64_t to_workflow, std::string_view from,
           std::string_view to, sys_micros at, std::string_view actor, std::string_view reason, std::string_view item_states);
};
// Items of an operation that are in a state which is called otherwise now.
struct renamed_item_states {
  bulk rows;
  renamed_item_states();
  void add(operation_id operation, std::string_view from, std::string_view to, sys_micros at);
};
// Definitions by key.
void append_find_workflows(checked_pipeline& to, const std::vector<std::int64_t>& version_keys);

}  // namespace recibo::storage
