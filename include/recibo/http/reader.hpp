// Bytes of a connection → one request, strictly (K10, K21): one reading of where a request ends, and in doubt a refusal.
// Beast parses; what Beast 1.81 lets through is refused here: two Host lines or none in HTTP/1.1, a second
// Content-Length even when equal, Transfer-Encoding that is repeated, not exactly `chunked`, or in HTTP/1.0, folded
// headers, bare line ends. Trailers are dropped: they never stand among the headers.
// Pure: no I/O and no clock, so that every split of every request is a row in reader_test.cpp.
#pragma once

#include "recibo/http/message.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::http {

// Why a request is not read on; after the answer the connection is closed.
struct refusal {
  int status = 400;
  std::string_view code;  // literals: malformed_request, header_too_large, body_too_large, …
  std::string detail;     // never a piece of the request
};

class reader {
 public:
  // Largest request line with headers, and largest body after transfer decoding, in bytes.
  struct limits {
    std::size_t header = 8 << 10;
    std::size_t body = 1 << 20;
  };

  enum class state {
    head,     // the header block is not complete
    body,     // the head is known, the body is not complete
    done,     // the request is complete; what is left in the buffer belongs to the next one
    refused,  // see reason()
  };

  explicit reader(limits bounds);
  ~reader();
  reader(const reader&) = delete;
  reader& operator=(const reader&) = delete;

  // Takes what it can from the front of `buffer` and erases it there. Stops at the end of the head, and at the end of the
  // request. When state() is still `head` or `body` it wants more bytes behind those it left.
  // The head is handed over whole: nothing of it is looked at before its last line is there.
  void read_head(std::string& buffer);
  // A body over the limit is refused when it gets there: for a Content-Length before the first byte.
  void read_body(std::string& buffer);

  state at() const noexcept;
  const refusal& reason() const noexcept;

  // Method, target, headers, and once it is `done` the body. The session fills in the rest.
  http::request& request() noexcept;

  // Known from the end of the head on.
  bool http_1_0() const noexcept;
  bool keep_alive() const noexcept;
  bool expects_continue() const noexcept;
  // nullopt for a chunked body, 0 for none.
  std::optional<std::uint64_t> content_length() const noexcept;

  // From here on the body is read over and not kept: its sender has been answered.
  void discard_body() noexcept;
  // Bytes of the body so far, kept or not.
  std::uint64_t received() const noexcept;

 private:
  class impl;
  std::unique_ptr<impl> impl_;
};

}  // namespace recibo::http
