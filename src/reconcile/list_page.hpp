// One page of a provider's list of events: how it is asked for, and what comes behind it (R44). Pure. Private to reconcile/.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/http/client.hpp"

#include <string>
#include <string_view>

namespace recibo::reconcile {

// `cursor`: of the page before; empty: the first page.
// permanent::malformed_field   the URL would be of something else
result<http::outbound_request> page_request(const config::list_rule& rule, sys_micros since, std::string_view cursor);

// What the page behind is asked by; empty: there is none. `events`: of this page.
// permanent::answer_malformed   no JSON, or what stands at `next` is no name of a page
// permanent::check_failed       the page behind is this one: it would never end
result<std::string> next_page(const config::list_rule& rule, std::string_view body, std::string_view cursor, std::size_t events);

}  // namespace recibo::reconcile
