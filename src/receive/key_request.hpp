// What is sent to a provider for one of its keys, and what its answer means. Pure.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/http/client.hpp"
#include "recibo/verify/foreign_key.hpp"

namespace recibo::receive {

struct key_question {
  http::outbound_request request;
  http::outbound_rules rules;
};

// transient::not_ready   the configuration does not say whom to ask
result<key_question> ask_for_key(const config::provider& from, const verify::needed_key& what);

// permanent::signature_mismatch   there is no such key
// transient::not_ready            anything else that is no key: the provider has trouble, or refuses our credentials
result<verify::fetched_key> read_key_answer(const config::provider& from, const verify::needed_key& what,
                                            const http::outbound_answer& answer,
                                            const std::shared_ptr<const verify::trust_store>& authorities, sys_micros now);

}  // namespace recibo::receive
