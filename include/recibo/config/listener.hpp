// One listener of the configuration, and whose word about its clients counts.
#pragma once

#include "recibo/core/tls.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace recibo::config {

// Files as they are named in the configuration, and what they made.
struct tls {
  std::string certificate, client_ca;  // client_ca empty: clients are not asked for a certificate
  std::shared_ptr<const tls_context> context;
};

// Which headers of a trusted proxy say for whom it speaks.
enum class forwarded_headers {
  any,          // X-Forwarded-* or Forwarded; where both stand and differ, neither
  x_forwarded,  // X-Forwarded-For, -Proto, -Host
  forwarded,    // Forwarded (RFC 7239)
};

struct listener {
  std::string address;
  std::uint16_t port = 0;  // 0: any free port; the one taken is in the log line "listening"
  std::optional<config::tls> tls = {};
  // Connections of trusted proxies begin with a PROXY protocol header, version 1 or 2.
  bool proxy_protocol = false;
};

}  // namespace recibo::config
