// Method and path → route (K16): one normalised path decides. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::http {

struct routed {
  // In order of add(); nullopt: 404 when `allow` is empty, else 405 with `allow` as the Allow header.
  std::optional<std::size_t> route;
  // Values of the pattern's {…} segments, percent-decoded, in order.
  std::vector<std::string> parameters;
  std::string allow;
};

class router {
 public:
  // `pattern`: segments that are literal or {name}: "/v1/operations/{request_id}/items".
  void add(std::string method, std::string_view pattern);

  // `path` is still percent-encoded: it is cut at its slashes first and decoded then, so that %2F stays inside its segment.
  // One slash at the end is the same resource, never a redirect. HEAD finds the route of GET. A literal segment goes
  // before a parameter. A malformed escape matches nothing.
  routed match(std::string_view method, std::string_view path) const;

 private:
  struct entry {
    std::string method;
    std::vector<std::string> segments;  // a parameter begins with '{'
  };
  std::vector<entry> entries_;
};

}  // namespace recibo::http
