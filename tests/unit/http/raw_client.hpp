// A client that sends exactly the bytes it is given, over a blocking loopback socket.
#pragma once

#include "recibo/http/message.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace recibo::http::test {

struct raw_answer {
  int status = 0;  // 0: none came
  header_list headers;
  std::string body;
  std::string head;  // as it came
};

class raw_client {
 public:
  explicit raw_client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int on = 1;
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connected_ = ::connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0;
  }
  ~raw_client() { close(); }
  raw_client(raw_client&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), connected_(other.connected_), buffer_(std::move(other.buffer_)) {}
  raw_client& operator=(raw_client&&) = delete;

  bool connected() const { return connected_; }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  void shutdown_send() { ::shutdown(fd_, SHUT_WR); }

  // False when the peer does not take it all.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // One answer; a body is read by its Content-Length unless `head_only`.
  raw_answer read(std::chrono::milliseconds limit = std::chrono::seconds(10), bool head_only = false) {
    raw_answer got;
    const auto until = std::chrono::steady_clock::now() + limit;
    std::size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
      if (!more(until)) return got;
    }
    got.head = buffer_.substr(0, end + 4);
    buffer_.erase(0, end + 4);
    got.status = std::atoi(got.head.c_str() + 9);
    for (std::size_t at = got.head.find("\r\n") + 2; at + 2 < got.head.size();) {
      const auto stop = got.head.find("\r\n", at);
      const auto colon = got.head.find(": ", at);
      got.headers.emplace_back(got.head.substr(at, colon - at), got.head.substr(colon + 2, stop - colon - 2));
      at = stop + 2;
    }
    const auto length = find_header(got.headers, "content-length");
    const std::size_t size = length && !head_only ? std::stoul(std::string(*length)) : 0;
    while (buffer_.size() < size) {
      if (!more(until)) break;
    }
    got.body = buffer_.substr(0, size);
    buffer_.erase(0, size);
    buffer_.shrink_to_fit();
    return got;
  }

  // Whether the peer closes within `limit` without another byte.
  bool closed(std::chrono::milliseconds limit = std::chrono::seconds(10)) {
    const auto until = std::chrono::steady_clock::now() + limit;
    if (!buffer_.empty()) return false;
    return !more(until) && ended_;
  }

  // Whether nothing comes for this long and the connection stays.
  bool silent(std::chrono::milliseconds time) {
    return buffer_.empty() && !more(std::chrono::steady_clock::now() + time) && !ended_;
  }

 private:
  bool more(std::chrono::steady_clock::time_point until) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now()).count();
    pollfd one{fd_, POLLIN, 0};
    if (left <= 0 || ::poll(&one, 1, static_cast<int>(left)) <= 0) return false;
    char bytes[16384];
    const auto count = ::recv(fd_, bytes, sizeof bytes, 0);
    ended_ = count <= 0;
    if (!ended_) buffer_.append(bytes, static_cast<std::size_t>(count));
    return !ended_;
  }

  int fd_;
  bool connected_ = false;
  bool ended_ = false;
  std::string buffer_;
};

}  // namespace recibo::http::test
