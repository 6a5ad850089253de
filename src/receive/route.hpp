// Paths of the callbacks listener. One reading of a path decides everything (K16). Pure.
#pragma once

#include "recibo/http/message.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace recibo::receive {

struct route {
  enum class resource {
    unknown,
    livez,
    readyz,
    callback,  // /callbacks/{provider} or /callbacks/{provider}/{token}; a slash behind it is the same resource
  };
  resource what = resource::unknown;
  std::string provider;  // decoded
  std::string token;     // as it stands; empty: none
};

// Nothing is normalised: empty segments, dots and the like lead nowhere.
route find_route(std::string_view path);

// Whether the body is as it is, not compressed: the scheme signs what was sent, and which form that is would be a guess.
bool is_identity_coded(const http::header_list& headers);

}  // namespace recibo::receive
