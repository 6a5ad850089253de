// listen and limits: where requests come in, and how much of them is borne.
#include "sections.hpp"

#include "recibo/core/network.hpp"

namespace recibo::config {
namespace {

void read_listener(reading& r, const field& f, listener& out) {
  section s(r, f);
  if (const field address = s.get("address")) {
    std::string text;
    if (read_text(r, address, text, 63)) {
      if (parse_ip(text)) {
        out.address = text;
      } else {
        r.error(address.at, "address: expected an IP address such as 0.0.0.0, 127.0.0.1 or ::");
      }
    }
  }
  if (const field port = s.get("port")) read_int(r, port, out.port, 0, 65535);
  if (const field proxied = s.get("proxy_protocol")) read_bool(r, proxied, out.proxy_protocol);
  if (const field tls = s.get("tls")) read_tls_files(r, tls, out.tls);
}

void read_trusted(reading& r, const field& f, settings& out) {
  read_networks(r, f, [&](const field& one, const network& n) {
    if (n.prefix == 0 || (is_v4(n.base) && n.prefix == 96))
      r.warn(one.at, "trusted_proxies: this is everybody, and anybody may say for whom he speaks");
    out.trusted_proxies.push_back(n);
  });
}

bool overlap(const listener& a, const listener& b) {
  const auto any = [](const std::string& address) { return address == "0.0.0.0" || address == "::"; };
  return a.port == b.port && a.port != 0 && (a.address == b.address || any(a.address) || any(b.address));
}

}  // namespace

void read_listen(reading& r, const field& f, settings& out) {
  section s(r, f);
  const field callbacks = s.get("callbacks"), api = s.get("api");
  if (callbacks) read_listener(r, callbacks, out.callbacks);
  if (api) read_listener(r, api, out.api);
  if (overlap(out.callbacks, out.api))
    r.error(api ? api.at : s.at(),
            "listen: callbacks and api have the same port; they are two listeners, so that one of them can be exposed alone");
  if (const field trusted = s.get("trusted_proxies")) read_trusted(r, trusted, out);
  constexpr choice<forwarded_headers> words[] = {{"any", forwarded_headers::any},
                                                 {"x-forwarded", forwarded_headers::x_forwarded},
                                                 {"forwarded", forwarded_headers::forwarded}};
  if (const field forwarded = s.get("forwarded")) read_word(r, forwarded, out.forwarded, words);
  for (const auto& [from, of] : {std::pair(callbacks, &out.callbacks), std::pair(api, &out.api)})
    if (of->proxy_protocol && out.trusted_proxies.empty())
      r.error(from.at, std::string(from.name) + ": proxy_protocol without trusted_proxies: no proxy's header would be taken");
}

void read_limits(reading& r, const field& f, settings& out) {
  section s(r, f);
  config::limits& l = out.limits;
  const field body = s.get("body"), in_flight = s.get("in_flight");
  if (body) read_size(r, body, l.body, "1KiB", "64MiB");
  if (const field header = s.get("header")) read_size(r, header, l.header, "1KiB", "64KiB");
  if (const field connections = s.get("connections")) read_int(r, connections, l.connections, 1, 1'000'000);
  if (in_flight) read_size(r, in_flight, l.in_flight, "1MiB", "16GiB");
  if (const field t = s.get("header_timeout")) read_duration(r, t, l.header_timeout, "100ms", "5m");
  if (const field t = s.get("body_timeout")) read_duration(r, t, l.body_timeout, "100ms", "10m");
  if (const field t = s.get("idle_timeout")) read_duration(r, t, l.idle_timeout, "1s", "1h");
  if (l.in_flight < l.body)
    r.error(in_flight ? in_flight.at
            : body    ? body.at
                      : s.at(),
            "limits: in_flight is less than body, so that no body of that size could be taken");
}

}  // namespace recibo::config
