// recibo verify: why a request verifies or does not, and whether this build judges a file of vectors as it should.
#include "commands.hpp"
#include "explain.hpp"

#include "recibo/core/file.hpp"
#include "recibo/verify/vectors.hpp"

#include <CLI/CLI.hpp>

#include <memory>
#include <ostream>

namespace recibo::commands {
namespace {

constexpr std::size_t vectors_bytes_max = 64 << 20;

int run_vectors(const std::string& file, context& ctx) {
  const file_reading text = read_file(file, vectors_bytes_max, true);
  if (!text) {
    *ctx.err << "recibo verify: " << file << ' ' << to_string(text.why, vectors_bytes_max) << '\n';
    return exit_wrong;
  }
  const auto outcomes = verify::run_vectors(text.bytes);
  if (!outcomes) {
    *ctx.err << "recibo verify: " << file << ": " << outcomes.error().detail << '\n';
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
  struct options {
    captured_request request;
    std::string vectors_file;
  };
  auto asked = std::make_shared<options>();
  CLI::App* const command =
      app.add_subcommand("verify", "Explain why a request verifies or does not, or run a file of test vectors");
  auto* const provider = command->add_option("provider", asked->request.provider, "Name of the provider in the configuration");
  auto* const file = command->add_option("--request", asked->request.file,
                                         "File with the HTTP request as it was captured: head, empty line, body");
  auto* const headers =
      command->add_option("--headers", asked->request.headers_file,
                          "File with the head alone: a line for each header, a request line before them or not");
  auto* const body = command->add_option("--body", asked->request.body_file, "File whose bytes are the body; with --headers");
  command->add_option("--at", asked->request.at, "Instant to judge the time stamp at, RFC 3339 (default: now)")->needs(provider);
  command
      ->add_option("--public-url", asked->request.public_url,
                   "The URL that was signed, where the scheme signs it (default: public_url)")
      ->needs(provider);
  command->add_flag("--json", asked->request.json, "Print what was found as JSON")->needs(provider);
  auto* const vectors = command->add_option("--vectors", asked->vectors_file, "File of test vectors; needs no configuration");
  file->needs(provider)->excludes(headers)->excludes(body);
  headers->needs(provider);
  body->needs(headers);
  vectors->excludes(provider);
  command->callback([asked, &ctx] {
    const bool captured = !asked->request.file.empty() || !asked->request.headers_file.empty();
    if (!asked->vectors_file.empty()) {
      ctx.exit_code = run_vectors(asked->vectors_file, ctx);
    } else if (!asked->request.provider.empty() && captured) {
      ctx.exit_code = explain(asked->request, ctx);
    } else {
      *ctx.err << "recibo verify: a provider and --request (or --headers and --body), or --vectors\n";
      ctx.exit_code = exit_wrong;
    }
  });
}

}  // namespace recibo::commands
