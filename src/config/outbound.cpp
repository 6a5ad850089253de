// outbound: what holds for every request that this service makes.
#include "sections.hpp"

#include "recibo/core/file.hpp"
#include "recibo/core/network.hpp"
#include "recibo/verify/public_key.hpp"

namespace recibo::config {
namespace {

constexpr std::size_t authorities_bytes_max = 4 << 20;

// The file's text, relative to the configuration; its content is part of the settings.
std::optional<std::string> read_authorities(reading& r, const field& f) {
  std::string path;
  if (!read_text(r, f, path, 4096)) return std::nullopt;
  const std::string shown = f.value->expanded ? "this file" : "the file " + in_quotes(path);
  file_reading read = read_file(r.folder() / path, authorities_bytes_max);
  if (!read) {
    r.error(f.at, "ca: " + shown + ' ' + to_string(read.why, authorities_bytes_max));
    return std::nullopt;
  }
  if (!verify::trust_store::from_pem(read.bytes)) {
    r.error(f.at, "ca: " + shown + " does not hold certificates in PEM");
    return std::nullopt;
  }
  r.also_read.add("ca").add(path).add(binary(sha256(read.bytes)));
  return std::move(read.bytes);
}

void read_connect_to(reading& r, const field& f, outbound& out) {
  for (const named& one : members(r, f)) {
    // The parser of URLs is the judge of what a host is, as it is when one is called.
    const auto url = parse_http_url("https://" + std::string(one.name) + "/");
    const bool host = url.url && url.url->host.find(':') == std::string::npos && url.url->port == 443 &&
                      !parse_ip(url.url->host) && url.url->target == "/";
    if (!host) {
      r.error(one.at, "connect_to: expected the name of a host, such as api.example.com");
      continue;
    }
    std::string text;
    if (!read_text(r, one.value, text, 63)) continue;
    const auto at = parse_ip_endpoint(text);
    if (!at) {
      r.error(one.value.at, "connect_to: expected an address, with a port or without: 10.0.0.9, 10.0.0.9:8443 or [fd00::9]:8443");
    } else if (classify(at->address) == reach::never) {
      r.error(one.value.at, "connect_to: " + to_string(*at) + " is never reached from here, whatever allows it");
    } else if (!out.connect_to.emplace(url.url->host, *at).second) {
      r.error(one.at, "connect_to: this host stands here twice");
    }
  }
}

}  // namespace

void read_outbound(reading& r, const field& f, settings& out) {
  section s(r, f);
  if (const field ca = s.get("ca")) {
    if (auto text = read_authorities(r, ca)) out.outbound.ca = std::move(*text);
  }
  if (const field to = s.get("connect_to")) read_connect_to(r, to, out.outbound);
}

}  // namespace recibo::config
