// The header of the PROXY protocol, versions 1 and 2, with which a proxy says whose connection it passes on.
// Source: HAProxy's proxy-protocol.txt, sections 2.1 and 2.2. Pure: bytes may come in any pieces.
#pragma once

#include "recibo/core/network.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::http {

class proxy_header {
 public:
  enum class state {
    more,    // not complete
    done,    // complete; see source()
    broken,  // no such header, or over the bounds
  };
  // A line of version 1 has at most this many bytes with its end; a header of version 2, extensions included, as many as we
  // bear.
  static constexpr std::size_t line_most = 107, binary_most = 1024;

  // How many of these bytes belong to the header; those behind it are the client's, and none of them is looked at.
  std::size_t take(std::string_view bytes);
  state at() const noexcept { return at_; }
  // The client's address; nullopt where the proxy speaks for itself (LOCAL, health checks), or does not know (UNKNOWN, UNSPEC).
  const std::optional<ip_bytes>& source() const noexcept { return source_; }

 private:
  std::size_t wanted() const noexcept;
  state judge();
  state judge_line();
  state judge_binary();

  std::string seen_;
  state at_ = state::more;
  std::optional<ip_bytes> source_;
};

}  // namespace recibo::http
