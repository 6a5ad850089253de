#include "host.hpp"

#include "recibo/core/ascii.hpp"
#include "recibo/verify/foreign_key.hpp"

#include <algorithm>

namespace recibo::verify {
namespace {

bool is_letter(char c) noexcept { return lower(c) >= 'a' && lower(c) <= 'z'; }

bool is_label(std::string_view label) noexcept {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '-'; });
}

bool is_host(std::string_view host) noexcept {
  std::size_t labels = 0;
  std::string_view last;
  for (std::string_view rest = host;; ++labels) {
    const std::size_t dot = rest.find('.');
    last = rest.substr(0, dot);
    if (!is_label(last)) return false;
    if (dot == std::string_view::npos) break;
    rest.remove_prefix(dot + 1);
  }
  // A top-level domain has a letter, an IPv4 address in any spelling has none there.
  return labels >= 1 && host.size() <= 253 && std::any_of(last.begin(), last.end(), is_letter) && !last.starts_with("0x");
}

bool is_path(std::string_view path) noexcept {
  constexpr std::string_view marks = "/-._~!$&'()*+,;=:@%?";
  if (!std::all_of(path.begin(), path.end(),
                   [&](char c) { return is_letter(c) || is_digit(c) || marks.find(c) != std::string_view::npos; }))
    return false;
  for (std::string_view rest = path.substr(0, path.find('?')); !rest.empty();) {
    rest.remove_prefix(1);
    const std::string_view segment = rest.substr(0, rest.find('/'));
    if (segment == "." || segment == "..") return false;
    rest.remove_prefix(segment.size());
  }
  return true;
}

// us-east-1, us-gov-west-1, cn-north-1: letters, more letters, a number. "s3-us-west-2" is a bucket's host and none.
bool is_region(std::string_view label) noexcept {
  std::size_t words = 0;
  for (;; ++words) {
    const std::size_t end = label.find('-');
    const std::string_view word = label.substr(0, end);
    if (end == std::string_view::npos) return words >= 2 && !word.empty() && std::all_of(word.begin(), word.end(), is_digit);
    if (word.empty() || !std::all_of(word.begin(), word.end(), is_letter)) return false;
    label.remove_prefix(end + 1);
  }
}

}  // namespace

bool host_is_below(std::string_view name, std::string_view suffix) noexcept {
  if (suffix.empty() || name.size() < suffix.size() || !same_text(name.substr(name.size() - suffix.size()), suffix)) return false;
  return name.size() == suffix.size() || name[name.size() - suffix.size() - 1] == '.';
}

std::optional<plain_url> plain_https(std::string_view url) noexcept {
  constexpr std::string_view scheme = "https://";
  if (url.size() > 512 || !same_text(url.substr(0, scheme.size()), scheme)) return std::nullopt;
  url.remove_prefix(scheme.size());
  const std::size_t slash = url.find('/');
  if (slash == std::string_view::npos || !is_host(url.substr(0, slash)) || !is_path(url.substr(slash))) return std::nullopt;
  return plain_url{url.substr(0, slash), url.substr(slash)};
}

bool is_sns_url(std::string_view url) noexcept {
  const auto parts = plain_https(url);
  if (!parts) return false;
  std::string_view host = parts->host;
  if (!same_text(host.substr(0, 4), "sns.")) return false;
  host.remove_prefix(4);
  for (const std::string_view suffix : {".amazonaws.com.cn", ".amazonaws.com"}) {
    if (host.size() <= suffix.size() || !same_text(host.substr(host.size() - suffix.size()), suffix)) continue;
    return is_region(host.substr(0, host.size() - suffix.size()));
  }
  return false;
}

}  // namespace recibo::verify
