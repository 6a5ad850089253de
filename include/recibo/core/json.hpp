// Text as a JSON string, for the places that write JSON by hand: answers, logs, cursors. Pure; safe from any thread.
// Foreign text stays data there (K30): no quote, control character or broken byte gets out of the string.
#pragma once

#include <string>
#include <string_view>

namespace recibo {

// Appends `utf8` in quotes. Escapes the quote, the backslash, U+0000 to U+001F and U+007F; each byte that belongs to
// no valid UTF-8 sequence becomes U+FFFD, so that the result is always valid JSON and valid UTF-8.
void append_json_string(std::string& out, std::string_view utf8);

// The same as a value of its own.
std::string json_string(std::string_view utf8);

}  // namespace recibo
