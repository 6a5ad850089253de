// After an outage, of ours or a provider's: every open operation is looked up, and what never arrived is healed (R44).
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/postgres/pool.hpp"
#include "recibo/storage/look_ups.hpp"

#include <boost/asio/awaitable.hpp>

#include <memory>
#include <string>
#include <vector>

namespace recibo::reconcile {

// One for each provider that can be asked, over operations accepted since `since`; where one is under way it goes on, further
// back if need be. Any number of replicas may call it for the same outage. The running services do the work, at each provider's
// rate; storage::read_catch_up tells what it healed. Stops at the first error of the pool; what was started stays.
boost::asio::awaitable<result<std::vector<storage::catch_up_id>>> start_catch_ups(
    postgres::pool& pool, std::shared_ptr<const config::settings> settings, std::string by, sys_micros since,
    postgres::deadline until);

}  // namespace recibo::reconcile
