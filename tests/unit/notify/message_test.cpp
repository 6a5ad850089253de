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

TEST(Excerpt, IsShortAndPrintable) {
  EXPECT_EQ(excerpt_of(""), "");
  EXPECT_EQ(excerpt_of("no such account\n"), "no such account");
  EXPECT_EQ(excerpt_of("a\x1b[31mb\xc3\xa9"), "a [31mb");
  EXPECT_EQ(excerpt_of(std::string(1000, 'x')).size(), 200u);
}

}  // namespace
}  // namespace recibo::notify
