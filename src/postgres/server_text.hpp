// The one place where libpq's and the server's own words are logged. They may name hosts, roles and tables, never the URL.
#pragma once

#include <libpq-fe.h>

#include <string_view>

namespace recibo::postgres {

// Why no session came about, or why it ended. While the same reason repeats, it is told once in half a minute.
void log_server_text(std::string_view event, std::string_view text);
// A NOTICE or WARNING.
void log_notice(const PGresult* notice);

}  // namespace recibo::postgres
