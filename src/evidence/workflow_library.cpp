#include "recibo/evidence/workflow_library.hpp"

#include "recibo/storage/reads.hpp"

#include <utility>

namespace recibo::evidence {

using boost::asio::awaitable;

workflow_ptr workflow_library::find(const config::settings& settings, std::int64_t version_key) const {
  for (const auto& [name, table] : settings.workflows) {
    if (table->version_key() == version_key) return table;
  }
  const auto known = read_.find(version_key);
  return known == read_.end() ? nullptr : known->second;
}

awaitable<result<workflow_ptr>> workflow_library::get(postgres::pool& pool, std::shared_ptr<const config::settings> settings,
                                                      std::int64_t version_key, postgres::deadline until) {
  if (auto known = find(*settings, version_key)) co_return known;
  auto definition = co_await storage::find_workflow_definition(pool, version_key, until);
  if (!definition) co_return definition.error();
  if (!*definition) co_return error(transient::our_fault, "the operation's workflow version is not on record");
  auto table = transition::workflow::parse(**definition);
  if (!table) co_return error(transient::our_fault, "the operation's workflow version cannot be read");
  auto shared = std::make_shared<const transition::workflow>(std::move(*table));
  read_.emplace(version_key, shared);
  co_return shared;
}

}  // namespace recibo::evidence
