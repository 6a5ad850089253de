// How the statements of the outbox are planned. Private to storage/.
#pragma once

#include "recibo/postgres/pipeline.hpp"

namespace recibo::storage {

// A plan that is made once serves any size of the tables (the recorder's sessions have the same reason): rows by their keys, and
// what is due in the order of its index, so that a claim reads what it takes and not the whole backlog.
inline const postgres::statement by_index{
    "plan_by_index",
    "SELECT set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', "
    "'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true)",
    {}};

}  // namespace recibo::storage
