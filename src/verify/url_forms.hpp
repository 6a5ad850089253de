// The spellings of a URL, and of a form, that schemes sign. The URL is the configured public one, never what arrived.
#pragma once

#include "recibo/verify/scheme.hpp"

#include "reading.hpp"

#include <string>
#include <string_view>

namespace recibo::verify {

// HubSpot v3: these twelve escapes of the query decoded, the others left, without a fragment.
std::string hubspot_url(std::string_view url);

// Plivo v3: query decoded and sorted; behind it the fields of a posted form. `form` is null where there is none.
std::string plivo_url(std::string_view url, const fields* form);

// Twilio: name and value of every field, by name, the values of one name once and sorted.
std::string sorted_names_and_values(const fields& form);

// `url` as that variant spells it; `url` itself where it has no authority.
std::string spelled(std::string_view url, url_variant how);

}  // namespace recibo::verify
