// URLs and host names that a request chose, judged before anything is fetched from them.
#pragma once

#include <optional>
#include <string_view>

namespace recibo::verify {

// `name` is `suffix`, or ends in "." and `suffix`. Both in any case.
bool host_is_below(std::string_view name, std::string_view suffix) noexcept;

struct plain_url {
  std::string_view host, path;  // of the URL, borrowed; the path begins with "/", and has the query behind it
};

// https://host/path of at most 512 characters, in plain ASCII that no two parsers read differently: no user, no port, no
// fragment, no backslash, no "." or ".." as a segment, a host of letters, digits, "-" and "." that is no address.
std::optional<plain_url> plain_https(std::string_view url) noexcept;

}  // namespace recibo::verify
