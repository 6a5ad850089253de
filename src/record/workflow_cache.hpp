// Workflow tables by version key: those of the configuration, and those that older operations were accepted under
// (decision 7). Belongs to one thread.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/transition/workflow.hpp"

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <unordered_set>

namespace recibo::record {

class workflow_cache {
 public:
  // nullptr: neither in the configuration nor seen before; it must be read from workflow_versions.
  const transition::workflow* find(std::int64_t version_key, const config::settings& settings) {
    const auto known = tables_.find(version_key);
    if (known != tables_.end()) return known->second.get();
    for (const auto& [name, table] : settings.workflows) {
      if (table->version_key() == version_key) return tables_.emplace(version_key, table).first->second.get();
    }
    return nullptr;
  }
  void add(std::shared_ptr<const transition::workflow> table) {
    const auto key = table->version_key();
    tables_.emplace(key, std::move(table));
  }
  // Whether the table's row is known to be committed in workflow_versions.
  bool stored(std::int64_t version_key) const { return stored_.contains(version_key); }
  void mark_stored(std::int64_t version_key) { stored_.insert(version_key); }
  // After a reconnect to what may be another database.
  void forget_stored() { stored_.clear(); }

 private:
  std::unordered_map<std::int64_t, std::shared_ptr<const transition::workflow>> tables_;
  std::unordered_set<std::int64_t> stored_;
};

}  // namespace recibo::record
