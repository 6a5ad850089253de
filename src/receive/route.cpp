#include "route.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>

namespace recibo::receive {
route find_route(std::string_view path) {
  if (path == "/livez") return {route::resource::livez, {}, {}};
  if (path == "/readyz") return {route::resource::readyz, {}, {}};
  constexpr std::string_view prefix = "/callbacks/";
  if (!path.starts_with(prefix)) return {};
  path.remove_prefix(prefix.size());
  if (path.ends_with('/')) path.remove_suffix(1);
  const std::size_t slash = path.find('/');
  auto provider = http::percent_decode(path.substr(0, slash));
  if (!provider || provider->empty()) return {};
  if (slash == std::string_view::npos) return {route::resource::callback, std::move(*provider), {}};
  // Compared as it stands: only base64url is a token, which no sender has a reason to encode.
  const std::string_view token = path.substr(slash + 1);
  if (token.empty() || token.find('/') != std::string_view::npos) return {};
  return {route::resource::callback, std::move(*provider), std::string(token)};
}

bool is_identity_coded(const http::header_list& headers) {
  for (const auto& [name, value] : headers) {
    if (!same_text(name, "content-encoding")) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      if (const std::string_view coding = trim(rest.substr(0, end)); !coding.empty() && !same_text(coding, "identity"))
        return false;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return true;
}

}  // namespace recibo::receive
