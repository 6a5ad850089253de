#include "connection.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace recibo::bench {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// The value of a header in a head of HTTP/1.1; empty when it is not there.
std::string_view header(std::string_view head, std::string_view name) {
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  const auto at = std::search(head.begin(), head.end(), name.begin(), name.end(), same);
  if (at == head.end()) return {};
  auto rest = head.substr(static_cast<std::size_t>(at - head.begin()) + name.size());
  rest = rest.substr(0, rest.find('\r'));
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return rest;
}

std::size_t number(std::string_view text) {
  std::size_t out = 0;
  std::from_chars(text.data(), text.data() + text.size(), out);
  return out;
}

}  // namespace

connection::connection(asio::io_context& context, asio::ip::tcp::endpoint to) : socket_(context), to_(std::move(to)) {}

bool connection::open() {
  error_code failed;
  socket_.close(failed);
  socket_.connect(to_, failed);
  if (failed) return false;
  socket_.set_option(asio::ip::tcp::no_delay(true), failed);
  return true;
}

void connection::exchange(std::string request, told then) {
  request_ = std::move(request);
  then_ = std::move(then);
  got_.clear();
  if (!socket_.is_open() && !open()) {
    asio::post(socket_.get_executor(), [this] { finish({}); });
    return;
  }
  asio::async_write(socket_, asio::buffer(request_), [this](error_code failed, std::size_t) {
    if (failed) return finish({});
    read();
  });
}

void connection::read() {
  socket_.async_read_some(asio::buffer(chunk_), [this](error_code failed, std::size_t n) {
    if (failed) return finish({});
    got_.append(chunk_.data(), n);
    if (!complete()) read();
  });
}

bool connection::complete() {
  const auto end = got_.find("\r\n\r\n");
  if (end == std::string::npos) return false;
  const auto head = std::string_view(got_).substr(0, end + 2);
  const auto body = std::string_view(got_).substr(end + 4);
  if (body.size() < number(header(head, "\r\ncontent-length:"))) return false;
  answer out;
  out.status = static_cast<int>(number(head.substr(9, 3)));
  out.replayed = header(head, "\r\nidempotent-replayed:") == "true";
  constexpr std::string_view word = R"("disposition":")";
  if (const auto at = body.find(word); at != std::string_view::npos) {
    const auto rest = body.substr(at + word.size());
    out.disposition = rest.substr(0, rest.find('"'));
  }
  if (header(head, "\r\nconnection:") == "close") {
    error_code ignored;
    socket_.close(ignored);
  }
  finish(out);
  return true;
}

void connection::finish(const answer& what) {
  if (what.status == 0) {
    error_code ignored;
    socket_.close(ignored);
  }
  const auto then = std::move(then_);
  then(what);
}

}  // namespace recibo::bench
