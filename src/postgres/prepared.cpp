#include "prepared.hpp"

#include <cstdio>
#include <cstdlib>

namespace recibo::postgres {

prepared_statements::entry& prepared_statements::of(const statement& what) {
  auto [at, fresh] = known_.try_emplace(what.name);
  auto& e = at->second;
  if (fresh) {
    e.sql = what.sql;
    e.as = what.name;
  } else if (e.sql != what.sql) {
    std::fprintf(stderr, "recibo: broken invariant: two statements are named %s\n", what.name.c_str());
    std::abort();
  }
  return e;
}

void prepared_statements::forget(const statement& what) {
  if (what.name.empty()) return;
  auto& e = of(what);
  e.there = false;
  e.as = what.name + "/" + std::to_string(++e.forgotten);
}

}  // namespace recibo::postgres
