// Why a captured request verifies or does not, for `recibo verify PROVIDER`.
#pragma once

#include <string>

namespace recibo::commands {

struct context;

// As the command line named it.
struct captured_request {
  std::string provider;
  std::string file;                     // head, empty line, body
  std::string headers_file, body_file;  // or the two apart
  std::string at;                       // RFC 3339; empty: now
  std::string public_url;               // what was signed, where the scheme signs the URL; empty: the provider's
  bool json = false;
};

// exit_fine: it verifies; exit_not_so: it does not, and the output says why; exit_wrong: there is nothing to judge.
// Secrets are named and never shown; bytes of the request are escaped and cut.
int explain(const captured_request& asked, context& ctx);

}  // namespace recibo::commands
