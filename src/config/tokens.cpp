// api.tokens: who may use the API.
#include "sections.hpp"

#include <algorithm>
#include <set>

namespace recibo::config {
namespace {

constexpr choice<role> roles[] = {{"support", role::support},
                                  {"reader", role::reader},
                                  {"operator", role::operator_},
                                  {"admin", role::admin},
                                  {"client", role::client}};

void read_permissions(reading& r, const field& f, token& out) {
  constexpr choice<bool> permissions[] = {{"payload", true}};
  for (const field& one : elements(r, f)) read_word(r, one, out.payload, permissions);
}

void read_digest(reading& r, const field& f, std::string& out) {
  std::string text;
  if (!read_text(r, f, text, 255)) return;
  const bool hex = std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
  if (text.size() != 64 || !hex) {
    r.error(f.at, "sha256: expected 64 hex digits in lower case, as `recibo token new` prints them");
  } else if (text == to_hex(binary(sha256("")))) {
    r.error(f.at, "sha256: this is the digest of nothing; an empty token would be let in");
  } else {
    out = text;
  }
}

token read_token(reading& r, const field& f) {
  token out;
  section s(r, f);
  const field name = s.require("name", "it stands in the audit trail");
  if (name && name.value->expanded) {
    r.error(name.at, "name: names are shown, so they are written out and not taken from the environment");
  } else if (name && read_text(r, name, out.name, 63) && !check_name(r, name.at, "name", out.name)) {
    out.name.clear();
  }
  const field role = s.require("role", "support, reader, operator, admin or client");
  if (role) read_word(r, role, out.role, roles);
  if (const field permissions = s.get("permissions")) read_permissions(r, permissions, out);
  if (const field digest = s.require("sha256", "the token itself is never kept")) read_digest(r, digest, out.sha256);
  sys_micros expires{};
  if (const field at = s.get("expires"); at && read_time(r, at, expires)) {
    out.expires = expires;
    if (expires <= r.now()) r.warn(at.at, "expires: this token has expired and can be removed");
  }
  return out;
}

}  // namespace

void read_api(reading& r, const field& f, settings& out) {
  section s(r, f);
  std::set<std::string> names, digests;
  for (const field& one : elements(r, s.get("tokens"))) {
    token t = read_token(r, one);
    if (!t.name.empty() && !names.insert(t.name).second)
      r.error(one.at, "tokens: the name " + in_quotes(t.name) + " stands here a second time");
    if (!t.sha256.empty() && !digests.insert(t.sha256).second)
      r.error(one.at, "tokens: two tokens have this digest; who used it could not be told");
    out.tokens.push_back(std::move(t));
  }
}

}  // namespace recibo::config
