// What load() gives: the example, the fixture, defaults, and the rules that no single bad line shows.
#include "recibo/config/load.hpp"

#include "unit/config/support.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/verify/verifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace recibo::config {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::lines_of;
using testing::load;
using ::testing::Not;

constexpr const char* smallest = R"(providers:
  p:
    verify: {scheme: github, secrets: [s3cret]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
)";

TEST(Load, TheExampleIsFine) {
  const auto l = load_file(RECIBO_SOURCE_DIR "/config/recibo.yaml", testing::env_of(testing::example_env()));
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  EXPECT_THAT(lines_of(l.warnings), IsEmpty());
  ASSERT_TRUE(l.settings);
  EXPECT_EQ(l.settings->callbacks.port, 8080);
  EXPECT_EQ(l.settings->api.port, 8081);
  EXPECT_EQ(l.settings->providers.size(), 4u);
  EXPECT_EQ(l.settings->workflows.size(), 2u);
  const provider& acme = l.settings->providers.at("acme");
  EXPECT_EQ(acme.workflow, "payment");
  EXPECT_EQ(acme.verify.name, "standard-webhooks");
  ASSERT_EQ(acme.keys.secrets.size(), 1u);
  EXPECT_EQ(acme.keys.secrets[0].name, "current");
  EXPECT_EQ(acme.keys.secrets[0].key.reveal(), "canary-canary-canary-canary!");
  EXPECT_EQ(acme.extract.idempotency_key.at(0).from, source::place::header);
  EXPECT_EQ(acme.extract.result.at("settled_at").name, "/data/settled_at");
  EXPECT_EQ(acme.limits.at("processing")->after, std::chrono::hours(1));
  EXPECT_EQ(l.settings->tokens.at(0).role, role::operator_);
  EXPECT_TRUE(l.settings->tokens.at(0).payload);
  EXPECT_EQ(l.settings->providers.at("github").answer_within, std::chrono::seconds(8));
}

// What the file writes out as defaults are the defaults, and its `default` is the workflow that is built in.
TEST(Load, TheExampleShowsTheDefaults) {
  const auto example = load_file(RECIBO_SOURCE_DIR "/config/recibo.yaml", testing::env_of(testing::example_env()));
  const auto small = load(smallest);
  ASSERT_TRUE(example.settings && small.settings);
  const settings &a = *example.settings, &b = *small.settings;
  EXPECT_EQ(a.callbacks.port, b.callbacks.port);
  EXPECT_EQ(a.callbacks.address, b.callbacks.address);
  EXPECT_EQ(a.api.port, b.api.port);
  EXPECT_EQ(a.api.address, b.api.address);
  EXPECT_EQ(a.database.pool, b.database.pool);
  EXPECT_EQ(a.limits.body, b.limits.body);
  EXPECT_EQ(a.limits.header, b.limits.header);
  EXPECT_EQ(a.limits.connections, b.limits.connections);
  EXPECT_EQ(a.limits.in_flight, b.limits.in_flight);
  EXPECT_EQ(a.limits.header_timeout, b.limits.header_timeout);
  EXPECT_EQ(a.limits.body_timeout, b.limits.body_timeout);
  EXPECT_EQ(a.limits.idle_timeout, b.limits.idle_timeout);
  EXPECT_EQ(a.record.writers, b.record.writers);
  EXPECT_EQ(a.record.batch, b.record.batch);
  EXPECT_EQ(a.record.queue, b.record.queue);
  EXPECT_EQ(a.outbox.lease, b.outbox.lease);
  EXPECT_EQ(a.reviews.due, b.reviews.due);
  EXPECT_EQ(a.reviews.owner, b.reviews.owner);
  EXPECT_EQ(a.reviews.parked_after, b.reviews.parked_after);
  EXPECT_EQ(a.retain_payloads, b.retain_payloads);
  EXPECT_EQ(a.retain_deliveries, b.retain_deliveries);
  EXPECT_EQ(a.retain_operations, b.retain_operations);
  EXPECT_EQ(a.drain_delay, b.drain_delay);
  EXPECT_EQ(a.drain_timeout, b.drain_timeout);
  EXPECT_EQ(a.log_level, b.log_level);
  EXPECT_EQ(a.log_format, b.log_format);
  EXPECT_EQ(a.workflows.at("default")->definition(), b.workflows.at("default")->definition());
}

TEST(Load, TheFixtureOfTheFieldCasesIsFine) {
  const auto l = load_file(RECIBO_TEST_DATA "/config/fixture.yaml", testing::env_of({}));
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  ASSERT_TRUE(l.settings);
  ASSERT_EQ(l.settings->providers.size(), 6u);
  const provider& p1 = l.settings->providers.at("p1");
  EXPECT_EQ(p1.verify.kind, verify::scheme_kind::hmac);
  EXPECT_EQ(p1.verify.signature.names, std::vector<std::string>{"x-signature"});
  EXPECT_EQ(p1.verify.timestamp->tolerance, std::chrono::seconds(300));
  EXPECT_EQ(p1.keys.secrets.at(0).key.reveal(), "test-secret-A");
  EXPECT_EQ(l.settings->providers.at("p2").keys.secrets.at(0).key.reveal(), "test-secret-B");
  EXPECT_TRUE(l.settings->providers.at("p5").extract.idempotency_key.at(0).unsigned_accept);
  EXPECT_FALSE(l.settings->workflows.at("fixture")->find_state("accepted")->limit);
}

// The published values of the field cases come out of the scheme as it is configured.
TEST(Load, TheFixturesSchemeVerifiesItsVector) {
  const auto l = load_file(RECIBO_TEST_DATA "/config/fixture.yaml", testing::env_of({}));
  ASSERT_TRUE(l.settings);
  const provider& p1 = l.settings->providers.at("p1");
  const std::string body =
      R"({"request_id":"req-1001","event_id":"evt-1","status":"succeeded","amount":"19.99","currency":"EUR","occurred_at":"2026-10-01T10:00:00Z"})";
  const std::vector<std::pair<std::string, std::string>> headers = {
      {"X-Timestamp", "1790848800"}, {"X-Signature", "sha256=cc5684abf6d671508f678dd987e3cddfc3aadd4ed43bdf9c100500f725206e52"}};
  const verify::signed_message message{"POST", "", "", headers, body};
  const auto verdict = verify::verify(p1.verify, message, p1.keys, sys_micros(std::chrono::seconds(1790848800)));
  ASSERT_TRUE(verdict) << verdict.error().detail;
  EXPECT_EQ(*verdict, "secret-1");
}

TEST(Load, TheSmallestFileGetsTheDefaultWorkflow) {
  const auto l = load(smallest);
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  EXPECT_EQ(l.settings->providers.at("p").workflow, "default");
  const auto& table = *l.settings->workflows.at("default");
  EXPECT_EQ(table.initial(), "accepted");
  for (const auto state : {"accepted", "processing", "completed", "failed", "expired", "unknown", "requires_review"})
    EXPECT_TRUE(table.find_state(state)) << state;
  EXPECT_THAT(
      lines_of(l.warnings),
      ElementsAre("0:0: no api.tokens: nobody can use the API", "0:0: no database.url: this can be checked, but not served",
                  "3:40: secrets: a secret of fewer than 12 bytes can be found by trying; take one of "
                  "16 or more"));
}

TEST(Load, MissingAndUnreadableFilesAreProblemsNotExceptions) {
  const auto absent = load_file("/nonexistent/recibo.yaml", testing::env_of({}));
  ASSERT_EQ(absent.problems.size(), 1u);
  EXPECT_EQ(to_string(absent.problems[0]), "/nonexistent/recibo.yaml: error: this file does not exist");
  EXPECT_EQ(load_file(RECIBO_TEST_DATA, testing::env_of({})).problems.size(), 1u);
  EXPECT_FALSE(absent.settings);
}

TEST(Load, ADiagnosticReadsAsACompilersDo) {
  EXPECT_EQ(to_string(diagnostic{"a.yaml", 3, 7, "no", severity::error}), "a.yaml:3:7: error: no");
  EXPECT_EQ(to_string(diagnostic{"a.yaml", 0, 0, "hm", severity::warning}), "a.yaml: warning: hm");
}

TEST(Load, AllProblemsAtOnceInTheOrderOfTheFile) {
  const auto l = load(R"(listen: {callbacks: {port: 70000}}
limits: {body: 1MB}
providers:
  p:
    verify: {scheme: githup, secrets: [""]}
    extract: {request_id: id, event: /type, idempotency_key: /key}
    events: {done: compleet}
    wrokflow: payment
destinations:
  d: {url: "ftp://x/"}
)");
  EXPECT_THAT(
      lines_of(l.problems),
      ElementsAre("1:28: port: expected a whole number from 0 to 65535, found \"70000\"",
                  "2:16: body: expected a size with its unit, such as 512B, 8KiB, 1MiB or 1GiB, found \"1MB\"",
                  "5:22: scheme: there is none named \"githup\"; did you mean \"github\"?", "5:40: secrets: this secret is empty",
                  "6:27: request_id: a JSON Pointer begins with \"/\" and escapes \"~\" as \"~0\", found \"id\"",
                  "7:20: events: the workflow \"default\" has no event named \"compleet\"; did you mean \"complete\"?",
                  "8:5: p: unknown key \"wrokflow\"; did you mean \"workflow\"?",
                  "10:3: d: secret is required: notifications are signed",
                  "10:12: url: not a URL that can be used: it begins with neither http:// nor https://"));
  EXPECT_FALSE(l.settings);
}

TEST(Load, FaultsOfTheTextAndOfTheContentComeTogether) {
  const auto l = load("log: {level: info, level: debug}\nprovider: {}\n");
  EXPECT_THAT(lines_of(l.problems), ElementsAre("1:20: the key \"level\" stands here a second time",
                                                "2:1: configuration: unknown key \"provider\"; did you mean \"providers\"?"));
}

TEST(Load, WhatTheEnvironmentHoldsIsNeverShown) {
  const auto l = load(R"(listen: {callbacks: {port: "${BAD}"}, api: {address: "${BAD}"}}
limits: {body: "${BAD}"}
log: {level: "${BAD}"}
database: {url: {file: "${BAD}"}}
providers:
  "${BAD}": {}
  p:
    verify: {scheme: "${BAD}", secrets: ["${BAD}", {name: "${BAD}", value: "${BAD}"}], tolerance: "${BAD}"}
    extract: {request_id: "${BAD}", event: "/${BAD}", idempotency_key: /key}
    events: {done: "${BAD}"}
    workflow: "${BAD}"
    limits: {accepted: {after: 1h, event: "${BAD}"}}
    answers: {conflict: "${BAD}"}
  q:
    verify: {scheme: hmac, signature: {header: "${BAD}"}, signed: "${BAD}", secrets: [s3cret]}
    extract: {request_id: /id, event: /type, idempotency_key: /key}
    events: {done: complete}
workflows:
  w:
    initial: "${BAD}"
    states: {a: {label: "${BAD}", limit: "${BAD}"}, b: {limit: {after: "${BAD}", event: "${BAD}"}}}
    transitions: [{from: "${BAD}", event: "${BAD}", to: "${BAD}", by: "${BAD}", evidence: "${BAD}"}]
api: {tokens: [{name: "${BAD}", role: "${BAD}", sha256: "${BAD}", expires: "${BAD}", permissions: ["${BAD}"]}]}
destinations:
  d: {url: "${BAD}", secret: "${BAD}", events: ["${BAD}"], allow: ["${BAD}"]}
)",
                      {{"BAD", "canary {canary}"}});
  EXPECT_GT(l.problems.size(), 12u);
  for (const auto& line : lines_of(l.problems)) EXPECT_THAT(line, Not(HasSubstr("canary")));
  for (const auto& line : lines_of(l.warnings)) EXPECT_THAT(line, Not(HasSubstr("canary")));
}

TEST(Load, TheDigestCoversEverythingThatWasRead) {
  const std::string text = "database: {url: \"${URL}\"}\n" + std::string(smallest);
  const auto first = load(text, {{"URL", "postgresql://a"}});
  ASSERT_TRUE(first.settings);
  EXPECT_EQ(first.settings->digest.size(), 64u);
  EXPECT_EQ(first.settings->digest, load(text, {{"URL", "postgresql://a"}}).settings->digest);
  EXPECT_NE(first.settings->digest, load(text, {{"URL", "postgresql://b"}}).settings->digest);
  EXPECT_NE(first.settings->digest, load(text + "\n", {{"URL", "postgresql://a"}}).settings->digest);
}

TEST(Load, TheEffectiveJsonHoldsNoSecret) {
  const auto l = load_file(RECIBO_SOURCE_DIR "/config/recibo.yaml", testing::env_of(testing::example_env()));
  ASSERT_TRUE(l.settings);
  const std::string json = effective_json(*l.settings);
  EXPECT_THAT(json, Not(HasSubstr("canary")));
  EXPECT_THAT(json, Not(HasSubstr("Y2FuYXJ5")));
  EXPECT_THAT(json, Not(HasSubstr("aaaaaaaa")));
  EXPECT_THAT(json, HasSubstr("\"name\": \"current\""));
  EXPECT_THAT(json, HasSubstr("\"url\": \"(set)\""));
  EXPECT_THAT(json, HasSubstr(l.settings->digest));
}

TEST(Load, TheEffectiveJsonShowsWhichKeysSignByRfc9421) {
  const auto l = load(testing::file_text(RECIBO_TEST_DATA "/config/good/http_message_signatures.yaml"));
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  const auto shown = nlohmann::json::parse(effective_json(*l.settings)).at("providers").at("p").at("verify");
  EXPECT_EQ(shown.at("keys"), nlohmann::json::parse(R"({
    "test-key ed25519": {"secret": "ed", "algorithm": "ed25519", "encoding": "base64"},
    "shared": {"secret": "secret-2", "algorithm": "hmac-sha256", "encoding": "utf8"}})"));
  EXPECT_EQ(shown.at("required_components"),
            nlohmann::json::parse(R"x(["@method", "@target-uri", "content-digest", "\"@query-param\";name=\"Pet\""])x"));
}

TEST(Load, HostsThatAreReachedThroughAGateway) {
  const auto l = load("outbound: {connect_to: {API.Circle.com: \"10.0.0.9:8443\", a.test: fd00::9}}\n" + std::string(smallest));
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  const auto& to = l.settings->outbound.connect_to;
  ASSERT_EQ(to.size(), 2u);
  EXPECT_EQ(to.at("api.circle.com"), (ip_endpoint{*parse_ip("10.0.0.9"), 8443}));
  EXPECT_EQ(to.at("a.test"), (ip_endpoint{*parse_ip("fd00::9"), 0}));
  const auto shown = nlohmann::json::parse(effective_json(*l.settings)).at("outbound").at("connect_to");
  EXPECT_EQ(shown, nlohmann::json::parse(R"({"a.test": "fd00::9", "api.circle.com": "10.0.0.9:8443"})"));
}

TEST(Load, PortsMayComeFromTheEnvironment) {
  const std::string text = "listen: {callbacks: {port: \"${P:-8080}\"}, api: {port: '${Q:-8081}'}}\n" + std::string(smallest);
  const auto l = load(text, {{"P", "0"}, {"Q", "9999"}});
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  EXPECT_EQ(l.settings->callbacks.port, 0);
  EXPECT_EQ(l.settings->api.port, 9999);
  EXPECT_THAT(
      lines_of(load(text, {{"P", "8O80"}}).problems),
      ElementsAre(
          "1:28: port: expected a whole number from 0 to 65535, found something else (not shown: it is from the environment)"));
}

TEST(Load, ADestinationTakesWhatItSubscribes) {
  destination d;
  d.events = {"operation.*"};
  EXPECT_TRUE(d.subscribes("operation.completed"));
  EXPECT_FALSE(d.subscribes("operation"));
  EXPECT_FALSE(d.subscribes("operations.completed"));
  d.events = {"operation.failed", "operation.review_opened"};
  EXPECT_TRUE(d.subscribes("operation.failed"));
  EXPECT_FALSE(d.subscribes("operation.failed_twice"));
  d.events = {"*"};
  EXPECT_TRUE(d.subscribes("anything"));
  d.events = {};
  EXPECT_FALSE(d.subscribes("operation.failed"));
}

TEST(Load, PresetsBringTheMannersOfTheirProvider) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: xero, secrets: [s3cret]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
  q:
    verify: {scheme: xero, secrets: [s3cret]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
    answers: {conflict: 409, body: "[accepted]"}
    answer_within: 3s
)");
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  const provider &p = l.settings->providers.at("p"), &q = l.settings->providers.at("q");
  EXPECT_EQ(p.answers.status.at("conflict"), 200);
  EXPECT_EQ(p.answers.status.at("unprocessable"), 200) << "Xero takes nothing but 200 for success";
  EXPECT_EQ(p.answers.status.at("parked"), 200);
  EXPECT_EQ(p.answers.body, "");
  ASSERT_TRUE(p.handshake);
  EXPECT_EQ(p.handshake->kind, handshake_kind::xero);
  EXPECT_EQ(p.resend_span, std::chrono::hours(24));
  EXPECT_EQ(p.answer_within, std::chrono::seconds(4));
  EXPECT_EQ(q.answers.status.at("conflict"), 409);
  EXPECT_EQ(q.answers.body, "[accepted]");
  EXPECT_EQ(q.answers.content_type, "text/plain; charset=utf-8");
  EXPECT_EQ(q.answer_within, std::chrono::seconds(3));
}

TEST(Load, HandshakesAreConfiguredImpliedAndLeftOut) {
  const auto l = load(R"(providers:
  configured:
    verify: {scheme: meta, secrets: [s3cret]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
    handshake: {type: meta, token: {value: "${VERIFY_TOKEN}", until: 2099-01-01T00:00:00Z}}
  implied:
    verify: {scheme: slack, secrets: [s3cret]}
    extract: {request_id: /id, event: /type}
    events: {done: complete}
  refused:
    verify: {scheme: dropbox, secrets: [s3cret]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
    handshake: none
  without:
    verify: {scheme: meta, secrets: [s3cret]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
  other:
    verify: {scheme: github, secrets: ["public|private"]}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
    handshake: {type: braintree}
)",
                      {{"VERIFY_TOKEN", "vt-canary"}});
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  const auto& all = l.settings->providers;
  EXPECT_EQ(all.at("configured").handshake->kind, handshake_kind::meta);
  EXPECT_EQ(all.at("configured").handshake->token.text.reveal(), "vt-canary");
  EXPECT_TRUE(all.at("configured").handshake->token.until);
  EXPECT_EQ(all.at("implied").handshake->kind, handshake_kind::slack);
  EXPECT_FALSE(all.at("refused").handshake);
  EXPECT_FALSE(all.at("without").handshake) << "a preset brings no handshake that needs a token";
  EXPECT_EQ(all.at("other").handshake->kind, handshake_kind::braintree);
  const std::string shown = effective_json(*l.settings);
  EXPECT_EQ(shown.find("canary"), std::string::npos);
  EXPECT_THAT(shown, HasSubstr("\"token\": \"(set)\""));
}

TEST(Load, AHandshakeThatProvesASecretNeedsOne) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: none}
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
    handshake: {type: zoom}
)");
  EXPECT_THAT(lines_of(l.problems),
              ElementsAre("6:16: handshake: zoom is answered with the provider's secret, and scheme: none has none"));
}

TEST(Load, KeysThatEndBeforeTheProviderStopsSendingAreAWarning) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: stripe, secrets: [s3cret]}
    extract: {request_id: /id, event: /type}
    events: {done: complete}
    idempotency: {keep: 2d}
)");
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  EXPECT_THAT(lines_of(l.warnings),
              Contains("6:25: keep: this provider may send again for longer, and then what it repeats would count as new"));
}

TEST(Load, TheKeyDefaultsToASignedDeliveryId) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: standard-webhooks, secrets: ["whsec_bGVkZ2VyLXRlc3Qtc2VjcmV0LW9mLTMyLWJ5dGVzISE="]}
    extract: {request_id: /id, event: /type}
    events: {done: complete}
  q:
    verify: {scheme: stripe, secrets: [s3cret]}
    extract: {request_id: /id, event: /type}
    events: {done: complete}
)");
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  EXPECT_EQ(l.settings->providers.at("p").extract.idempotency_key.at(0).name, "webhook-id");
  EXPECT_EQ(l.settings->providers.at("q").extract.idempotency_key.at(0).name, "/id");
}

TEST(Load, SourcesOfEveryForm) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: github, secrets: [s3cret]}
    extract:
      request_id: {form: payload, then: /id}
      reference: [/ref, {json: /other~1ref}]
      idempotency_key: [/a, {header: X-Thing, unsigned: accept}, {query: n, unsigned: accept}]
      event: {json: /type}
      occurred_at: {json: /at, format: unix_ms}
    events: {done: complete}
)");
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  const extract& e = l.settings->providers.at("p").extract;
  EXPECT_EQ(e.request_id.at(0).from, source::place::form);
  EXPECT_EQ(e.request_id.at(0).then, "/id");
  EXPECT_EQ(e.reference.size(), 2u);
  EXPECT_EQ(e.idempotency_key.at(1).name, "x-thing");
  EXPECT_EQ(e.idempotency_key.at(2).from, source::place::query);
  EXPECT_EQ(e.occurred_at.at(0).format, verify::timestamp_format::unix_ms);
}

TEST(Load, ASchemeInItsFullForm) {
  const auto l = load(R"(providers:
  p:
    public_url: https://hooks.example.com/callbacks/p
    verify:
      kind: hmac
      hash: sha512
      key: {strip_prefix: k_, encoding: hex}
      signature: {from: header, names: [x-sig, x-old-sig], repeat: true, list: ",", pair: "=", element: v1, prefix: "a", encoding: base64}
      timestamp: {from: element, name: t, format: unix_ms, tolerance_s: 60}
      content:
        - {timestamp: true}
        - {lit: "."}
        - {header: x-id, before: "<", after: ">", optional: true, lower: true}
        - {url: full}
        - {query: q, default: ""}
        - {body: true}
      replay_id: {header: x-id}
      secrets: ["k_00ff"]
    extract: {request_id: /id, idempotency_key: /key, event: /type}
    events: {done: complete}
)");
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  const provider& p = l.settings->providers.at("p");
  EXPECT_EQ(p.verify.hash, verify::hash_name::sha512);
  EXPECT_EQ(p.verify.signature.names, (std::vector<std::string>{"x-sig", "x-old-sig"}));
  EXPECT_EQ(p.verify.timestamp->tolerance, std::chrono::seconds(60));
  EXPECT_EQ(p.verify.timestamp->from, verify::place::element);
  ASSERT_EQ(p.verify.content.size(), 6u);
  EXPECT_EQ(p.verify.content[2].before, "<");
  EXPECT_EQ(p.verify.content[4].fallback, "");
  EXPECT_EQ(p.keys.secrets.at(0).key.reveal(), std::string("\x00\xff", 2));
  EXPECT_EQ(p.public_url, "https://hooks.example.com/callbacks/p");
}

TEST(Load, TheShortTemplateIsTheFullContent) {
  const auto l = load(R"(providers:
  p:
    verify:
      scheme: hmac
      signature: {header: X-Sig}
      signed: "{{v0}}:{timestamp}:{method}:{header:X-Id}:{query:q}:{json:/a/b}:{body}"
      timestamp: {header: X-Time, unit: milliseconds}
      tolerance: 30s
      secrets: [s3cret]
    extract: {request_id: /id, idempotency_key: {header: x-id}, event: /type}
    events: {done: complete}
)");
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  const verify::scheme& scheme = l.settings->providers.at("p").verify;
  using part = verify::content_part::source;
  std::vector<part> parts;
  for (const auto& p : scheme.content) parts.push_back(p.what);
  EXPECT_THAT(parts, ElementsAre(part::literal, part::timestamp, part::literal, part::method, part::literal, part::header,
                                 part::literal, part::query, part::literal, part::json, part::literal, part::body));
  EXPECT_EQ(scheme.content[0].names.at(0), "{v0}:");
  EXPECT_EQ(scheme.content[5].names.at(0), "x-id");
  EXPECT_EQ(scheme.timestamp->format, verify::timestamp_format::unix_ms);
  EXPECT_EQ(scheme.timestamp->tolerance, std::chrono::seconds(30));
}

// A preset of the reference either works or is refused for what it is; none looks like a mistyped name.
TEST(Load, EveryPresetIsServedOrSaidNotToBe) {
  const auto all = nlohmann::json::parse(testing::file_text(RECIBO_SOURCE_DIR "/src/verify/presets.json"));
  ASSERT_GT(all.size(), 40u);
  for (const auto& [name, unused] : all.items()) {
    const auto l = load("providers:\n  p:\n    verify: {scheme: " + name +
                        ", secrets: [\"whsec_bGVkZ2VyLXRlc3Qtc2VjcmV0LW9mLTMyLWJ5dGVzISE=\"]}\n"
                        "    extract: {request_id: /id, idempotency_key: /key, event: /type}\n    events: {done: complete}\n");
    EXPECT_TRUE(verify::presets().contains(name)) << name;
    for (const std::string& line : lines_of(l.problems)) {
      EXPECT_EQ(line.find("scheme: there is none named"), std::string::npos) << line;
    }
  }
}

TEST(Load, ItemsAndManyEventsAreReadAndShown) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: github, secrets: [s3cret]}
    extract:
      each: ""
      request_id: /id
      idempotency_key: /key
      items: {each: /results, item_id: /id, event: /status, occurred_at: {json: /at, format: unix_s}, sequence: /n, result: {score: /score}}
    events: {done: complete}
    workflow: w
workflows:
  w:
    initial: open
    states: {open: {limit: none}, done: {terminal: true}}
    transitions: [{from: open, event: complete, to: done, by: provider}]
    items: [{all: done, event: complete}, {any: [done, open], event: complete}]
)");
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  const extract& e = l.settings->providers.at("p").extract;
  EXPECT_EQ(e.each, "");
  EXPECT_TRUE(e.event.empty()) << "where items are spoken of, the operation need not be";
  ASSERT_TRUE(e.items);
  EXPECT_EQ(e.items->each, "/results");
  EXPECT_EQ(e.items->item_id.front().name, "/id");
  EXPECT_EQ(e.items->occurred_at.front().format, verify::timestamp_format::unix_s);
  EXPECT_EQ(e.items->result.at("score").name, "/score");
  const auto& rules = l.settings->workflows.at("w")->items();
  ASSERT_EQ(rules.size(), 2u);
  EXPECT_EQ(rules[0].which, transition::items_rule::quantifier::all);
  EXPECT_THAT(rules[1].states, ElementsAre("done", "open"));
  const auto shown = nlohmann::json::parse(effective_json(*l.settings));
  EXPECT_EQ(shown["providers"]["p"]["extract"]["items"]["each"], "/results");
  EXPECT_EQ(shown["providers"]["p"]["extract"]["each"], "");
  EXPECT_EQ(shown["workflows"]["w"]["items"][0]["all"][0], "done");
}

TEST(Load, RulesOfItemsAreCheckedWithTheTable) {
  const auto l = load(R"(workflows:
  w:
    initial: open
    states: {open: {limit: none}, done: {terminal: true}}
    transitions: [{from: open, event: complete, to: done, by: provider}]
    items: [{all: don, event: complete}, {any: done, event: finish}, {event: complete}, {all: done, any: done, event: complete}]
)");
  EXPECT_THAT(lines_of(l.problems),
              ElementsAre("6:19: states: there is no state named don", "6:61: event \"finish\": no transition has this event",
                          "6:70: items: a rule says either all or any: the states that all items, or at least one, must be in",
                          "6:89: items: a rule says either all or any: the states that all items, or at least one, must be in"));
}

TEST(Load, AnAgeCheckIsSwitchedOffByOneWordAndWarns) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: stripe, secrets: [s3cret], tolerance: off}
    extract: {request_id: /id, event: /type}
    events: {done: complete}
)");
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  EXPECT_FALSE(l.settings->providers.at("p").verify.timestamp->tolerance);
  EXPECT_THAT(lines_of(l.warnings),
              ::testing::Contains("3:60: tolerance: off; a recorded request can be sent again at any time"));
}

TEST(Load, SchemeNoneWarnsEveryTime) {
  const auto l = load(R"(providers:
  p:
    verify: {scheme: none}
    extract: {request_id: {form: id}, idempotency_key: {header: x-key}, event: {query: type}}
    events: {done: complete}
)");
  ASSERT_THAT(lines_of(l.problems), IsEmpty());
  EXPECT_EQ(l.settings->providers.at("p").verify.kind, verify::scheme_kind::none);
  EXPECT_THAT(lines_of(l.warnings),
              ::testing::Contains("3:22: scheme: none; whoever reaches the listener can send callbacks as p"));
}

}  // namespace
}  // namespace recibo::config
