// The order of an operation's notifications to a destination, as far as it is kept in the rows: what waits behind one that is put
// off is put off with it, and woken when that one ends (decision 33). Private to storage/.
#pragma once

#include "recibo/core/clock.hpp"
#include "recibo/postgres/pipeline.hpp"

#include <string>

namespace recibo::storage {

// Of the first `most` that are due since then: those that wait behind an attempt that is put off.
void append_put_behind(postgres::pipeline& to, const std::string& destination, sys_micros due_since, int most);

// After the statement that ended these, which are in the order of the locks.
void append_wake_behind(postgres::pipeline& to, const std::string& destination, postgres::binary_array operations,
                        postgres::binary_array sequences);

}  // namespace recibo::storage
