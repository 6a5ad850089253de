// verify.fetch: where keys come from that are not among the secrets.
#include "scheme_reader.hpp"
#include "secrets.hpp"

#include "recibo/core/url.hpp"

#include <algorithm>

namespace recibo::config {
namespace {

constexpr std::string_view plaid_url = "https://production.plaid.com/webhook_verification_key/get";
constexpr std::string_view circle_url = "https://api.circle.com/v2/notifications/publicKey/{id}";

void read_key_url(reading& r, const field& f, bool id_in_path, key_source& out) {
  std::string text;
  if (!f || !read_text(r, f, text, 2048)) return;
  const auto how = url_template::parse(text, {"id"});
  if (!how) {
    r.error(f.at, "url: not a URL that can be used: " + how.error().detail);
  } else if (!how->base().tls) {
    r.error(f.at, "url: keys are fetched by https only: whoever changes them on the way could sign");
  } else if (how->gaps().empty() == id_in_path) {
    r.error(f.at, id_in_path ? "url: {id} is missing, where the key's ID goes"
                             : "url: this provider is told the key's ID in the body; no {id}");
  } else {
    out.url = std::move(text);
  }
}

void read_key_headers(reading& r, const field& f, key_source& out) {
  for (const named& one : members(r, f)) {
    const std::string name = header_name(one.name);
    if (name.empty()) {
      r.error(one.at, "headers: this is no name of an HTTP header");
      continue;
    }
    for (const auto own :
         {"host", "content-length", "content-type", "transfer-encoding", "connection", "expect", "upgrade", "te", "trailer"})
      if (name == own) r.error(one.at, "headers: " + name + " is set by the client itself");
    read_secret value = read_one_secret(r, one.value, name);
    if (!value.good) continue;
    const auto text = value.secret.text.reveal();
    if (std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
      r.error(value.at, "headers: a control character cannot be sent in a header");
      continue;
    }
    out.headers.emplace_back(name, std::move(value.secret.text));
  }
}

void read_credential(reading& r, section& s, const char* key, secret& out) {
  const field f = s.require(key, "Plaid hands out keys to its customers only");
  if (!f) return;
  read_secret one = read_one_secret(r, f, key);
  if (one.good) out = std::move(one.secret.text);
}

}  // namespace

bool read_key_source(reading& r, section& verify, const verify::scheme& scheme, key_source& out) {
  const field f = verify.get("fetch");
  if (!verify.has("fetch")) return true;
  const std::size_t before = r.problems.size();
  const bool plaid = scheme.kind == verify::scheme_kind::plaid;
  const bool by_id = plaid || !scheme.key.id_header.empty();
  if (!scheme.needs_foreign_key()) {
    r.error(verify.key_at("fetch"), "fetch: the keys of this scheme are its secrets; none are fetched");
    return false;
  }
  if (by_id && verify.has("secrets")) {
    r.error(verify.key_at("fetch"),
            "fetch: where secrets are given they are the keys, and none are fetched; give one of the two");
    return false;
  }
  section s(r, f);
  if (!s.good()) return false;
  if (by_id) {
    out.url = plaid ? plaid_url : circle_url;
    read_key_url(r, s.get("url"), !plaid, out);
    const field headers = s.get("headers");
    read_key_headers(r, headers, out);
    if (!plaid && !s.has("headers"))
      r.error(s.at(), "fetch: headers is required: this provider's API wants to know who asks, by Authorization");
  }
  if (plaid) {
    read_credential(r, s, "client_id", out.client_id);
    read_credential(r, s, "secret", out.client_secret);
  }
  read_networks(r, s.get("allow"), [&](const field&, const network& n) { out.allow.push_back(n); });
  return r.problems.size() == before;
}

}  // namespace recibo::config
