// recibo send: signs and sends one callback as that provider would, for trying things (contract section 2).
#include "commands.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/receive/compose.hpp"

#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include <CLI/CLI.hpp>

#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <ostream>
#include <sstream>

namespace recibo::commands {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using boost::system::error_code;
using answer_parser = beast_http::response_parser<beast_http::string_body>;

// For connecting, sending and waiting for the answer, each.
constexpr std::chrono::seconds patience{15};

struct options {
  std::string provider, to, body_file;
  bool dry_run = false;
  receive::composition what;
};

struct target {
  std::string host, port, path;
};

// http://host[:port][/path[?query]]; nothing else is spoken here.
std::optional<target> parse_target(std::string_view url) {
  constexpr std::string_view scheme = "http://";
  if (!url.starts_with(scheme)) return std::nullopt;
  url.remove_prefix(scheme.size());
  const std::size_t slash = std::min(url.find_first_of("/?"), url.size());
  std::string_view authority = url.substr(0, slash);
  target out{{}, "80", std::string(url.substr(slash))};
  if (!out.path.starts_with('/')) out.path.insert(0, 1, '/');
  if (authority.find('@') != std::string_view::npos) return std::nullopt;
  const std::size_t bracket = authority.find(']');
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  if (colon != std::string_view::npos) {
    out.port = authority.substr(colon + 1);
    authority = authority.substr(0, colon);
  }
  if (authority.starts_with('[') && authority.ends_with(']')) authority = authority.substr(1, authority.size() - 2);
  out.host = authority;
  const bool digits = !out.port.empty() && out.port.find_first_not_of("0123456789") == std::string::npos;
  const bool printable = out.path.find_first_of(" \r\n\t") == std::string::npos;
  return out.host.empty() || !digits || !printable ? std::nullopt : std::optional(std::move(out));
}

// Our own listener, on this machine unless it listens at one address only.
std::string own_url(const config::settings& settings, const std::string& provider) {
  std::string host = settings.callbacks.address;
  if (host.empty() || host == "0.0.0.0" || host == "::") host = "127.0.0.1";
  if (host.find(':') != std::string::npos) host = '[' + host + ']';
  return "http://" + host + ':' + std::to_string(settings.callbacks.port) + "/callbacks/" + http::percent_encode(provider);
}

std::string write_request(const http::request& what, const target& to) {
  std::string path = to.path;
  if (!what.query.empty()) path += (path.find('?') == std::string::npos ? '?' : '&') + what.query;
  const bool v6 = to.host.find(':') != std::string::npos;
  std::string out = what.method + ' ' + path + " HTTP/1.1\r\nHost: " + (v6 ? '[' + to.host + ']' : to.host) + ':' + to.port +
                    "\r\nUser-Agent: recibo-send/" RECIBO_VERSION "\r\nConnection: close\r\n";
  for (const auto& [name, value] : what.headers) out += name + ": " + value + "\r\n";
  return out + "Content-Length: " + std::to_string(what.body.size()) + "\r\n\r\n" + what.body;
}

// One request and its answer, step by step, each step under a deadline.
class exchange {
 public:
  // What went wrong; empty: parser() is done.
  std::string run(const target& to, const std::string& request) {
    asio::ip::tcp::resolver resolver(context_);
    error_code failed;
    const auto endpoints = resolver.resolve(to.host, to.port, failed);
    if (failed) return "cannot resolve the host: " + failed.message();
    asio::async_connect(socket_, endpoints, [&](error_code ec, const asio::ip::tcp::endpoint&) { last_ = ec; });
    if (!step()) return "cannot connect: " + last_.message();
    asio::async_write(socket_, asio::buffer(request), [&](error_code ec, std::size_t) { last_ = ec; });
    // A refusal may come before all was sent: what the other side says counts more than that it stopped reading.
    step();
    parser_.eager(true);
    parser_.body_limit(1u << 20);
    while (!parser_.is_done()) {
      std::size_t got = 0;
      socket_.async_read_some(asio::buffer(chunk_), [&](error_code ec, std::size_t n) {
        last_ = ec;
        got = n;
      });
      const bool more = step();
      error_code broken;
      if (more) {
        pending_.append(chunk_.data(), got);
        const std::size_t used = parser_.put(asio::buffer(pending_), broken);
        pending_.erase(0, used);
        if (broken == beast_http::error::need_more) broken = {};
      } else if (last_ == asio::error::eof) {
        parser_.put_eof(broken);
        if (!broken && !parser_.is_done()) return "the connection was closed without an answer";
      } else {
        return "no answer: " + last_.message();
      }
      if (broken) return "the answer is no HTTP: " + broken.message();
    }
    return {};
  }

  const answer_parser::value_type& answer() const { return parser_.get(); }

 private:
  bool step() {
    last_ = asio::error::would_block;
    context_.restart();
    context_.run_for(patience);
    if (!context_.stopped()) {
      socket_.close();
      context_.run();
      last_ = asio::error::timed_out;
    }
    return !last_;
  }

  asio::io_context context_;
  asio::ip::tcp::socket socket_{context_};
  error_code last_;
  std::array<char, 8192> chunk_{};
  std::string pending_;
  answer_parser parser_;
};

bool read_file(const std::string& path, std::string& out) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  out = std::move(bytes).str();
  return in.good() || in.eof();
}

int print_answer(const answer_parser::value_type& answer, std::ostream& out) {
  out << answer.result_int() << ' ' << answer.reason() << '\n';
  for (const char* name : {"Content-Type", "Idempotent-Replayed", "Retry-After", "Allow"}) {
    if (const auto at = answer.find(name); at != answer.end()) out << name << ": " << at->value() << '\n';
  }
  if (!answer.body().empty()) out << '\n' << answer.body() << '\n';
  return answer.result_int() / 100 == 2 ? exit_fine : exit_not_so;
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
    asked.what.body.emplace();
    if (!read_file(asked.body_file, *asked.what.body)) {
      *ctx.err << "recibo send: cannot read " << asked.body_file << '\n';
      return exit_wrong;
    }
  } else if (asked.what.event.empty() || (asked.what.request_id.empty() && asked.what.reference.empty())) {
    *ctx.err << "recibo send: --event and one of --request-id and --reference are needed, or --body\n";
    return exit_wrong;
  }
  const std::string url = asked.to.empty() ? own_url(*settings, asked.provider) : asked.to;
  const auto to = parse_target(url);
  if (!to) {
    *ctx.err << "recibo send: --to wants http://host[:port]/path\n";
    return exit_wrong;
  }
  const auto made = receive::compose(provider->second, asked.what, now());
  if (!made) {
    *ctx.err << "recibo send: " << made.error().detail << '\n';
    return exit_wrong;
  }
  const std::string request = write_request(*made, *to);
  if (asked.dry_run) {
    *ctx.out << request << '\n';
    return exit_fine;
  }
  exchange with_it;
  if (const std::string failed = with_it.run(*to, request); !failed.empty()) {
    *ctx.err << "recibo send: " << url << ": " << failed << '\n';
    return exit_away;
  }
  return print_answer(with_it.answer(), *ctx.out);
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
  command->add_option("--amount", asked->what.amount, "Amount, for example 19.99");
  command->add_option("--currency", asked->what.currency, "ISO 4217 code");
  command->add_option("--occurred-at", asked->what.occurred_at, "RFC 3339 (default: now)");
  command->add_option("--sequence", asked->what.sequence, "The provider's sequence number");
  command->add_option("--body", asked->body_file, "File whose bytes are the body, instead of one made from the above");
  command->add_option("--to", asked->to, "http:// URL (default: the callbacks listener of the configuration on this machine)");
  command->add_flag("--dry-run", asked->dry_run, "Print the signed request and send nothing");
  command->callback([asked, &ctx] { ctx.exit_code = send(*asked, ctx); });
}

}  // namespace recibo::commands
