// Secrets as they are written: a text with ${ENV}, or {name, env | file | value | directory, from, until}. No message here ever
// shows one, and what was read enters the settings' digest as SHA-256 only.
#pragma once

#include "reader.hpp"

#include "recibo/core/secret.hpp"
#include "recibo/verify/keyring.hpp"

#include <string>
#include <vector>

namespace recibo::config {

// One secret and where it stands; `good` is false when a problem was reported.
struct read_secret {
  verify::named_secret secret;
  position at;
  bool good = false;
};

// A single secret. `fallback_name` is its name unless it gives one.
read_secret read_one_secret(reading& r, const field& f, std::string fallback_name);

// A list: names "secret-1", "secret-2", … by position unless named; a directory stands for the secrets in its files; an empty
// list, a name twice and a value twice are reported. The order is kept.
std::vector<read_secret> read_secret_list(reading& r, const field& f);

// Text that is secret but is no key: the database's URL. Empty text is allowed and means absent.
bool read_secret_text(reading& r, const field& f, secret& out);

}  // namespace recibo::config
