// recibo send: signs and sends one callback as that provider would, for trying things (contract section 2).
#include "commands.hpp"

#include "exchange.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/core/file.hpp"
#include "recibo/receive/callback_url.hpp"
#include "recibo/receive/compose.hpp"

#include <CLI/CLI.hpp>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>

namespace recibo::commands {
namespace {

// For connecting, sending and waiting for the answer, each.
constexpr std::chrono::seconds send_patience{15};

// The largest body that a service can be told to take.
constexpr std::size_t body_bytes_max = 64 << 20;

struct options {
  std::string provider, to, body_file;
  bool dry_run = false, insecure = false;
  receive::composition what;
};

std::string write_request(const http::request& what, const target& to) {
  std::string path = to.path;
  if (!what.query.empty()) path += (path.find('?') == std::string::npos ? '?' : '&') + what.query;
  std::string out = what.method + ' ' + path + " HTTP/1.1\r\nHost: " + host_of(to) +
                    "\r\nUser-Agent: recibo-send/" RECIBO_VERSION "\r\nConnection: close\r\n";
  for (const auto& [name, value] : what.headers) out += name + ": " + value + "\r\n";
  return out + "Content-Length: " + std::to_string(what.body.size()) + "\r\n\r\n" + what.body;
}

int print_answer(const exchanged& answer, std::ostream& out) {
  out << answer.status << ' ' << answer.reason << '\n';
  for (const char* name : {"Content-Type", "Idempotent-Replayed", "Retry-After", "Allow"}) {
    if (const auto value = http::find_header(answer.headers, name)) out << name << ": " << *value << '\n';
  }
  if (!answer.body.empty()) out << '\n' << answer.body << '\n';
  return answer.status / 100 == 2 ? exit_fine : exit_not_so;
}

// Exactly the bytes, so that a file or pipe holds the request and nothing else. On a terminal the prompt would stand behind the
// body: the line end that prevents it goes another way, and is part of no copy.
void print_request(const std::string& request, context& ctx) {
  *ctx.out << request << std::flush;
  if (isatty(STDOUT_FILENO) == 1 && isatty(STDERR_FILENO) == 1) *ctx.err << std::endl;
}

// A word that stands in no map is sent all the same: to see what becomes of it is a use of this command.
void tell_of_unmapped(const config::provider& p, const std::string& event, context& ctx) {
  if (event.empty() || p.hints || p.events.empty() || p.events.contains(event)) return;
  const auto means_it = [&](const auto& one) { return one.second == event; };
  if (std::any_of(p.events.begin(), p.events.end(), means_it)) return;
  constexpr std::size_t shown_max = 20;
  std::string words;
  std::size_t shown = 0;
  for (const auto& [word, meaning] : p.events) {
    if (++shown > shown_max) break;
    words += (words.empty() ? "" : ", ") + word + " (" + meaning + ')';
  }
  if (p.events.size() > shown_max) words += ", and " + std::to_string(p.events.size() - shown_max) + " more";
  *ctx.err << "recibo send: " << event << " is not among the events of " << p.name << ", so it will be unmapped; there are "
           << words << '\n';
}

int send(options& asked, context& ctx) {
  const auto settings = load_settings(ctx);
  if (!settings) return ctx.exit_code;
  const auto provider = settings->providers.find(asked.provider);
  if (provider == settings->providers.end()) {
    *ctx.err << "recibo send: no provider " << asked.provider << " in " << ctx.config << '\n';
    return exit_wrong;
  }
  if (!asked.body_file.empty()) {
    file_reading body = read_file(asked.body_file, body_bytes_max, true);
    if (!body) {
      *ctx.err << "recibo send: " << asked.body_file << ' ' << to_string(body.why, body_bytes_max) << '\n';
      return exit_wrong;
    }
    asked.what.body = std::move(body.bytes);
  } else if ((asked.what.event.empty() && !provider->second.hints) ||
             (asked.what.request_id.empty() && asked.what.reference.empty())) {
    *ctx.err << "recibo send: --event and one of --request-id and --reference are needed, or --body\n";
    return exit_wrong;
  }
  if (asked.body_file.empty()) tell_of_unmapped(provider->second, asked.what.event, ctx);
  const sys_micros at = now();
  std::string token;
  if (provider->second.callback_url) {
    // As the operation's own, but for its expiry: the service that is asked knows when it was accepted, this command does not.
    token = receive::callback_token(*settings, asked.provider, asked.what.request_id, at, at);
    if (asked.to.empty() && (asked.what.request_id.empty() || token.empty())) {
      *ctx.err << (asked.what.request_id.empty()
                       ? "recibo send: --request-id is needed: each operation of this provider has its own callback URL\n"
                       : "recibo send: no secret of callback_urls is valid now\n");
      return exit_wrong;
    }
    if (asked.what.public_url.empty())
      asked.what.public_url = settings->callback_urls.base + receive::callback_path(asked.provider, token);
  }
  const std::string url =
      asked.to.empty() ? base_url(settings->callbacks) + receive::callback_path(asked.provider, token) : asked.to;
  const auto to = parse_target(url);
  if (!to) {
    *ctx.err << "recibo send: --to wants http:// or https://host[:port]/path\n";
    return exit_wrong;
  }
  const auto made = receive::compose(provider->second, asked.what, at);
  if (!made) {
    *ctx.err << "recibo send: " << made.error().detail << '\n';
    return exit_wrong;
  }
  const std::string request = write_request(*made, *to);
  if (asked.dry_run) {
    print_request(request, ctx);
    return exit_fine;
  }
  tls_manners manners;
  // Our own listener's certificate is for the name that others know it by.
  manners.verify = !asked.insecure && !asked.to.empty();
  const exchanged came = exchange(*to, request, send_patience, manners);
  if (!came.failed.empty()) {
    *ctx.err << "recibo send: " << url << ": " << came.failed << '\n';
    return exit_away;
  }
  return print_answer(came, *ctx.out);
}

}  // namespace

void add_send(CLI::App& app, context& ctx) {
  auto asked = std::make_shared<options>();
  CLI::App* const command = app.add_subcommand("send", "Sign and send one callback as a provider would");
  command->add_option("provider", asked->provider, "Name of the provider in the configuration")->required();
  command->add_option("--request-id", asked->what.request_id, "Request ID of the operation");
  command->add_option("--reference", asked->what.reference, "The provider's own reference of the operation");
  command->add_option("--event", asked->what.event, "The provider's word, or the workflow's event");
  command->add_option("--key", asked->what.key, "Idempotency key; once for each part of a composite one (default: a new one)")
      ->allow_extra_args(false);
  command->add_option("--amount", asked->what.amount,
                      "Amount in major units, for example 19.99; written in the unit that the provider counts in");
  command->add_option("--currency", asked->what.currency, "ISO 4217 code");
  command->add_option("--account", asked->what.account, "Account that the money is of");
  command->add_option("--occurred-at", asked->what.occurred_at, "RFC 3339 (default: now)");
  command->add_option("--sequence", asked->what.sequence, "The provider's sequence number");
  command->add_option("--body", asked->body_file, "File whose bytes are the body, instead of one made from the above");
  command->add_option("--to", asked->to,
                      "http:// or https:// URL (default: the callbacks listener of the configuration on this machine)");
  command->add_option("--public-url", asked->what.public_url,
                      "The URL that is signed, where the scheme signs it (default: public_url)");
  command->add_flag("--insecure", asked->insecure, "Take any certificate of an https:// URL");
  command->add_flag("--dry-run", asked->dry_run, "Print the signed request and send nothing");
  command->callback([asked, &ctx] { ctx.exit_code = send(*asked, ctx); });
}

}  // namespace recibo::commands
