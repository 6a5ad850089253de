// How long a state may last for the operations of a provider (R22), and what its outages cost (R44).
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/transition/workflow.hpp"

#include <chrono>
#include <string_view>

namespace recibo::config {

// Of a provider whose habits are not known: it may send again so long after a first attempt that failed.
inline constexpr std::chrono::seconds resend_gap_default{300};

// The provider's own limit, where it has one for the state, else the workflow's; nullptr: none. Of a provider that is not
// configured any more the workflow's holds. Borrows from both.
const transition::limit* limit_of(const transition::workflow& table, std::string_view state, std::string_view provider,
                                  const settings& by);

// From the first attempt to the second.
std::chrono::seconds resend_gap_of(std::string_view provider, const settings& by);

}  // namespace recibo::config
