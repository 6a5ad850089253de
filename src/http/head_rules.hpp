// What a request head must keep to beyond what Beast asks (K10, K21). Pure.
#pragma once

#include "recibo/http/message.hpp"
#include "recibo/http/reader.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace recibo::http {

struct head_facts {
  bool http_1_0 = false;
  bool keep_alive = false;
  bool chunked = false;
  bool expects_continue = false;
  std::uint64_t content_length = 0;
};

bool is_control(char c) noexcept;
// A character of a method or a header's name (RFC 9110 section 5.6.2).
bool is_token_char(char c) noexcept;

// 400 malformed_request.
inline refusal malformed_request(std::string detail) { return {400, "malformed_request", std::move(detail)}; }

struct head_scan {
  // One past the empty line that ends the head; nullopt: not there yet.
  std::optional<std::size_t> end;
  // The rule of lines and characters that is broken.
  std::optional<std::string_view> broken;
};

// Looks at the characters from `from` on (0, or three before the end of what was looked at last time): every line ends
// in CR LF, no line begins with a blank, nothing is a control character.
head_scan scan_head(std::string_view bytes, std::size_t from) noexcept;

// What the first bytes of a request already tell, without waiting for the rest of its head: a first byte that begins no
// method (TLS on a plain port), and once it is complete a request line that is not a method, a target and a version (HTTP/0.9):
// 400. 505 for another version than HTTP/1.0 and HTTP/1.1 (the preface of HTTP/2).
std::optional<refusal> check_start(std::string_view bytes);

// Fills `path` and `query` from `target`. False when it is neither "/…" nor the absolute form of an http URL.
bool split_target(request& of);

// Host, framing and expectation. Reads `http_1_0`, fills in the rest but `keep_alive`.
std::optional<refusal> check_head(const header_list& headers, head_facts& facts);

}  // namespace recibo::http
