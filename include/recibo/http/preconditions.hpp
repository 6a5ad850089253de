// If-Match (RFC 9110 section 13.1.1): a change only of what the client has seen. Pure.
#pragma once

#include "recibo/http/message.hpp"

#include <optional>
#include <string>
#include <vector>

namespace recibo::http {

struct if_match {
  // "*": whatever is there.
  bool any = false;
  // What stands between the quotes of the strong tags. Weak ones are left out: they never match here.
  std::vector<std::string> tags;
};

// All If-Match headers together; nullopt when there is none. Not well-formed: `malformed` is set.
std::optional<if_match> read_if_match(const header_list& headers, bool& malformed);

}  // namespace recibo::http
