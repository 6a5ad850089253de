#include "url.hpp"

#include "recibo/core/ascii.hpp"
#include "recibo/core/network.hpp"

#include <algorithm>
#include <charconv>

namespace recibo::config {
namespace {

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// A resolver takes a host whose last label begins with a digit for an address.
bool looks_numeric(std::string_view host) noexcept {
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::size_t dot = host.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? host : host.substr(dot + 1);
  return !last.empty() && is_digit(last.front());
}

bool is_host_name(std::string_view host) noexcept {
  if (host.size() > 253 || host.empty() || host.front() == '.' || host.find("..") != std::string_view::npos) return false;
  return std::all_of(host.begin(), host.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_'; });
}

std::string read_authority(std::string_view authority, http_url& out) {
  if (authority.find('@') != std::string_view::npos) return "a user or password in it is refused: it would end up in logs";
  std::string_view port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return "\"[\" is never closed";
    out.host = authority.substr(1, end - 1);
    if (out.host.find(':') == std::string::npos || !parse_ip(out.host)) return "between the brackets stands no IPv6 address";
    const std::string_view rest = authority.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return "its host cannot be read";
    if (!rest.empty()) port = rest;
  } else {
    const std::size_t colon = authority.find(':');
    out.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon);
    if (out.host.empty()) return "it has no host";
    if (!is_host_name(out.host)) return "its host is no name and no address";
    if (looks_numeric(out.host) && !parse_ip(out.host)) return "its host looks like an address and is none";
  }
  if (port.empty()) return {};
  port.remove_prefix(1);
  std::uint32_t number = 0;
  const auto [end, bad] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (bad != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535) return "its port is none";
  out.port = static_cast<std::uint16_t>(number);
  return {};
}

}  // namespace

url_reading parse_http_url(std::string_view text) {
  http_url out;
  if (!std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; }))
    return {{}, "blanks and characters beyond ASCII have to be percent-encoded"};
  if (text.starts_with("https://")) {
    out.tls = true;
    out.port = 443;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    out.port = 80;
    text.remove_prefix(7);
  } else {
    return {{}, "it begins with neither http:// nor https://"};
  }
  if (text.find('#') != std::string_view::npos) return {{}, "a fragment (#) is never sent"};
  if (text.find('\\') != std::string_view::npos) return {{}, "a backslash is no part of a URL"};
  std::string why = read_authority(text.substr(0, text.find_first_of("/?")), out);
  if (!why.empty()) return {{}, std::move(why)};
  return {std::move(out), {}};
}

}  // namespace recibo::config
