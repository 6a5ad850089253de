#include "link.hpp"

#include "trust.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace recibo::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto link_token = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t read_size = 16 << 10;

asio::ip::address to_asio(const ip_bytes& address) {
  if (!is_v4(address)) return asio::ip::address_v6(address);
  asio::ip::address_v4::bytes_type four{};
  std::copy_n(address.begin() + 12, 4, four.begin());
  return asio::ip::address_v4(four);
}

// The name or address that the certificate has to be for, and the name that the server is told.
bool expect_host(SSL* ssl, const std::string& host) {
  X509_VERIFY_PARAM* const rules = SSL_get0_param(ssl);
  if (parse_ip(host)) return X509_VERIFY_PARAM_set1_ip_asc(rules, host.c_str()) == 1;
  X509_VERIFY_PARAM_set_hostflags(rules, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (X509_VERIFY_PARAM_set1_host(rules, host.c_str(), host.size()) != 1) return false;
  // What the macro SSL_set_tlsext_host_name does; the name is copied.
  return SSL_ctrl(ssl, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(host.c_str())) == 1;
}

}  // namespace

asio::awaitable<result<void>> link::connect(ip_bytes to, std::uint16_t port) {
  address = to;
  const tcp::endpoint endpoint(to_asio(to), port);
  const auto [ec] = co_await socket_.async_connect(endpoint, link_token);
  if (ec) co_return error(transient::connect_failed, "No connection to " + to_string(to) + ": " + ec.message() + ".");
  error_code ignored;
  socket_.set_option(tcp::no_delay(true), ignored);
  co_return result<void>();
}

asio::awaitable<result<void>> link::secure(const tls_trust& trust, std::string host) {
  tls_.emplace(socket_, trust.context);
  if (!expect_host(tls_->native_handle(), host)) co_return error(transient::tls_failed, "TLS cannot be set up.");
  const auto [ec] = co_await tls_->async_handshake(asio::ssl::stream_base::client, link_token);
  if (!ec) co_return result<void>();
  const long verdict = SSL_get_verify_result(tls_->native_handle());
  if (verdict != X509_V_OK)
    co_return error(permanent::certificate_refused,
                    "The certificate of " + host + " is refused: " + X509_verify_cert_error_string(verdict) + ".");
  co_return error(transient::tls_failed, "TLS with " + host + " failed: " + ec.message() + ".");
}

asio::awaitable<link::outcome> link::write(std::string_view wire) {
  const asio::const_buffer bytes(wire.data(), wire.size());
  if (tls_) {
    const auto [ec, count] = co_await asio::async_write(*tls_, bytes, link_token);
    co_return outcome{ec, count};
  }
  const auto [ec, count] = co_await asio::async_write(socket_, bytes, link_token);
  co_return outcome{ec, count};
}

asio::awaitable<link::outcome> link::read(std::string& to) {
  const std::size_t before = to.size();
  to.resize(before + read_size);
  const asio::mutable_buffer room(to.data() + before, read_size);
  outcome got;
  if (tls_) {
    const auto [ec, count] = co_await tls_->async_read_some(room, link_token);
    got = outcome{ec, count};
  } else {
    const auto [ec, count] = co_await socket_.async_read_some(room, link_token);
    got = outcome{ec, count};
  }
  to.resize(before + got.bytes);
  co_return got;
}

bool link::stale() {
  char one = 0;
  return recv(socket_.native_handle(), &one, 1, MSG_PEEK | MSG_DONTWAIT) >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK);
}

}  // namespace recibo::http
