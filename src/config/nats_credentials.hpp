// The credentials of a user of NATS: a JWT and the seed of the key that it names, as `nsc` writes them into one file. Source:
// NATS documentation, "JWT Authentication"; encoding: nkeys, "NKeys".
#pragma once

#include "reader.hpp"

namespace recibo::config {

// Text, ${ENV} or {file: …}. Checks that both are there, that the seed is one of a user, and that it is the key which the JWT
// names; warns of a JWT that has expired. No message shows any of it.
void read_nats_credentials(reading& r, const field& f, nats_target& out);

}  // namespace recibo::config
