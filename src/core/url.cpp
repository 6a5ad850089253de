#include "recibo/core/url.hpp"

#include "recibo/core/ascii.hpp"
#include "recibo/core/network.hpp"

#include <algorithm>
#include <charconv>

namespace recibo {
namespace {

bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool is_unreserved(char c) noexcept { return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_' || c == '~'; }

// A resolver takes a host whose last label begins with a digit for an address.
bool looks_numeric(std::string_view host) noexcept {
  const std::size_t dot = host.rfind('.');
  const std::string_view last = dot == std::string_view::npos ? host : host.substr(dot + 1);
  return !last.empty() && is_digit(last.front());
}

bool is_host_name(std::string_view host) noexcept {
  if (host.size() > 253 || host.empty() || host.front() == '.' || host.find("..") != std::string_view::npos) return false;
  return std::all_of(host.begin(), host.end(),
                     [](char c) { return is_letter(c) || is_digit(c) || c == '-' || c == '.' || c == '_'; });
}

std::string read_port(std::string_view port, http_url& out) {
  if (port.empty()) return {};
  port.remove_prefix(1);
  std::uint32_t number = 0;
  const auto [end, bad] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (bad != std::errc{} || end != port.data() + port.size() || number < 1 || number > 65535) return "its port is none";
  out.port = static_cast<std::uint16_t>(number);
  return {};
}

std::string read_name(std::string_view name, http_url& out) {
  if (name.empty()) return "it has no host";
  if (!is_host_name(name)) return "its host is no name and no address";
  // The dot at the end only says that the name is complete; certificates are without it.
  if (name.ends_with('.')) name.remove_suffix(1);
  if (looks_numeric(name) && !parse_ip(name)) return "its host looks like an address and is none";
  out.host = name;
  for (char& c : out.host)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return {};
}

std::string read_authority(std::string_view authority, http_url& out) {
  if (authority.find('@') != std::string_view::npos) return "a user or password in it is refused: it would end up in logs";
  if (!authority.starts_with('[')) {
    const std::size_t colon = std::min(authority.find(':'), authority.size());
    std::string why = read_name(authority.substr(0, colon), out);
    return why.empty() ? read_port(authority.substr(colon), out) : why;
  }
  const std::size_t end = authority.find(']');
  if (end == std::string_view::npos) return "\"[\" is never closed";
  const std::string_view inside = authority.substr(1, end - 1);
  const auto address = parse_ip(inside);
  if (inside.find(':') == std::string_view::npos || !address) return "between the brackets stands no IPv6 address";
  out.host = to_string(*address);
  const std::string_view rest = authority.substr(end + 1);
  if (!rest.empty() && rest.front() != ':') return "its host cannot be read";
  return read_port(rest, out);
}

// Dot segments, in any spelling: somebody on the way resolves them.
bool has_dot_segment(std::string_view target) {
  std::string_view path = target.substr(0, target.find('?'));
  while (!path.empty()) {
    path.remove_prefix(1);
    const std::size_t slash = std::min(path.find('/'), path.size());
    std::string segment;
    for (std::size_t i = 0; i < slash; ++i) {
      const bool dot = i + 2 < slash && path[i] == '%' && path[i + 1] == '2' && (path[i + 2] | 0x20) == 'e';
      segment += dot ? '.' : path[i];
      if (dot) i += 2;
    }
    if (segment == "." || segment == "..") return true;
    path.remove_prefix(slash);
  }
  return false;
}

bool has_control(std::string_view text) noexcept {
  return std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

}  // namespace

std::string http_url::authority() const {
  std::string out = host.find(':') == std::string::npos ? host : "[" + host + "]";
  if (port != (tls ? 443 : 80)) out += ":" + std::to_string(port);
  return out;
}

std::string http_url::origin() const { return (tls ? "https://" : "http://") + authority(); }

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
  const std::size_t end = std::min(text.find_first_of("/?"), text.size());
  std::string why = read_authority(text.substr(0, end), out);
  if (!why.empty()) return {{}, std::move(why)};
  out.target = text.substr(end);
  if (!out.target.starts_with('/')) out.target.insert(0, "/");
  return {std::move(out), {}};
}

std::string percent_encode(std::string_view text) {
  static constexpr std::string_view digits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += digits[byte >> 4];
      out += digits[byte & 15];
    }
  }
  return out;
}

result<url_template> url_template::parse(std::string_view text, const std::vector<std::string_view>& names) {
  // With its gaps filled by a letter it has to be a URL, whose host the letters are no part of.
  const std::size_t scheme = text.find("://");
  const std::size_t from = scheme == std::string_view::npos ? 0 : text.find_first_of("/?", scheme + 3);
  const std::string_view front = text.substr(0, from);
  if (front.find_first_of("{}") != std::string_view::npos)
    return misconfigured("a gap may stand in the path and the query only, never where it could change the host");
  url_template out;
  std::string_view rest = from == std::string_view::npos ? std::string_view() : text.substr(from);
  std::string sample(front);
  while (!rest.empty()) {
    const std::size_t open = std::min(rest.find_first_of("{}"), rest.size());
    if (open > 0) {
      out.pieces_.push_back({std::string(rest.substr(0, open)), false});
      sample += rest.substr(0, open);
      rest.remove_prefix(open);
      continue;
    }
    const std::size_t close = rest.find('}');
    if (rest.front() == '}' || close == std::string_view::npos) return misconfigured("its braces do not match");
    const std::string_view name = rest.substr(1, close - 1);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      std::string known;
      for (const std::string_view one : names) known += (known.empty() ? "{" : ", {") + std::string(one) + "}";
      return misconfigured("it may hold " + known + " and no other gap");
    }
    out.pieces_.push_back({std::string(name), true});
    sample += 'x';
    rest.remove_prefix(close + 1);
  }
  url_reading read = parse_http_url(sample);
  if (!read.url) return misconfigured(std::move(read.why));
  if (has_dot_segment(read.url->target)) return misconfigured("\".\" and \"..\" in its path are resolved by somebody else");
  if (out.pieces_.empty() || !out.pieces_.front().text.starts_with('/')) out.pieces_.insert(out.pieces_.begin(), {"/", false});
  out.base_ = std::move(*read.url);
  return out;
}

result<http_url> url_template::fill(const std::vector<std::pair<std::string_view, std::string_view>>& values) const {
  http_url out = base_;
  out.target.clear();
  for (const piece& one : pieces_) {
    if (!one.gap) {
      out.target += one.text;
      continue;
    }
    const auto value = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == one.text; });
    if (value == values.end() || value->second.empty())
      return error(permanent::missing_field, "There is no value for {" + one.text + "} of the URL.");
    if (has_control(value->second)) return malformed("The value for {" + one.text + "} of the URL holds a control character.");
    out.target += percent_encode(value->second);
  }
  if (has_dot_segment(out.target)) return malformed("A value would make a path segment of the URL \".\" or \"..\".");
  return out;
}

std::vector<std::string> url_template::gaps() const {
  std::vector<std::string> out;
  for (const piece& one : pieces_)
    if (one.gap) out.push_back(one.text);
  return out;
}

}  // namespace recibo
