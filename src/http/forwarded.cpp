#include "forwarded.hpp"

#include <charconv>
#include <stdexcept>

namespace recibo::http {
namespace {

using boost::asio::ip::address;

// ::ffff:10.0.0.1 is 10.0.0.1.
address plain(const address& a) {
  if (a.is_v6() && a.to_v6().is_v4_mapped()) return boost::asio::ip::make_address_v4(boost::asio::ip::v4_mapped, a.to_v6());
  return a;
}

template <class Bytes>
bool same_prefix(const Bytes& a, const Bytes& b, unsigned bits) noexcept {
  for (std::size_t i = 0; bits > 0 && i < a.size(); ++i) {
    const unsigned here = bits < 8 ? bits : 8;
    if ((a[i] ^ b[i]) >> (8 - here)) return false;
    bits -= here;
  }
  return true;
}

std::string_view trim(std::string_view text) noexcept {
  const auto from = text.find_first_not_of(" \t");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

}  // namespace

trusted_networks::trusted_networks(const std::vector<std::string>& networks) {
  for (const std::string& text : networks) {
    const auto slash = text.find('/');
    boost::system::error_code ec;
    const address base = plain(boost::asio::ip::make_address(text.substr(0, slash), ec));
    if (ec) throw std::invalid_argument("not a network: " + text);
    const unsigned most = base.is_v4() ? 32 : 128;
    unsigned prefix = most;
    if (slash != std::string::npos) {
      const char* end = text.data() + text.size();
      const auto [at, failure] = std::from_chars(text.data() + slash + 1, end, prefix);
      if (failure != std::errc() || at != end || prefix > most) throw std::invalid_argument("not a network: " + text);
    }
    networks_.push_back({base, prefix});
  }
}

bool trusted_networks::contains(const address& a) const noexcept {
  for (const network& one : networks_) {
    if (one.base.is_v4() && a.is_v4() && same_prefix(one.base.to_v4().to_bytes(), a.to_v4().to_bytes(), one.prefix)) return true;
    if (one.base.is_v6() && a.is_v6() && same_prefix(one.base.to_v6().to_bytes(), a.to_v6().to_bytes(), one.prefix)) return true;
  }
  return false;
}

std::string client_address(const address& socket, const header_list& headers, const trusted_networks& trusted) {
  address client = plain(socket);
  if (trusted.empty() || !trusted.contains(client)) return client.to_string();
  // Several headers are one list, in order; it is read from its end.
  std::string list;
  for (const auto& [name, value] : headers) {
    if (same_name(name, "x-forwarded-for")) list.append(list.empty() ? "" : ",").append(value);
  }
  std::string_view rest = list;
  while (!rest.empty() && trusted.contains(client)) {
    const auto comma = rest.rfind(',');
    const std::string_view last = trim(comma == std::string_view::npos ? rest : rest.substr(comma + 1));
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(0, comma);
    boost::system::error_code ec;
    const address next = boost::asio::ip::make_address(last, ec);
    if (ec) break;
    client = plain(next);
  }
  return client.to_string();
}

}  // namespace recibo::http
