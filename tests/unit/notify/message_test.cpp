// What a notification says and how it is signed (R19).
#include "recibo/notify/message.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/core/json.hpp"
#include "recibo/verify/keyed_hash.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace recibo::notify {
namespace {

using namespace std::chrono_literals;

const sys_micros midday{std::chrono::sys_days(std::chrono::year(2026) / 3 / 1) + 12h};

verify::named_secret key(std::string name, std::string bytes) {
  verify::named_secret out;
  out.name = std::move(name);
  out.key = secret(std::move(bytes));
  return out;
}

std::string value_of(const http::header_list& headers, std::string_view name) {
  return std::string(http::find_header(headers, name).value_or("(none)"));
}

TEST(Headers, SignedByEverySecretThatIsValidNow) {
  storage::claimed_notification n;
  n.id = make_id<notification_id>(midday);
  n.sequence = 7;
  verify::keyring keys;
  keys.secrets = {key("new", "the new key"), key("old", "the old key"), key("gone", "x"), key("later", "y")};
  keys.secrets[1].until = midday + 1h;
  keys.secrets[2].until = midday;
  keys.secrets[3].from = midday + 1s;
  const auto headers = headers_of(n, "{}", keys, midday);
  ASSERT_TRUE(headers);
  EXPECT_EQ(value_of(*headers, "webhook-id"), to_string(n.id));
  EXPECT_EQ(value_of(*headers, "webhook-timestamp"), "1772366400");
  EXPECT_EQ(value_of(*headers, "recibo-sequence"), "7");
  const auto signed_by = [&](const char* bytes) {
    return "v1," + to_base64(verify::keyed_hash(verify::hash_name::sha256, bytes, to_string(n.id) + ".1772366400.{}"));
  };
  EXPECT_EQ(value_of(*headers, "webhook-signature"), signed_by("the new key") + ' ' + signed_by("the old key"));
}

TEST(Headers, WithoutAValidSecretNothingIsSent) {
  verify::keyring keys;
  keys.secrets = {key("gone", "x")};
  keys.secrets[0].until = midday;
  const auto headers = headers_of({}, "{}", keys, midday);
  ASSERT_FALSE(headers);
  EXPECT_EQ(headers.error().code, make_error_code(permanent::invalid_configuration));
}

TEST(Headers, WithoutASecretTheyAreNotSigned) {
  const auto headers = headers_of({}, "{}", {}, midday);
  ASSERT_TRUE(headers);
  EXPECT_EQ(value_of(*headers, "webhook-signature"), "(none)");
  EXPECT_NE(value_of(*headers, "webhook-id"), "(none)");
}

TEST(Subject, FillsItsGaps) {
  EXPECT_EQ(subject_of("recibo.{provider}.{type}", "operation.completed", "acme", "r"), "recibo.acme.operation.completed");
  EXPECT_EQ(subject_of("all", "operation.completed", "acme", "r"), "all");
  EXPECT_EQ(subject_of("r.{request_id}.x", "t", "p", "req-1001"), "r.req-1001.x");
}

TEST(Subject, AProvidersSilenceHasNoRequest) {
  EXPECT_EQ(subject_of("r.{provider}.{request_id}.{type}", "provider.silent", "acme", ""), "r.acme.-.provider.silent");
}

TEST(BodyOfProvider, SaysWhoSinceWhenAndWhy) {
  storage::claimed_notification n;
  n.id = *parse_id<notification_id>("01900000-0000-7000-8000-000000000001");
  n.type = "provider.silent";
  n.created_at = *parse_rfc3339("2026-10-01T10:00:00Z");
  n.of_provider = storage::claimed_notification::provider_fact{"acme", "quiet", n.created_at, std::nullopt};
  EXPECT_EQ(
      body_of_provider(n),
      R"({"id":"01900000-0000-7000-8000-000000000001","type":"provider.silent","timestamp":"2026-10-01T10:00:00.000000Z",)"
      R"("data":{"provider":"acme","reason":"quiet","silent_since":"2026-10-01T10:00:00.000000Z","last_callback_at":null}})");
}

TEST(Subject, ForeignTextStaysOneToken) {
  EXPECT_EQ(subject_of("r.{request_id}", "t", "p", "a.b*c>d$e\\f:g"), "r.a%2Eb%2Ac%3Ed%24e%5Cf%3Ag");
  EXPECT_EQ(subject_of("r.{request_id}", "t", "p", "{type}"), "r.%7Btype%7D");
}

TEST(Excerpt, IsShortAndPrintable) {
  EXPECT_EQ(excerpt_of(""), "");
  EXPECT_EQ(excerpt_of("no such account\n"), "no such account");
  EXPECT_EQ(excerpt_of("a\x1b[31mb\xc3\xa9"), "a [31mb");
  EXPECT_EQ(excerpt_of(std::string(1000, 'x')).size(), 200u);
}

TEST(Excerpt, OfOursNamesAddresses) {
  EXPECT_EQ(excerpt_of_ours("No connection to 192.168.100.200 in time."), "No connection to 192.168.100.200 in time.");
  EXPECT_EQ(excerpt_of_ours("TLS with a\xc3\xa9 failed:\n"), "TLS with a   failed: ");
  EXPECT_EQ(excerpt_of_ours(std::string(1000, 'x')).size(), 200u);
  EXPECT_EQ(excerpt_of("No connection to 192.168.100.200 in time."), "No connection to (hidden) in time.")
      << "it may be anything";
}

TEST(Excerpt, HidesWhatMayBeASecret) {
  const std::pair<const char*, const char*> cases[] = {
      {"no account 0190b5a2-1c3d-7e4f-8a9b-0c1d2e3f4a5b today", "no account 0190b5a2-1c3d-7e4f-8a9b-0c1d2e3f4a5b today"},
      {"unknown operation req-1001 of ledger-service-v2.internal", "unknown operation req-1001 of ledger-service-v2.internal"},
      {"the key MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw is old", "the key (hidden) is old"},
      {"Authorization: Bearer abc, retry", "Authorization: (hidden) (hidden), retry"},
      {R"x(it says "token":"t0p", no more)x", R"x(it says "token":"(hidden)", no more)x"},
      {"password=hunter2&x=1", "password=(hidden)&x=1"},
      {"password is wrong", "password is wrong"},
      {"got eyJhbGciOiJIUzI1NiJ9.e30.abc", "got (hidden).e30.abc"},
      {"card 4111111111111111 refused", "card (hidden) refused"},
      {"card 4111 1111 1111 1111 refused", "card (hidden) refused"},
      {"card 4111-1111-1111-1111, refused", "card (hidden), refused"},
      {"card 4111.1111.1111.1111x refused", "card (hidden) refused"},
      {"card 4111 - 1111 - 1111 - 1111 refused", "card (hidden) refused"},
      {"of DE89370400440532013000", "of (hidden)"},
      {"of DE89 3704 0044 0532 0130 00", "of DE89 (hidden)"},
      {"call +49 170 1234567 now", "call (hidden) now"},
      {"Jane <", "Jane (hidden)"},
      {"write to jane.doe+x@mail.example.com, please", "write to (hidden), please"},
      {"at 2026-12-01T10:00:00Z, not 2026-12-01", "at 2026-12-01T10:00:00Z, not 2026-12-01"},
      {"line 12 of 345, 3 - 4 of 1.5", "line 12 of 345, 3 - 4 of 1.5"},
      {"v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4= does not match", "v1,(hidden) does not match"},
      {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "(hidden)"},
  };
  for (const auto& [said, shown] : cases) EXPECT_EQ(excerpt_of(said), shown);
  // Words are those of who answers; a document may be anybody's.
  const std::pair<const char*, const char*> documents[] = {
      {R"({"title":"Bad request","status":400,"detail":"Jane Doe is unknown","code":"bad"})",
       "title: Bad request, status: 400, code: bad"},
      {R"( {"error":{"code":"no_account","message":"none for 4111 1111 1111 1111","holder":"Jane"},"data":{"code":"x"}})",
       "code: no_account, message: none for (hidden)"},
      {R"({"name":"Jane Doe"})", "(hidden)"},
      {R"(["Jane Doe"])", "(hidden)"},
      {R"({"title":"cut)", "(hidden)"},
      {R"(not taken: {"name":"Jane Doe"})", "not taken: (hidden)"},
      {"<!DOCTYPE html><html><head><TITLE>502 Bad Gateway</title></head><body>Jane Doe", "502 Bad Gateway"},
      {"<fault>Jane Doe</fault>", "(hidden)"},
  };
  for (const auto& [said, shown] : documents) EXPECT_EQ(excerpt_of(said), shown);
  // One that the cut would shorten below what is suspicious.
  EXPECT_EQ(excerpt_of(std::string(190, ' ') + "x MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").find("MfKQ"), std::string::npos);
}

}  // namespace
}  // namespace recibo::notify
