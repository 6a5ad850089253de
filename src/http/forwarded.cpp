#include "forwarded.hpp"

#include "head_rules.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

namespace recibo::http {
namespace {

// What one proxy said.
struct hop {
  std::string by_whom;  // an address, maybe with its port; empty: not said
  std::string proto, host;
};

// In order of writing. An empty one stands where a part cannot be read: nothing before it counts.
using hops = std::vector<hop>;

// An address, with a port or without: "192.0.2.1", "192.0.2.1:80", "2001:db8::1", "[2001:db8::1]:80".
std::optional<ip_bytes> address_of(std::string_view text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string_view::npos || (end + 1 < text.size() && text[end + 1] != ':')) return std::nullopt;
    text = text.substr(1, end - 1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    text = text.substr(0, text.find(':'));
  }
  return parse_ip(text);
}

// All values of a header as one list, in order.
std::vector<std::string_view> list_of(const header_list& headers, std::string_view name) {
  std::vector<std::string_view> out;
  for (const auto& [key, value] : headers) {
    if (!same_text(key, name)) continue;
    std::string_view rest = value;
    for (;;) {
      const auto comma = rest.find(',');
      out.push_back(trim(rest.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return out;
}

// The value beside an address: the one at the same place from the end, or the only one.
std::string beside(const std::vector<std::string_view>& values, std::size_t from_end) {
  if (values.size() == 1) return std::string(values.front());
  return from_end < values.size() ? std::string(values[values.size() - 1 - from_end]) : std::string();
}

hops x_forwarded(const header_list& headers) {
  const auto addresses = list_of(headers, "x-forwarded-for"), protos = list_of(headers, "x-forwarded-proto"),
             hosts = list_of(headers, "x-forwarded-host");
  // A proxy may tell the scheme and not the address.
  const std::size_t count = std::max<std::size_t>(addresses.size(), protos.empty() && hosts.empty() ? 0 : 1);
  hops out(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t from_end = count - 1 - i;
    if (!addresses.empty()) out[i].by_whom = addresses[i];
    out[i].proto = beside(protos, from_end);
    out[i].host = beside(hosts, from_end);
  }
  return out;
}

// token "=" ( token / quoted-string ), and what follows it; false when it is no such pair.
bool read_pair(std::string_view& rest, std::string& name, std::string& value) {
  const auto equals = rest.find('=');
  if (equals == std::string_view::npos) return false;
  name = rest.substr(0, equals);
  rest.remove_prefix(equals + 1);
  value.clear();
  if (!rest.starts_with('"')) {
    const auto end = std::min(rest.find_first_of(",; \t"), rest.size());
    value = rest.substr(0, end);
    rest.remove_prefix(end);
    return true;
  }
  for (std::size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return true;
    }
    if (rest[i] == '\\' && ++i == rest.size()) return false;
    value += rest[i];
  }
  return false;
}

// RFC 7239 section 4. A part that cannot be read makes everything before it, and itself, count for nothing.
hops forwarded(const header_list& headers) {
  hops out;
  std::string name, value;
  for (const auto& [key, text] : headers) {
    if (!same_text(key, "forwarded")) continue;
    std::string_view rest = text;
    for (bool more = true; more;) {
      hop one;
      bool good = true;
      for (rest = trim(rest); good && !rest.empty() && !rest.starts_with(',');) {
        good = read_pair(rest, name, value);
        if (!good) break;
        if (same_text(name, "for")) one.by_whom = value;
        if (same_text(name, "proto")) one.proto = value;
        if (same_text(name, "host")) one.host = value;
        rest = trim(rest);
        if (rest.starts_with(';')) rest = trim(rest.substr(1));
      }
      if (!good) {
        // Where the next element begins cannot be told.
        out.clear();
        out.emplace_back();
        rest = {};
      } else {
        out.push_back(std::move(one));
      }
      more = rest.starts_with(',');
      if (more) rest.remove_prefix(1);
    }
  }
  return out;
}

std::string origin_of(const hop& said, const header_list& headers) {
  const bool secure = same_text(said.proto, "https");
  if (!secure && !same_text(said.proto, "http")) return {};
  // Most proxies hand the Host on as it came.
  const std::string_view host = said.host.empty() ? find_header(headers, "host").value_or("") : std::string_view(said.host);
  const auto odd = [](char c) {
    return is_control(c) || static_cast<unsigned char>(c) >= 0x7f ||
           std::string_view(" \t,/?#@\\\"<>").find(c) != std::string_view::npos;
  };
  if (host.empty() || std::any_of(host.begin(), host.end(), odd)) return {};
  return (secure ? "https://" : "http://") + std::string(host);
}

// From the end to the first that is not trusted.
client_view walk(const ip_bytes& peer, const hops& said, const header_list& headers, std::span<const network> trusted) {
  client_view out{peer, {}};
  for (std::size_t i = said.size(); i-- > 0 && contains(trusted, out.address);) {
    out.origin = origin_of(said[i], headers);
    const auto next = address_of(said[i].by_whom);
    if (!next) break;
    out.address = *next;
  }
  return out;
}

}  // namespace

client_view view_client(const ip_bytes& peer, const header_list& headers, std::span<const network> trusted,
                        config::forwarded_headers which) {
  if (!contains(trusted, peer)) return {peer, {}};
  const auto x = [&] { return walk(peer, x_forwarded(headers), headers, trusted); };
  const auto standard = [&] { return walk(peer, forwarded(headers), headers, trusted); };
  switch (which) {
    case config::forwarded_headers::x_forwarded: return x();
    case config::forwarded_headers::forwarded: return standard();
    case config::forwarded_headers::any: break;
  }
  const bool has_standard = count_header(headers, "forwarded") > 0;
  const bool has_x = count_header(headers, "x-forwarded-for") + count_header(headers, "x-forwarded-proto") +
                         count_header(headers, "x-forwarded-host") >
                     0;
  if (!has_standard) return x();
  if (!has_x) return standard();
  // A proxy writes one kind and hands the other on as a stranger wrote it; which is which cannot be told here.
  client_view one = x(), other = standard();
  if (one.address != other.address) return {peer, {}};
  if (one.origin.empty()) return other;
  if (!other.origin.empty() && other.origin != one.origin) one.origin.clear();
  return one;
}

}  // namespace recibo::http
