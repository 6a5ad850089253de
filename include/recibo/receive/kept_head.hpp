// What of a request beside its body is kept with a failed callback, so that extraction can run again (R17). Pure.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/http/message.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace recibo::receive {

// Bytes of one kept value, and of all names and values together; what is longer is left out.
inline constexpr std::size_t kept_value_max = 1024, kept_head_max = 8192;

// Query and headers as JSON: {"query": "…", "headers": [["name", "value"], …]}. Left out is what authenticates, by its name:
// authorization, cookies, signatures, tokens, secrets, passwords, API keys, certificates; what says nothing about the callback
// (host, connection, lengths); and what is no UTF-8. A header or query field that `how` reads is kept whatever it is called,
// except Authorization and cookies: what it says is stored as an identifier anyway.
// `url_of`: the request ID that its callback URL proved; empty: it came to no operation's own URL.
std::string keep_head(const config::provider& how, const http::request& from, std::string_view url_of = {});

// The inverse: fills query and headers of `out`, and returns `url_of`. What is no text of keep_head() gives none.
std::string restore_head(std::string_view kept, http::request& out);

}  // namespace recibo::receive
