#include "recibo/http/auth.hpp"

#include "recibo/core/digest.hpp"

#include <algorithm>

namespace recibo::http {
namespace {

// "Bearer" in any case, at least one blank, then token68 (RFC 6750 section 2.1). Empty: not that.
std::string_view bearer_token(std::string_view value) noexcept {
  static constexpr std::string_view scheme = "bearer";
  if (value.size() <= scheme.size() || value[scheme.size()] != ' ') return {};
  for (std::size_t i = 0; i < scheme.size(); ++i) {
    if ((value[i] | 0x20) != scheme[i]) return {};
  }
  value.remove_prefix(scheme.size());
  value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~+/=").find(c) != std::string_view::npos;
  };
  return std::all_of(value.begin(), value.end(), allowed) ? value : std::string_view();
}

int rank(config::role r) noexcept {
  switch (r) {
    case config::role::support: return 1;
    case config::role::reader: return 2;
    case config::role::operator_: return 3;
    case config::role::admin: return 4;
    case config::role::client: return 0;
  }
  return 0;
}

}  // namespace

result<principal> authenticate(const header_list& headers, const std::vector<config::token>& tokens, sys_micros now) {
  const auto refused = [] {
    return error(permanent::unauthorized, "Send `Authorization: Bearer` with a token that is valid now.");
  };
  if (count_header(headers, "authorization") != 1) return refused();
  const std::string_view presented = bearer_token(*find_header(headers, "authorization"));
  if (presented.empty()) return refused();
  const std::string digest = to_hex(binary(sha256(presented)));
  const config::token* found = nullptr;
  for (const config::token& one : tokens) {
    if (equal_constant_time(digest, one.sha256)) found = &one;
  }
  if (!found || (found->expires && *found->expires <= now)) return refused();
  principal who;
  who.name = found->name;
  who.role = found->role;
  who.payload = found->payload;
  if (found->role == config::role::client) who.client = found->name;
  return who;
}

bool permits(config::role held, config::role least) noexcept {
  const bool apart = held == config::role::client || least == config::role::client;
  return apart ? held == least : rank(held) >= rank(least);
}

result<void> require_role(const principal& who, config::role least) {
  if (permits(who.role, least)) return {};
  return error(permanent::forbidden, "This needs the role " + std::string(to_string(least)) + "; the token has " +
                                         std::string(to_string(who.role)) + ".");
}

result<void> require_payload(const principal& who) {
  if (who.payload) return {};
  return error(permanent::forbidden, "This needs the permission payload.");
}

}  // namespace recibo::http
