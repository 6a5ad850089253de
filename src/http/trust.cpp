#include "trust.hpp"

#include "recibo/http/client.hpp"

#include <boost/asio/buffer.hpp>

#include <openssl/ssl.h>

#include <array>

namespace recibo::http {

result<std::shared_ptr<const tls_trust>> load_tls_trust(const std::string& more) {
  auto out = std::make_shared<tls_trust>();
  SSL_CTX* const context = out->context.native_handle();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  static constexpr std::array<unsigned char, 9> http_1_1{8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  SSL_CTX_set_alpn_protos(context, http_1_1.data(), http_1_1.size());
  boost::system::error_code ec;
  out->context.set_default_verify_paths(ec);
  if (ec) return misconfigured("the system's certificates cannot be read: " + ec.message());
  if (!more.empty()) {
    out->context.add_certificate_authority(boost::asio::buffer(more), ec);
    if (ec) return misconfigured("there is no certificate in PEM");
  }
  return std::shared_ptr<const tls_trust>(std::move(out));
}

}  // namespace recibo::http
