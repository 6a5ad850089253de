// Outcome → what the sender is told (contract section 4). Pure; safe from any thread.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/http/message.hpp"
#include "recibo/record/work.hpp"

#include <string_view>

namespace recibo::receive {

// The answer to a callback that was recorded. A 2xx has the body {"delivery_id", "request_id", "disposition", "state", "items"}
// in this order, what is not known left out, or the literal one of the outcome; anything else is application/problem+json
// with the disposition's word as its code. Several events of one request have a list "events" instead, in their order. A replay
// is the first answer's status and body, marked Idempotent-Replayed.
http::response answer(const record::outcome& what, const config::answers& how, std::string_view trace_id);

// The answer to a callback that a rule ignores: counted, not recorded, so it has no delivery_id.
http::response answer_ignored(std::string_view request_id, const config::answers& how, std::string_view trace_id);

// The word that is counted: "duplicate" for a replay, whatever the first one was.
std::string_view counted_as(const record::outcome& what) noexcept;

}  // namespace recibo::receive
