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

struct page_behind {
  std::string cursor;     // what it is asked by; empty: there is none
  bool repeated = false;  // there is none, for it would be this page: it would never end
};
// `events`: of this page.
// permanent::answer_malformed   no JSON, or what stands at `next` is no name of a page
result<page_behind> next_page(const config::list_rule& rule, std::string_view body, std::string_view cursor, std::size_t events);

}  // namespace recibo::reconcile
