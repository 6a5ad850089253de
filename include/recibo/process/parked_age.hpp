// Parked callbacks that grow old become exceptions for a person: nobody may wait for ever unseen, and none is dropped (R11, R25).
// The callback goes on waiting; its registration closes the review.
#pragma once

#include "recibo/process/rematch.hpp"

namespace recibo::process {

// One round over at most a hundred callbacks that have waited longer than `reviews.parked_after`; each is reviewed once, on one
// replica. `pool`, `settings` and `record` outlive it. Returns how many reviews it opened; stops quietly when the database
// is away.
boost::asio::awaitable<int> review_old_parked(postgres::pool& pool, const config::snapshot& settings,
                                              const record_function& record);

}  // namespace recibo::process
