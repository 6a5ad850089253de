// recibo verify: why a request verifies or does not, and whether this build judges a file of vectors as it should.
#include "commands.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/verify/vectors.hpp"
#include "recibo/verify/verifier.hpp"

#include <CLI/CLI.hpp>

#include <fstream>
#include <iterator>
#include <memory>
#include <ostream>

namespace recibo::commands {
namespace {

using header_list = std::vector<std::pair<std::string, std::string>>;

struct options {
  std::string provider, request_file, vectors_file, at;
};

struct request {
  std::string method, query, body;
  header_list headers;
};

std::optional<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(in), {}};
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// An HTTP/1.1 request as it was captured: lines end in LF or CR LF, and everything behind the empty line is the body.
std::optional<request> parse_request(std::string_view text) {
  request out;
  bool first = true;
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return std::nullopt;
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end + 1);
    if (first) {
      const std::size_t blank = line.find(' '), last = line.rfind(' ');
      if (blank == std::string_view::npos || last == blank) return std::nullopt;
      out.method = line.substr(0, blank);
      const std::string_view target = line.substr(blank + 1, last - blank - 1);
      if (const std::size_t question = target.find('?'); question != std::string_view::npos)
        out.query = target.substr(question + 1);
      first = false;
    } else if (line.empty()) {
      break;
    } else {
      const std::size_t colon = line.find(':');
      if (colon == 0 || colon == std::string_view::npos) return std::nullopt;
      out.headers.emplace_back(line.substr(0, colon), trimmed(line.substr(colon + 1)));
    }
  }
  out.body = text;
  return out;
}

std::string listed(const std::vector<std::string>& names) {
  std::string out;
  for (const auto& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// What the scheme looks for, so that a reader can compare it with the request in hand.
void describe(const verify::scheme& how, std::ostream& out) {
  out << "scheme: " << how.name << '\n';
  if (how.kind == verify::scheme_kind::none) return;
  out << "signature in: " << (how.signature.numbered.empty() ? listed(how.signature.names) : how.signature.numbered + "N")
      << '\n';
  if (!how.timestamp) return;
  out << "time stamp in: " << listed(how.timestamp->names) << ", tolerance ";
  if (how.timestamp->tolerance) {
    out << how.timestamp->tolerance->count() << " s\n";
  } else {
    out << "off\n";
  }
}

std::string_view advice(const error& e) {
  if (e.code == permanent::signature_missing) return "no signature in the form that the scheme asks for";
  if (e.code == permanent::signature_mismatch)
    return "no secret that is valid now gives this signature for these bytes: another secret, or a changed body";
  if (e.code == permanent::signature_repeated) return "a signature, time stamp or ID header stands there twice";
  if (e.code == permanent::timestamp_missing) return "the time stamp is not there";
  if (e.code == permanent::timestamp_malformed) return "the time stamp is not in the scheme's format";
  if (e.code == permanent::timestamp_stale)
    return "the time stamp is farther from now than the tolerance; --at says when to judge it";
  if (e.code == permanent::content_missing) return "a part that the scheme signs is not there";
  return "it cannot be judged";
}

int explain(const options& asked, context& ctx) {
  const auto settings = load_settings(ctx);
  if (!settings) return ctx.exit_code;
  const auto provider = settings->providers.find(asked.provider);
  if (provider == settings->providers.end()) {
    *ctx.err << "recibo verify: no provider " << asked.provider << " in " << ctx.config << '\n';
    return exit_wrong;
  }
  const auto text = read_file(asked.request_file);
  const auto what = text ? parse_request(*text) : std::nullopt;
  if (!what) {
    *ctx.err << "recibo verify: " << asked.request_file << (text ? " holds no HTTP request" : " cannot be read") << '\n';
    return exit_wrong;
  }
  sys_micros at = now();
  if (!asked.at.empty()) {
    const auto said = parse_rfc3339(asked.at);
    if (!said) {
      *ctx.err << "recibo verify: --at wants an instant with its offset, such as 2026-10-01T10:00:00Z\n";
      return exit_wrong;
    }
    at = *said;
  }
  const config::provider& p = provider->second;
  std::string url = p.public_url;
  if (!url.empty() && !what->query.empty() && url.find('?') == std::string::npos) url += '?' + what->query;
  const verify::signed_message message{what->method, url, what->query, what->headers, what->body};
  const auto verdict = verify::verify(p.verify, message, p.keys, at);
  describe(p.verify, *ctx.out);
  *ctx.out << "body: " << what->body.size() << " bytes, SHA-256 " << to_hex(binary(sha256(what->body))) << '\n';
  if (verdict) {
    *ctx.out << "verifies" << (verdict->empty() ? "" : ", by the secret " + *verdict) << '\n';
    return exit_fine;
  }
  *ctx.out << "does not verify: " << code_word(verdict.error().code) << ": " << advice(verdict.error());
  if (!verdict.error().detail.empty()) *ctx.out << " (" << verdict.error().detail << ')';
  *ctx.out << '\n';
  return exit_not_so;
}

int run_vectors(const options& asked, context& ctx) {
  const auto text = read_file(asked.vectors_file);
  if (!text) {
    *ctx.err << "recibo verify: " << asked.vectors_file << " cannot be read\n";
    return exit_wrong;
  }
  const auto outcomes = verify::run_vectors(*text);
  if (!outcomes) {
    *ctx.err << "recibo verify: " << asked.vectors_file << ": " << outcomes.error().detail << '\n';
    return exit_wrong;
  }
  std::size_t differ = 0;
  for (const verify::vector_outcome& one : *outcomes) {
    if (one.agrees()) continue;
    ++differ;
    *ctx.out << one.name << ": expected " << one.expected << ", found " << one.found << '\n';
  }
  *ctx.out << outcomes->size() << " vectors, " << differ << " differ\n";
  return differ == 0 ? exit_fine : exit_not_so;
}

}  // namespace

void add_verify(CLI::App& app, context& ctx) {
  auto asked = std::make_shared<options>();
  CLI::App* const command =
      app.add_subcommand("verify", "Explain why a request verifies or does not, or run a file of test vectors");
  auto* const provider = command->add_option("provider", asked->provider, "Name of the provider in the configuration");
  auto* const file = command->add_option("--request", asked->request_file,
                                         "File with the HTTP request as it was captured: head, empty line, body");
  command->add_option("--at", asked->at, "Instant to judge the time stamp at, RFC 3339 (default: now)");
  auto* const vectors = command->add_option("--vectors", asked->vectors_file, "File of test vectors; needs no configuration");
  provider->needs(file);
  file->needs(provider);
  vectors->excludes(provider);
  command->callback([asked, &ctx] {
    if (!asked->vectors_file.empty()) {
      ctx.exit_code = run_vectors(*asked, ctx);
    } else if (!asked->provider.empty()) {
      ctx.exit_code = explain(*asked, ctx);
    } else {
      *ctx.err << "recibo verify: a provider and --request, or --vectors\n";
      ctx.exit_code = exit_wrong;
    }
  });
}

}  // namespace recibo::commands
