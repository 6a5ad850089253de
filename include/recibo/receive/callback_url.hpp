// The callback URL that belongs to one operation (R42): what the API hands out, and what `recibo send` calls. Pure.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/clock.hpp"

#include <string>
#include <string_view>

namespace recibo::receive {

// Path of the callbacks listener: "/callbacks/{provider}", and "/{token}" behind it unless that is empty.
std::string callback_path(std::string_view provider, std::string_view token);

// The token for an operation that was accepted at `accepted_at`, made with the secret that is valid at `now`. Empty: its
// provider has no such URLs, no secret is valid now, or the URL would have expired already. A secret to anybody else: whoever
// has it may speak of this operation.
std::string callback_token(const config::settings& settings, std::string_view provider, std::string_view request_id,
                           sys_micros accepted_at, sys_micros now);

// The URL with it, as it is reached from outside; empty as above.
std::string callback_url(const config::settings& settings, std::string_view provider, std::string_view request_id,
                         sys_micros accepted_at, sys_micros now);

// What is on record, and in the metric, of the secret of the ring that verified a token: no secret of a provider is named so.
std::string recorded_name(std::string_view secret_name);

}  // namespace recibo::receive
