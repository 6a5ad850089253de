#include "head_rules.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>
#include <charconv>

namespace recibo::http {
namespace {

// The first byte of a TLS record that holds a handshake.
constexpr char tls_handshake = 0x16;

bool is_version(std::string_view text) noexcept {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return text.size() == 8 && text.starts_with("HTTP/") && digit(text[5]) && text[6] == '.' && digit(text[7]);
}

}  // namespace

bool is_control(char c) noexcept { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

bool is_token_char(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

head_scan scan_head(std::string_view bytes, std::size_t from) noexcept {
  for (std::size_t i = from; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (!is_control(c) || c == '\t') continue;
    if (c == '\n' && i > 0 && bytes[i - 1] == '\r') {
      if (i >= 3 && bytes[i - 2] == '\n') return {i + 1, {}};
      if (i + 1 < bytes.size() && (bytes[i + 1] == ' ' || bytes[i + 1] == '\t'))
        return {{}, "A header is folded or begins with a blank."};
      continue;
    }
    if (c == '\r') {
      if (i + 1 == bytes.size() || bytes[i + 1] == '\n') continue;
      return {{}, "A line ends in CR without LF."};
    }
    if (c == '\n') return {{}, "A line ends in LF without CR."};
    return {{}, "Request line or headers hold a control character."};
  }
  return {};
}

std::optional<refusal> check_start(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  if (bytes.front() == tls_handshake) return malformed_request("A TLS handshake arrived, and this listener speaks plain HTTP.");
  if (!is_token_char(bytes.front())) return malformed_request("The request does not begin with a method.");
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  // A control character is the scan's to report, wherever the line ends.
  if (line.size() == bytes.size() || std::any_of(line.begin(), line.end(), is_control)) return std::nullopt;
  const std::size_t target = line.find(' '), version = line.rfind(' ');
  const bool three = target != std::string_view::npos && version > target + 1 &&
                     line.substr(target + 1, version - target - 1).find(' ') == std::string_view::npos;
  if (!three || !is_version(line.substr(version + 1)))
    return malformed_request("The request line is not a method, a target and a version of HTTP.");
  const std::string_view spoken = line.substr(version + 1);
  if (spoken == "HTTP/1.0" || spoken == "HTTP/1.1") return std::nullopt;
  return refusal{505, "http_version_not_supported", "This listener speaks HTTP/1.0 and HTTP/1.1."};
}

bool split_target(request& of) {
  std::string_view rest = of.target;
  const auto foreign = [](char c) { return static_cast<unsigned char>(c) >= 0x7f || c == '#'; };
  if (std::any_of(rest.begin(), rest.end(), foreign)) return false;
  if (!rest.starts_with('/')) {
    const auto authority = rest.find("://");
    if (authority == std::string_view::npos) return false;
    if (const auto scheme = rest.substr(0, authority); !same_text(scheme, "http") && !same_text(scheme, "https")) return false;
    rest.remove_prefix(authority + 3);
    const auto end = std::min(rest.find_first_of("/?"), rest.size());
    if (end == 0) return false;
    rest.remove_prefix(end);
  }
  const auto mark = rest.find('?');
  of.path = rest.substr(0, mark);
  if (of.path.empty()) of.path = "/";
  of.query = mark == std::string_view::npos ? std::string_view() : rest.substr(mark + 1);
  return true;
}

std::optional<refusal> check_head(const header_list& headers, head_facts& facts) {
  const std::size_t hosts = count_header(headers, "host");
  if (hosts > 1) return malformed_request("There is more than one Host header.");
  if (hosts == 0 && !facts.http_1_0) return malformed_request("There is no Host header.");
  if (hosts == 1 && find_header(headers, "host")->find_first_of(" \t,/?#@\\") != std::string_view::npos)
    return malformed_request("The Host header is not a host.");

  const std::size_t lengths = count_header(headers, "content-length");
  const std::size_t codings = count_header(headers, "transfer-encoding");
  if (lengths > 1) return malformed_request("There is more than one Content-Length header.");
  if (codings > 1) return malformed_request("There is more than one Transfer-Encoding header.");
  if (lengths == 1 && codings == 1) return malformed_request("Content-Length and Transfer-Encoding exclude each other.");
  if (codings == 1) {
    if (facts.http_1_0) return malformed_request("HTTP/1.0 has no Transfer-Encoding.");
    if (!same_text(*find_header(headers, "transfer-encoding"), "chunked"))
      return malformed_request("The only Transfer-Encoding is chunked.");
    facts.chunked = true;
  }
  if (lengths == 1) {
    const std::string_view text = *find_header(headers, "content-length");
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), facts.content_length);
    if (failure != std::errc() || end != text.data() + text.size())
      return malformed_request("The Content-Length is not a number.");
  }

  // An HTTP/1.0 sender does not wait for 100 (RFC 9110 section 10.1.1).
  if (facts.http_1_0) return std::nullopt;
  for (const auto& [name, value] : headers) {
    if (!same_text(name, "expect")) continue;
    if (!same_text(value, "100-continue")) return refusal{417, "expectation_failed", "The only expectation is 100-continue."};
    facts.expects_continue = true;
  }
  return std::nullopt;
}

}  // namespace recibo::http
