#include "route.hpp"

#include <algorithm>

namespace recibo::receive {
namespace {

bool same_word(std::string_view a, std::string_view lower_case) noexcept {
  const auto equal = [](char x, char y) { return (x >= 'A' && x <= 'Z' ? static_cast<char>(x - 'A' + 'a') : x) == y; };
  return a.size() == lower_case.size() && std::equal(a.begin(), a.end(), lower_case.begin(), equal);
}

std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

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
    if (!same_word(name, "content-encoding")) continue;
    std::string_view rest = value;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      if (const std::string_view coding = trim(rest.substr(0, end)); !coding.empty() && !same_word(coding, "identity"))
        return false;
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  return true;
}

}  // namespace recibo::receive
