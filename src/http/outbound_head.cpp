#include "outbound_head.hpp"

#include "recibo/core/ascii.hpp"

#include <algorithm>
#include <array>

namespace recibo::http {
namespace {

bool is_header_name(std::string_view text) noexcept {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
  });
}

bool is_header_value(std::string_view text) noexcept {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); });
}

// They decide where a message goes and where it ends.
constexpr std::array<std::string_view, 8> of_the_client{"host",    "connection", "content-length", "transfer-encoding", "expect",
                                                        "upgrade", "te",         "trailer"};

// The parser of URLs is the judge: what it does not read back as the same is none.
bool is_sound(const http_url& url) {
  const auto again = parse_http_url(url.origin() + url.target);
  return again.url && again.url->tls == url.tls && again.url->host == url.host && again.url->port == url.port &&
         again.url->target == url.target;
}

}  // namespace

result<std::string> wire_of(const outbound_request& what, bool plain_http) {
  if (!is_sound(what.url)) return error(permanent::url_refused, "The URL cannot be called.");
  if (!what.url.tls && !plain_http) return error(permanent::url_refused, "Only https is called here.");
  if (!is_header_name(what.method) || what.method == "CONNECT") return malformed("The method cannot be sent.");
  std::string out;
  out.reserve(512 + what.body.size());
  const auto line = [&](std::string_view name, std::string_view value) {
    out.append(name).append(": ").append(value).append("\r\n");
  };
  out.append(what.method).append(" ").append(what.url.target).append(" HTTP/1.1\r\n");
  line("Host", what.url.authority());
  if (count_header(what.headers, "user-agent") == 0) line("User-Agent", "recibo/" RECIBO_VERSION);
  if (count_header(what.headers, "accept-encoding") == 0) line("Accept-Encoding", "identity");
  for (const auto& [name, value] : what.headers) {
    const bool own = std::any_of(of_the_client.begin(), of_the_client.end(), [&](auto one) { return same_text(one, name); });
    if (own || !is_header_name(name) || !is_header_value(value)) return malformed("A header cannot be sent.");
    line(name, value);
  }
  if (!what.body.empty() || (what.method != "GET" && what.method != "HEAD"))
    line("Content-Length", std::to_string(what.body.size()));
  out.append("\r\n").append(what.body);
  return out;
}

}  // namespace recibo::http
