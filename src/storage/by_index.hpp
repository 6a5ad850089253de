// A plan that is made once serves any size of the tables: rows by their keys, and what is due in the order of its index, so that
// a claim reads what it takes and not the whole backlog. The first of a transaction's statements. Private to storage/.
#pragma once

#include "recibo/postgres/pipeline.hpp"

namespace recibo::storage {

inline const postgres::statement by_index{
    "plan_by_index",
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', "
    "'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)",
    {}};

}  // namespace recibo::storage
