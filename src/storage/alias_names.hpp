// Asks a statement for names of operations at their providers: $1 the providers, $2 the aliases.
#pragma once

#include "recibo/storage/operations.hpp"

#include <utility>
#include <vector>

namespace recibo::storage {

inline void append_alias_names(checked_pipeline& to, const postgres::statement& what, const std::vector<alias_name>& names) {
  postgres::binary_array providers(postgres::oid::text), aliases(postgres::oid::text);
  for (const auto& n : names) {
    providers.add(n.provider);
    aliases.add(n.alias);
  }
  postgres::parameters with;
  with.array(std::move(providers)).array(std::move(aliases));
  to.add(what, std::move(with));
}

}  // namespace recibo::storage
