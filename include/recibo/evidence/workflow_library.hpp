// Workflow tables by version: those in force, and those that older operations were accepted under (decision 7).
// Belongs to one thread; keeps every table it has read, for they never change.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/postgres/pool.hpp"

#include <boost/asio/awaitable.hpp>

#include <cstdint>
#include <memory>
#include <unordered_map>

namespace recibo::evidence {

using workflow_ptr = std::shared_ptr<const transition::workflow>;

class workflow_library {
 public:
  // From `settings` when the version is in force, else from workflow_versions.
  // transient::our_fault   the database does not know it, or holds no table there; else errors of the pool
  boost::asio::awaitable<result<workflow_ptr>> get(postgres::pool& pool, std::shared_ptr<const config::settings> settings,
                                                   std::int64_t version_key, postgres::deadline until);

 private:
  workflow_ptr find(const config::settings& settings, std::int64_t version_key) const;

  std::unordered_map<std::int64_t, workflow_ptr> read_;
};

}  // namespace recibo::evidence
