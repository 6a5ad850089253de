#include "url_forms.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>
#include <iterator>

namespace recibo::verify {
namespace {

// Sorted by bytes, which for UTF-8 is the order of code points.
std::vector<std::pair<std::string_view, std::string_view>> sorted(const fields& from) {
  std::vector<std::pair<std::string_view, std::string_view>> out(from.begin(), from.end());
  std::sort(out.begin(), out.end());
  return out;
}

// UTF-8 in the order of its UTF-16 code units, as Java and JavaScript compare: characters beyond U+FFFF, which are surrogates
// there, come before U+E000 to U+FFFF.
bool before_in_utf16(std::string_view a, std::string_view b) noexcept {
  const auto [x, y] = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
  if (x == a.end() || y == b.end()) return x == a.end() && y != b.end();
  const auto rank = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    // Behind every other byte, also those that are no UTF-8: two bytes of one rank would be an order that contradicts itself.
    return byte == 0xee || byte == 0xef ? byte + 0x100 : byte + 0;
  };
  return rank(*x) < rank(*y);
}

}  // namespace

// Source: HubSpot, "Validating requests", v3.
std::string hubspot_url(std::string_view url) {
  static constexpr std::pair<std::string_view, char> escapes[] = {{"3a", ':'}, {"2f", '/'}, {"3f", '?'},  {"40", '@'},
                                                                  {"21", '!'}, {"24", '$'}, {"27", '\''}, {"28", '('},
                                                                  {"29", ')'}, {"2a", '*'}, {"2c", ','},  {"3b", ';'}};
  url = url.substr(0, url.find('#'));
  std::string out;
  out.reserve(url.size());
  std::size_t i = std::min(url.find('?'), url.size());
  out.append(url, 0, i);
  for (; i < url.size(); ++i) {
    if (url[i] == '%' && i + 2 < url.size()) {
      const char code[] = {lower(url[i + 1]), lower(url[i + 2])};
      const auto known = std::find_if(std::begin(escapes), std::end(escapes),
                                      [&](const auto& e) { return e.first == std::string_view(code, 2); });
      if (known != std::end(escapes)) {
        out += known->second;
        i += 2;
        continue;
      }
    }
    out += url[i];
  }
  return out;
}

// Source: Plivo's own libraries, signature v3.
std::string plivo_url(std::string_view url, const fields* form) {
  const auto query = decode_fields(query_of(url));
  url = url.substr(0, url.find('#'));
  std::string out(url.substr(0, url.find('?')));
  std::string listed;
  if (query) {
    for (const auto& [name, value] : sorted(*query)) {
      if (!listed.empty()) listed += '&';
      listed.append(name).append("=").append(value);
    }
  }
  const bool posted = form != nullptr && !form->empty();
  if (!listed.empty() || posted) out.append("?").append(listed);
  if (!posted) return out;
  if (!listed.empty()) out += '.';
  for (const auto& [name, value] : sorted(*form)) out.append(name).append(value);
  return out;
}

// Source: Twilio, "Validating requests"; repeated names as in its libraries, of which that for JavaScript sorts by code units.
std::string sorted_names_and_values(const fields& form) {
  std::vector<std::pair<std::string_view, std::string_view>> all(form.begin(), form.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.first == b.first ? before_in_utf16(a.second, b.second) : before_in_utf16(a.first, b.first);
  });
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::string out;
  for (const auto& [name, value] : all) out.append(name).append(value);
  return out;
}

std::string spelled(std::string_view url, url_variant how) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return std::string(url);
  const std::size_t begin = scheme + 3;
  const std::size_t end = std::min(url.find_first_of("/?#", begin), url.size());
  std::string_view host = url.substr(begin, end - begin);
  // Behind the brackets of an IPv6 address and behind a user.
  const std::size_t colon = host.rfind(':');
  const std::size_t user = host.rfind('@');
  const bool is_port = colon != std::string_view::npos && (user == std::string_view::npos || colon > user) &&
                       host.find(']', colon) == std::string_view::npos;
  if (is_port) host = host.substr(0, colon);
  std::string out(url.substr(0, begin));
  out += host;
  switch (how) {
    case url_variant::no_port: break;
    case url_variant::default_port: out += lower(url[0]) == 'h' && scheme == 5 ? ":443" : ":80"; break;
  }
  return out.append(url.substr(end));
}

}  // namespace recibo::verify
