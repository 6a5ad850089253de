// Whose word about the client counts (S21). Pure.
#pragma once

#include "recibo/config/listener.hpp"
#include "recibo/core/network.hpp"
#include "recibo/http/message.hpp"

#include <span>
#include <string>

namespace recibo::http {

struct client_view {
  // The peer's own address, or behind trusted proxies the last one of their list that is not one of them: what stands before
  // it was written by somebody who is not trusted. An element that is no address ends the search.
  ip_bytes address{};
  // "https://hooks.example.com" as the outermost trusted proxy saw it; empty when no trusted proxy said so.
  std::string origin;
};

// `peer`: the socket's address, or the one of its PROXY header. Headers of a peer that is not trusted are not looked at.
client_view view_client(const ip_bytes& peer, const header_list& headers, std::span<const network> trusted,
                        config::forwarded_headers which);

}  // namespace recibo::http
