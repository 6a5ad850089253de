#include "byte_stream.hpp"

#include "recibo/core/tls.hpp"

#include <boost/asio/buffer.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <limits>

namespace recibo::http {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

bool must_wait(const error_code& ec) noexcept { return ec == asio::error::would_block || ec == asio::error::try_again; }

int clamp(std::size_t size) noexcept { return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max())); }

// Why a handshake failed, from what OpenSSL left.
std::string_view reason_of(unsigned long code) noexcept {
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return "tls_other";
  const int reason = ERR_GET_REASON(code);
  switch (reason) {
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE: return "tls_client_certificate_missing";
    case SSL_R_CERTIFICATE_VERIFY_FAILED: return "tls_client_certificate_refused";
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST: return "tls_plain_http";
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW: return "tls_version";
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_KEY_SHARE:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
    case SSL_R_NO_SHARED_GROUPS: return "tls_cipher";
    case SSL_R_NO_APPLICATION_PROTOCOL: return "tls_alpn";
    default: return reason >= SSL_AD_REASON_OFFSET ? "tls_alert" : "tls_other";  // an alert: the client does not want us
  }
}

}  // namespace

void byte_stream::free_ssl::operator()(ssl_st* what) const noexcept { SSL_free(what); }

byte_stream::byte_stream(asio::ip::tcp::socket socket) : socket_(std::move(socket)) {
  error_code ignored;
  socket_.non_blocking(true, ignored);
  socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
}

byte_stream::~byte_stream() {
  if (agreed_ && !broken_ && socket_.is_open() && SSL_get_shutdown(ssl_.get()) == 0) {
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
}

byte_stream::outcome byte_stream::read_some(char* to, std::size_t most) {
  if (!ssl_) return read_raw(to, most);
  ERR_clear_error();
  return of_ssl(SSL_read(ssl_.get(), to, clamp(most)));
}

byte_stream::outcome byte_stream::write_some(std::string_view first, std::string_view second) {
  if (ssl_) {
    const std::string_view now = first.empty() ? second : first;
    ERR_clear_error();
    return of_ssl(SSL_write(ssl_.get(), now.data(), clamp(now.size())));
  }
  const std::array<asio::const_buffer, 2> pieces{asio::buffer(first), asio::buffer(second)};
  error_code ec;
  const std::size_t count = socket_.write_some(pieces, ec);
  if (!ec) return {state::done, count};
  return {must_wait(ec) ? state::want_write : state::end, 0};
}

bool byte_stream::pending() const noexcept { return ssl_ && SSL_pending(ssl_.get()) > 0; }

byte_stream::outcome byte_stream::peek(char* to, std::size_t most) {
  error_code ec;
  const std::size_t count = socket_.receive(asio::buffer(to, most), asio::socket_base::message_peek, ec);
  if (!ec) return {state::done, count};
  return {must_wait(ec) ? state::want_read : state::end, 0};
}

byte_stream::outcome byte_stream::read_raw(char* to, std::size_t most) {
  error_code ec;
  const std::size_t count = socket_.read_some(asio::buffer(to, most), ec);
  if (!ec) return {state::done, count};
  return {must_wait(ec) ? state::want_read : state::end, 0};
}

void byte_stream::start_tls(const tls_context& with) {
  ssl_.reset(SSL_new(with.native()));
  if (!ssl_ || SSL_set_fd(ssl_.get(), socket_.native_handle()) != 1) throw std::bad_alloc();
  SSL_set_accept_state(ssl_.get());
}

byte_stream::outcome byte_stream::handshake() {
  ERR_clear_error();
  const outcome out = of_ssl(SSL_do_handshake(ssl_.get()));
  agreed_ = out.state == state::done;
  return out;
}

std::string_view byte_stream::handshake_failure() {
  // The first complaint is the cause; without one the peer has simply gone.
  const auto code = ERR_peek_error();
  ERR_clear_error();
  return code == 0 ? "tls_closed" : reason_of(code);
}

bool byte_stream::shutdown_send() {
  if (agreed_ && !broken_) {
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
    ERR_clear_error();
  }
  error_code ec;
  socket_.shutdown(asio::socket_base::shutdown_send, ec);
  return !ec;
}

byte_stream::outcome byte_stream::of_ssl(int result) {
  if (result > 0) return {state::done, static_cast<std::size_t>(result)};
  switch (SSL_get_error(ssl_.get(), result)) {
    case SSL_ERROR_WANT_READ: return {state::want_read, 0};
    case SSL_ERROR_WANT_WRITE: return {state::want_write, 0};
    case SSL_ERROR_ZERO_RETURN: return {state::end, 0};
    default: broken_ = true; return {state::end, 0};  // after this OpenSSL allows nothing more on it
  }
}

}  // namespace recibo::http
