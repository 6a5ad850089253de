// Whose word about the client's address counts (S21). Pure.
#pragma once

#include "recibo/http/message.hpp"

#include <boost/asio/ip/address.hpp>

#include <string>
#include <vector>

namespace recibo::http {

// An immutable set of networks.
class trusted_networks {
 public:
  // "10.0.0.0/8", "fd00::/8" or a single address. Throws std::invalid_argument for anything else.
  explicit trusted_networks(const std::vector<std::string>& networks = {});
  bool contains(const boost::asio::ip::address& address) const noexcept;
  bool empty() const noexcept { return networks_.empty(); }

 private:
  struct network {
    boost::asio::ip::address base;
    unsigned prefix;
  };
  std::vector<network> networks_;
};

// The socket's address, or behind trusted proxies the last address of X-Forwarded-For that is not one of them: what
// stands before it was written by somebody who is not trusted. An element that is no address ends the search.
std::string client_address(const boost::asio::ip::address& socket, const header_list& headers, const trusted_networks& trusted);

}  // namespace recibo::http
