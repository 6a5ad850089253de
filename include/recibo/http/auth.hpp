// Bearer token → who asks (contract section 5). Tokens are random, so a plain SHA-256 of each stands in the configuration
// (decision 15). Pure: takes the time as an argument. Safe from any thread.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/clock.hpp"
#include "recibo/core/error.hpp"
#include "recibo/http/message.hpp"

#include <optional>
#include <string>
#include <vector>

namespace recibo::http {

struct principal {
  std::string name;  // of the token: the actor in the audit trail
  config::role role = config::role::reader;
  bool payload = false;               // permission `payload`
  std::optional<std::string> client;  // for role `client`: the tenant, which is the token's name (R35)
};

// Compares the digest of what was presented with every token's, each in constant time and none left out, so that
// neither the answer's time nor its text tells which tokens exist.
// permanent::unauthorized   no Authorization header or two of them, another scheme than Bearer, an unknown or expired token
result<principal> authenticate(const header_list& headers, const std::vector<config::token>& tokens, sys_micros now);

// support < reader < operator < admin. `client` stands apart: it permits only what asks for `client`, and what asks for
// `client` is permitted to nobody else; an endpoint that is open to both asks twice.
bool permits(config::role held, config::role least) noexcept;

// permanent::forbidden   the role does not suffice
result<void> require_role(const principal& who, config::role least);
// permanent::forbidden   the permission `payload` is not there
result<void> require_payload(const principal& who);

}  // namespace recibo::http
