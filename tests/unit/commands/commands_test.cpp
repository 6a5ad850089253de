// The frame of the command line and the commands that need no database.
#include "../src/commands/commands.hpp"

#include "recibo/config/load.hpp"
#include "recibo/core/digest.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include <fstream>
#include <regex>
#include <sstream>

namespace recibo::commands {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

struct result {
  int code = -1;
  std::string out, err;
};

result run(std::vector<std::string> args) {
  std::ostringstream out, err;
  context ctx;
  ctx.config = RECIBO_TEST_DATA "/config/fixture.yaml";
  ctx.out = &out;
  ctx.err = &err;
  CLI::App app("test", "recibo");
  app.require_subcommand(1);
  add_check(app, ctx);
  add_workflow(app, ctx);
  add_token(app, ctx);
  add_verify(app, ctx);
  add_version(app, ctx);
  args.insert(args.begin(), "recibo");
  std::vector<const char*> argv;
  for (const auto& arg : args) argv.push_back(arg.c_str());
  const int code = run_app(app, ctx, static_cast<int>(argv.size()), argv.data());
  return {code, out.str(), err.str()};
}

TEST(Frame, WrongUseIsTwoAndHelpIsFine) {
  EXPECT_EQ(run({}).code, exit_wrong);
  EXPECT_EQ(run({"nonsense"}).code, exit_wrong);
  EXPECT_EQ(run({"check", "--nonsense"}).code, exit_wrong);
  EXPECT_EQ(run({"workflow"}).code, exit_wrong);
  EXPECT_EQ(run({"token"}).code, exit_wrong);
  EXPECT_EQ(run({"--help"}).code, exit_fine);
  EXPECT_THAT(run({"nonsense"}).err, HasSubstr("nonsense"));
  EXPECT_THAT(run({}).err, Not(::testing::IsEmpty()));
}

TEST(Frame, EveryCommandHasHelpThatNamesTheConfiguration) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"check"}, {"workflow"}, {"token"}, {"token", "new"}, {"version"}}) {
    auto args = command;
    args.push_back("--help");
    const auto r = run(args);
    EXPECT_EQ(r.code, exit_fine) << command.back();
    EXPECT_THAT(r.out, HasSubstr("--config")) << command.back();
  }
}

TEST(Frame, ConfigMayStandBeforeAndBehindTheCommand) {
  const std::string absent = "/nonexistent/recibo.yaml";
  EXPECT_THAT(run({"check", "--config", absent}).out, HasSubstr(absent));
  EXPECT_THAT(run({"--config", absent, "check"}).out, HasSubstr(absent));
}

TEST(Check, SaysThatAGoodFileIsFine) {
  const auto r = run({"check"});
  EXPECT_EQ(r.code, exit_fine);
  EXPECT_EQ(r.out, "configuration is fine: 6 providers, 2 workflows, 1 destination, 0 tokens\n");
  EXPECT_THAT(r.err, HasSubstr("fixture.yaml: warning: no api.tokens"));
}

TEST(Check, PrintsEveryProblemWithItsPlace) {
  const std::string file = RECIBO_TEST_DATA "/config/bad/two_problems.yaml";
  const auto r = run({"check", "--config", file});
  EXPECT_EQ(r.code, exit_wrong);
  EXPECT_EQ(r.out, file + ":2:14: error: level: expected trace, debug, info, warn or error, found \"loud\"\n" + file +
                       ":3:1: error: configuration: unknown key \"colour\"\n");
  EXPECT_THAT(r.err, HasSubstr("2 problems in "));
}

TEST(Check, PrintsTheSchemaForEditors) {
  const auto r = run({"check", "--schema"});
  EXPECT_EQ(r.code, exit_fine);
  EXPECT_THAT(r.out, HasSubstr("\"$schema\": \"https://json-schema.org/draft/2020-12/schema\""));
}

TEST(Workflow, DrawsInThreeForms) {
  EXPECT_THAT(run({"workflow", "fixture"}).out, HasSubstr("processing"));
  EXPECT_THAT(run({"workflow", "fixture", "--format", "mermaid"}).out, HasSubstr("stateDiagram-v2"));
  EXPECT_THAT(run({"workflow", "fixture", "--format", "svg"}).out, HasSubstr("<svg"));
  EXPECT_EQ(run({"workflow", "fixture", "--format", "gif"}).code, exit_wrong);
  const auto unknown = run({"workflow", "nope"});
  EXPECT_EQ(unknown.code, exit_wrong);
  EXPECT_THAT(unknown.err, HasSubstr("there are: default fixture"));
}

TEST(Workflow, ComplainsAboutABadConfiguration) {
  const auto r = run({"workflow", "fixture", "--config", RECIBO_TEST_DATA "/config/bad/two_problems.yaml"});
  EXPECT_EQ(r.code, exit_wrong);
  EXPECT_THAT(r.err, HasSubstr(":2:14: error: "));
  EXPECT_EQ(r.out, "");
}

TEST(Token, IsShownOnceWithALineThatTheLoaderTakes) {
  const auto r =
      run({"token", "new", "ops", "--role", "operator", "--permissions", "payload", "--expires", "2999-01-01T00:00:00Z"});
  ASSERT_EQ(r.code, exit_fine) << r.err;
  std::smatch token, line;
  const std::regex token_form("\n([A-Za-z0-9_-]{43})\n"), line_form("- (\\{name: .*\\})\n");
  ASSERT_TRUE(std::regex_search(r.out, token, token_form)) << r.out;
  ASSERT_TRUE(std::regex_search(r.out, line, line_form)) << r.out;
  const std::string text = "api:\n  tokens:\n    - " + line[1].str() + "\n";
  const auto loaded = config::load_text("token.yaml", text, ".", [](const std::string&) { return std::nullopt; });
  ASSERT_TRUE(loaded.settings) << config::to_string(loaded.problems.at(0));
  const config::token& t = loaded.settings->tokens.at(0);
  EXPECT_EQ(t.name, "ops");
  EXPECT_EQ(t.role, config::role::operator_);
  EXPECT_TRUE(t.payload);
  EXPECT_TRUE(t.expires);
  EXPECT_EQ(t.sha256, to_hex(binary(sha256(token[1].str()))));
}

TEST(Token, IsNewEachTimeAndNeedsNoArguments) {
  const auto first = run({"token", "new"}), second = run({"token", "new"});
  EXPECT_EQ(first.code, exit_fine);
  EXPECT_NE(first.out, second.out);
  EXPECT_THAT(first.out, HasSubstr("role: reader"));
  EXPECT_THAT(run({"token", "new", "123"}).out, HasSubstr("name: \"123\""));
}

TEST(Token, RefusesWhatTheConfigurationWouldRefuse) {
  EXPECT_EQ(run({"token", "new", "Ops Team"}).code, exit_wrong);
  EXPECT_EQ(run({"token", "new", "ops", "--role", "root"}).code, exit_wrong);
  EXPECT_EQ(run({"token", "new", "ops", "--permissions", "all"}).code, exit_wrong);
  EXPECT_EQ(run({"token", "new", "ops", "--expires", "tomorrow"}).code, exit_wrong);
  EXPECT_EQ(run({"token", "new", "ops", "--expires", "2001-01-01T00:00:00Z"}).code, exit_wrong);
}

// A request to p1 of the fixture with the published signature of the field cases, and one with another body.
std::string write_request(const std::string& name, const std::string& body) {
  const std::string file = ::testing::TempDir() + name;
  std::ofstream(file, std::ios::binary)
      << "POST /callbacks/p1 HTTP/1.1\r\nHost: localhost\r\nX-Timestamp: 1790848800\r\n"
      << "x-signature: sha256=cc5684abf6d671508f678dd987e3cddfc3aadd4ed43bdf9c100500f725206e52\r\n\r\n"
      << body;
  return file;
}
const std::string signed_body =
    R"({"request_id":"req-1001","event_id":"evt-1","status":"succeeded","amount":"19.99","currency":"EUR","occurred_at":"2026-10-01T10:00:00Z"})";

TEST(Verify, ExplainsARequest) {
  const std::string good = write_request("good.http", signed_body), bad = write_request("bad.http", signed_body + "\n");
  const auto fine = run({"verify", "p1", "--request", good, "--at", "2026-10-01T10:00:00Z"});
  EXPECT_EQ(fine.code, exit_fine) << fine.err;
  EXPECT_THAT(fine.out, HasSubstr("verifies, by the secret secret-1"));
  const auto changed = run({"verify", "p1", "--request", bad, "--at", "2026-10-01T10:00:00Z"});
  EXPECT_EQ(changed.code, exit_not_so);
  EXPECT_THAT(changed.out, HasSubstr("does not verify: signature_mismatch"));
  EXPECT_THAT(changed.out, HasSubstr("most likely: body_changed. It verifies with the line feed at the end of the body removed"));
  EXPECT_THAT(changed.out, HasSubstr("signed:     148 bytes: 1790848800.{"));
  const auto late = run({"verify", "p1", "--request", good, "--at", "2026-10-01T10:05:01Z"});
  EXPECT_EQ(late.code, exit_not_so);
  EXPECT_THAT(late.out, HasSubstr("does not verify: timestamp_stale"));
  EXPECT_THAT(late.out, HasSubstr("most likely: too_old. The signature is right"));
  for (const auto& r : {fine, changed, late}) EXPECT_THAT(r.out + r.err, Not(HasSubstr("test-secret-A")));
}

TEST(Verify, TakesHeadAndBodyApartAndSpeaksJson) {
  const std::string head = ::testing::TempDir() + "head.txt", body = ::testing::TempDir() + "body.json";
  std::ofstream(head) << "X-Timestamp: 1790848800\nX-Signature: "
                         "sha256=cc5684abf6d671508f678dd987e3cddfc3aadd4ed43bdf9c100500f725206e52\n";
  std::ofstream(body) << signed_body;
  const auto fine = run({"verify", "p1", "--headers", head, "--body", body, "--at", "2026-10-01T10:00:00Z"});
  EXPECT_EQ(fine.code, exit_fine) << fine.err << fine.out;
  std::ofstream(body) << "{}";
  const auto told = run({"verify", "p1", "--headers", head, "--body", body, "--at", "2026-10-01T10:00:00Z", "--json"});
  EXPECT_EQ(told.code, exit_not_so);
  EXPECT_THAT(told.out, HasSubstr(R"("verifies":false,"reason":"signature_mismatch","cause":"secret_of_nobody")"));
  EXPECT_THAT(told.out, HasSubstr(R"("signed":{"bytes":13,"shown":"1790848800.{}"})"));
  EXPECT_EQ(run({"verify", "p1", "--headers", head, "--body", "/nonexistent"}).code, exit_wrong);
  EXPECT_EQ(run({"verify", "p1", "--headers", body}).code, exit_wrong);
  EXPECT_EQ(run({"verify", "p1", "--body", body}).code, exit_wrong);
}

TEST(Verify, WrongUseIsTwo) {
  EXPECT_EQ(run({"verify"}).code, exit_wrong);
  EXPECT_EQ(run({"verify", "p1"}).code, exit_wrong);
  EXPECT_EQ(run({"verify", "nope", "--request", write_request("some.http", "")}).code, exit_wrong);
  EXPECT_EQ(run({"verify", "p1", "--request", "/nonexistent"}).code, exit_wrong);
  EXPECT_EQ(run({"verify", "p1", "--request", RECIBO_TEST_DATA "/config/fixture.yaml"}).code, exit_wrong);
  EXPECT_EQ(run({"verify", "--vectors", RECIBO_TEST_DATA "/config/fixture.yaml"}).code, exit_wrong);
}

TEST(Verify, RunsVectorsAndNamesThoseThatDiffer) {
  const std::string vector =
      R"({"name":"github/one","preset":"github","method":"POST","url":"https://x/","headers":[["X-Hub-Signature-256","sha256=)"
      R"(757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"]],"body_base64":"SGVsbG8sIFdvcmxkIQ==",)"
      R"("secrets":["It's a Secret to Everybody"],"now_unix":1760000000,"tolerance_s":null,"expect":")";
  const std::string file = ::testing::TempDir() + "vectors.json";
  std::ofstream(file) << "[" << vector << "valid\"}]";
  const auto same = run({"verify", "--vectors", file});
  EXPECT_EQ(same.code, exit_fine) << same.err;
  EXPECT_EQ(same.out, "1 vectors, 0 differ\n");
  std::ofstream(file) << "[" << vector << "valid\"}," << vector << "invalid\"}]";
  const auto other = run({"verify", "--vectors", file});
  EXPECT_EQ(other.code, exit_not_so);
  EXPECT_EQ(other.out, "github/one: expected invalid, found valid\n2 vectors, 1 differ\n");
}

TEST(Version, IsPrinted) { EXPECT_THAT(run({"version"}).out, MatchesRegex("recibo [0-9]+\\.[0-9]+\\.[0-9]+\n")); }

}  // namespace
}  // namespace recibo::commands
