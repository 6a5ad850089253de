// The TLS context of outbound connections.
#pragma once

#include <boost/asio/ssl/context.hpp>

namespace recibo::http {

class tls_trust {
 public:
  tls_trust() : context(boost::asio::ssl::context::tls_client) {}
  // A connection takes its settings from it; OpenSSL counts the references, safely from several threads.
  mutable boost::asio::ssl::context context;
};

}  // namespace recibo::http
