#include "exchange.hpp"

#include "recibo/config/settings.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <array>

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
  explicit conversation(std::chrono::milliseconds patience) : patience_(patience) {}

  // What went wrong; empty: answer() is whole.
  std::string run(const target& to, const std::string& request) {
    asio::ip::tcp::resolver resolver(context_);
    error_code failed;
    const auto endpoints = resolver.resolve(to.host, to.port, failed);
    if (failed) return "cannot resolve the host: " + failed.message();
    asio::async_connect(socket_, endpoints, [&](error_code ec, const asio::ip::tcp::endpoint&) { last_ = ec; });
    if (!step()) return "cannot connect: " + last_.message();
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
      error_code broken;
      if (more) {
        pending_.append(chunk_.data(), got);
        const std::size_t used = parser_.put(asio::buffer(pending_), broken);
        pending_.erase(0, used);
        if (broken == beast_http::error::need_more) broken = {};
      } else if (last_ == asio::error::eof) {
        parser_.put_eof(broken);
        if (!broken && !parser_.is_done()) return "the connection was closed without an answer";
      } else {
        return "no answer: " + last_.message();
      }
      if (broken) return "the answer is no HTTP: " + broken.message();
    }
    return {};
  }

  const answer_parser::value_type& answer() const { return parser_.get(); }

 private:
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
  asio::io_context context_;
  asio::ip::tcp::socket socket_{context_};
  error_code last_;
  std::array<char, 8192> chunk_{};
  std::string pending_;
  answer_parser parser_;
};

}  // namespace

std::optional<target> parse_target(std::string_view url) {
  constexpr std::string_view scheme = "http://";
  if (!url.starts_with(scheme)) return std::nullopt;
  url.remove_prefix(scheme.size());
  const std::size_t slash = std::min(url.find_first_of("/?"), url.size());
  std::string_view authority = url.substr(0, slash);
  target out{{}, "80", std::string(url.substr(slash))};
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
  return "http://" + host + ':' + std::to_string(of.port);
}

exchanged exchange(const target& to, const std::string& request, std::chrono::milliseconds patience) {
  conversation with_it(patience);
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
