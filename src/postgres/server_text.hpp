// The one place where libpq's and the server's own words are logged. They may name hosts, roles and tables, never the URL.
#pragma once

#include <libpq-fe.h>

#include <string>
#include <string_view>

namespace recibo::postgres {

// libpq's text in one line: it comes with line breaks, tabs and one more at the end.
std::string one_line(std::string_view text);
// Why no session came about, or why it ended. While the same reason repeats, it is told once in half a minute.
void log_server_text(std::string_view event, std::string_view text);
// A NOTICE or WARNING.
void log_notice(const PGresult* notice);

}  // namespace recibo::postgres
