#include "exchange.hpp"

#include "recibo/config/settings.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <sys/socket.h>
#include <sys/time.h>

#include <array>
#include <csignal>
#include <memory>

namespace recibo::commands {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;
using answer_parser = beast_http::response_parser<beast_http::string_body>;

constexpr std::size_t answer_bytes_most = 1u << 20;

// Step by step, each step under a deadline.
class conversation {
 public:
  conversation(std::chrono::milliseconds patience, const tls_manners& manners) : patience_(patience), manners_(manners) {}

  // What went wrong; empty: answer() is whole.
  std::string run(const target& to, const std::string& request) {
    asio::ip::tcp::resolver resolver(context_);
    error_code failed;
    const auto endpoints = resolver.resolve(to.host, to.port, failed);
    if (failed) return "cannot resolve the host: " + failed.message();
    asio::async_connect(socket_, endpoints, [&](error_code ec, const asio::ip::tcp::endpoint&) { last_ = ec; });
    if (!step()) return "cannot connect: " + last_.message();
    if (to.tls) return run_tls(to, request);
    asio::async_write(socket_, asio::buffer(request), [&](error_code ec, std::size_t) { last_ = ec; });
    // A refusal may come before all was sent: what the other side says counts more than that it stopped reading.
    step();
    parser_.eager(true);
    parser_.body_limit(answer_bytes_most);
    while (!parser_.is_done()) {
      std::size_t got = 0;
      socket_.async_read_some(asio::buffer(chunk_), [&](error_code ec, std::size_t n) {
        last_ = ec;
        got = n;
      });
      const bool more = step();
      if (!more && last_ != asio::error::eof) return "no answer: " + last_.message();
      if (const std::string wrong = take(more ? got : 0); !wrong.empty()) return wrong;
    }
    return {};
  }

  const answer_parser::value_type& answer() const { return parser_.get(); }

 private:
  // What came into chunk_; 0: the other side has closed.
  std::string take(std::size_t got) {
    error_code broken;
    if (got > 0) {
      pending_.append(chunk_.data(), got);
      const std::size_t used = parser_.put(asio::buffer(pending_), broken);
      pending_.erase(0, used);
      if (broken == beast_http::error::need_more) broken = {};
    } else {
      parser_.put_eof(broken);
      if (!broken && !parser_.is_done()) return "the connection was closed without an answer";
    }
    return broken ? "the answer is no HTTP: " + broken.message() : std::string();
  }

  // Blocking, each call bounded by the socket's own time-outs.
  std::string run_tls(const target& to, const std::string& request) {
    error_code ignored;
    socket_.non_blocking(false, ignored);
    socket_.native_non_blocking(false, ignored);
    const auto micros = std::chrono::duration_cast<std::chrono::microseconds>(patience_).count();
    const timeval limit{micros / 1'000'000, micros % 1'000'000};
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    ::setsockopt(socket_.native_handle(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    std::signal(SIGPIPE, SIG_IGN);
    const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
    SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
    SSL_CTX_set_options(context.get(), SSL_OP_IGNORE_UNEXPECTED_EOF);
    if (manners_.verify) {
      SSL_CTX_set_default_verify_paths(context.get());
      SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    }
    if (!manners_.certificate.empty() &&
        (SSL_CTX_use_certificate_chain_file(context.get(), manners_.certificate.c_str()) != 1 ||
         SSL_CTX_use_PrivateKey_file(context.get(), manners_.key.c_str(), SSL_FILETYPE_PEM) != 1))
      return "the client certificate and its key cannot be used: " + complaint();
    const std::unique_ptr<SSL, decltype(&SSL_free)> ssl(SSL_new(context.get()), &SSL_free);
    SSL_set_fd(ssl.get(), socket_.native_handle());
    // As SSL_set_tlsext_host_name, which is a macro with a C cast.
    std::string name = to.host;
    SSL_ctrl(ssl.get(), SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    if (manners_.verify) SSL_set1_host(ssl.get(), to.host.c_str());
    if (SSL_connect(ssl.get()) != 1) return "no TLS: " + complaint();
    SSL_write(ssl.get(), request.data(), static_cast<int>(request.size()));
    parser_.eager(true);
    parser_.body_limit(answer_bytes_most);
    while (!parser_.is_done()) {
      const int got = SSL_read(ssl.get(), chunk_.data(), static_cast<int>(chunk_.size()));
      if (got <= 0 && SSL_get_error(ssl.get(), got) != SSL_ERROR_ZERO_RETURN) return "no answer: " + complaint();
      if (const std::string wrong = take(got > 0 ? static_cast<std::size_t>(got) : 0); !wrong.empty()) return wrong;
    }
    return {};
  }

  static std::string complaint() {
    const char* reason = ERR_reason_error_string(ERR_peek_error());
    ERR_clear_error();
    return reason != nullptr ? reason : "the connection was closed, or nothing came in time";
  }

  bool step() {
    last_ = asio::error::would_block;
    context_.restart();
    context_.run_for(patience_);
    if (!context_.stopped()) {
      socket_.close();
      context_.run();
      last_ = asio::error::timed_out;
    }
    return !last_;
  }

  std::chrono::milliseconds patience_;
  const tls_manners& manners_;
  asio::io_context context_;
  asio::ip::tcp::socket socket_{context_};
  error_code last_;
  std::array<char, 8192> chunk_{};
  std::string pending_;
  answer_parser parser_;
};

}  // namespace

std::optional<target> parse_target(std::string_view url) {
  target out;
  out.tls = url.starts_with("https://");
  if (!out.tls && !url.starts_with("http://")) return std::nullopt;
  url.remove_prefix(out.tls ? 8 : 7);
  const std::size_t slash = std::min(url.find_first_of("/?"), url.size());
  std::string_view authority = url.substr(0, slash);
  out.port = out.tls ? "443" : "80";
  out.path = url.substr(slash);
  if (!out.path.starts_with('/')) out.path.insert(0, 1, '/');
  if (authority.find('@') != std::string_view::npos) return std::nullopt;
  const std::size_t bracket = authority.find(']');
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    out.port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']')) authority = authority.substr(1, authority.size() - 2);
  out.host = authority;
  const bool digits = !out.port.empty() && out.port.find_first_not_of("0123456789") == std::string::npos;
  const bool printable = out.path.find_first_of(" \r\n\t") == std::string::npos;
  return out.host.empty() || !digits || !printable ? std::nullopt : std::optional(std::move(out));
}

std::string host_of(const target& to) {
  const bool v6 = to.host.find(':') != std::string::npos;
  return (v6 ? '[' + to.host + ']' : to.host) + ':' + to.port;
}

std::string base_url(const config::listener& of) {
  std::string host = of.address;
  if (host.empty() || host == "0.0.0.0" || host == "::") host = "127.0.0.1";
  if (host.find(':') != std::string::npos) host = '[' + host + ']';
  return (of.tls ? "https://" : "http://") + host + ':' + std::to_string(of.port);
}

exchanged exchange(const target& to, const std::string& request, std::chrono::milliseconds patience, const tls_manners& manners) {
  conversation with_it(patience, manners);
  exchanged out;
  out.failed = with_it.run(to, request);
  if (!out.failed.empty()) return out;
  const auto& answer = with_it.answer();
  out.status = static_cast<int>(answer.result_int());
  out.reason = std::string(answer.reason());
  for (const auto& one : answer) out.headers.emplace_back(std::string(one.name_string()), std::string(one.value()));
  out.body = answer.body();
  return out;
}

}  // namespace recibo::commands
