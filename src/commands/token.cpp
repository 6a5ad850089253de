// recibo token new: a random bearer token, and the line for api.tokens. Only its digest is ever kept (decision 15): it is
// random, so that a plain SHA-256 suffices.
#include "commands.hpp"

#include "recibo/core/clock.hpp"
#include "recibo/core/digest.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <memory>
#include <ostream>

namespace recibo::commands {
namespace {

constexpr std::size_t token_bytes = 32;

struct token_options {
  std::string name = "new";
  std::string role = "reader";
  std::vector<std::string> permissions;
  std::string expires;
};

// The rule of the configuration for names.
bool is_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= 63 && name.front() != '-' && name.front() != '_' &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

std::string base64url(std::string_view bytes) {
  std::string out = to_base64(bytes);
  std::replace(out.begin(), out.end(), '+', '-');
  std::replace(out.begin(), out.end(), '/', '_');
  out.erase(out.find_last_not_of('=') + 1);
  return out;
}

// A name that YAML would not read as text stands in quotes.
std::string yaml_text(const std::string& name) {
  const bool plain = name.front() >= 'a' && name.front() <= 'z' && name != "null" && name != "true" && name != "false";
  return plain ? name : '"' + name + '"';
}

// Never with a hyphen in front, which a command line would take for an option.
std::string make_token() {
  std::string out;
  do out = base64url(random_bytes(token_bytes));
  while (out.front() == '-');
  return out;
}

int make(const token_options& asked, context& ctx) {
  if (!is_name(asked.name)) {
    *ctx.err
        << "recibo token new: a name has 1 to 63 characters of a-z, 0-9, \"_\" and \"-\", and begins with a letter or digit\n";
    return exit_wrong;
  }
  if (!asked.expires.empty()) {
    const auto at = parse_rfc3339(asked.expires);
    if (!at || *at <= now()) {
      *ctx.err << "recibo token new: --expires wants an instant in the future with its offset, such as 2030-01-01T00:00:00Z\n";
      return exit_wrong;
    }
  }
  const std::string token = make_token();
  *ctx.out << "# The token. It is shown this once: Recibo keeps only its digest.\n"
           << token << "\n\n# For api.tokens in the configuration:\n";
  *ctx.out << "- {name: " << yaml_text(asked.name) << ", role: " << asked.role;
  if (!asked.permissions.empty()) *ctx.out << ", permissions: [payload]";
  *ctx.out << ", sha256: \"" << to_hex(binary(sha256(token))) << '"';
  if (!asked.expires.empty()) *ctx.out << ", expires: \"" << asked.expires << '"';
  *ctx.out << "}\n";
  return exit_fine;
}

}  // namespace

void add_token(CLI::App& app, context& ctx) {
  auto asked = std::make_shared<token_options>();
  CLI::App* const family = app.add_subcommand("token", "Bearer tokens of the API");
  family->require_subcommand(1);
  CLI::App* const command = family->add_subcommand("new", "Make a token; print it once, and the line for the configuration");
  command->add_option("name", asked->name, "Who it is for: this stands in the audit trail (default: new)");
  command->add_option("--role", asked->role, "support, reader, operator, admin or client (default: reader)")
      ->check(CLI::IsMember({"support", "reader", "operator", "admin", "client"}));
  command->add_option("--permissions", asked->permissions, "payload: may read raw bodies")->check(CLI::IsMember({"payload"}));
  command->add_option("--expires", asked->expires, "Instant after which it is refused, RFC 3339");
  command->callback([asked, &ctx] { ctx.exit_code = make(*asked, ctx); });
}

}  // namespace recibo::commands
