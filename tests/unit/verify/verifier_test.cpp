// The field cases of signatures, as tables, and the rules that no vector shows.
#include "support.hpp"

#include "recibo/core/digest.hpp"

namespace recibo::verify {
namespace {

using namespace testing;

std::string signature_of(std::string_view body, std::string_view time, const char* secret = "test-secret-A") {
  const headers sent{{"X-Timestamp", std::string(time)}};
  const auto made =
      sign(p1_scheme(), signed_message{"POST", "", "", sent, body}, make_secret(p1_scheme(), "s", secret), at_unix(b0_time));
  return made.value().back().second;
}

std::string check(const headers& sent, std::string_view body = b0, sys_micros now = at_unix(b0_time)) {
  return run(p1_scheme(), sent, body, make_keys(p1_scheme(), {"test-secret-A"}), now);
}

const std::string right = "sha256=" + std::string(b0_signature);

// HMAC-SHA256 over the body alone, as openssl computes them: the primitive, every byte of the body, and two special keys.
struct primitive_case {
  const char* name;
  std::string body, secret;
  const char* expected;
};

std::string with_line_breaks() {
  std::string out;
  for (const char c : b0) out += c == ',' ? std::string(",\r\n ") : std::string(1, c);
  return out;
}

std::string b1() {
  std::string out(b0);
  out.replace(out.find("19.99"), 5, "1999.00");
  return out;
}

TEST(FieldCases, ThePrimitiveIsOpenssls) {
  const scheme plain = parse_scheme("plain", R"({"signature":{"names":["x"]},"content":[{"body":true}]})").value();
  const primitive_case cases[] = {
      {"b0", std::string(b0), "test-secret-A", "d4965aba55bd17884e5b56453a42096d9cf2df96b6898129f7baacdd3cc82a7c"},
      {"b0 and a line feed", std::string(b0) + "\n", "test-secret-A",
       "33e90bd6036ad364ee541dee84cd98b51f5a5fcd9d2cf3f8bf1184109841b98a"},
      {"b0 with line breaks", with_line_breaks(), "test-secret-A",
       "8d9172a819b1fecb175329cf6dd56e6de9178af8139efa30aa9b8896c754b926"},
      {"b1", b1(), "test-secret-A", "040449a915ebf374755b76114a93ea3351553b4187ceb127d69eb3e441f71b6a"},
      {"time and b0", std::to_string(b0_time) + "." + std::string(b0), "test-secret-A", b0_signature.data()},
      {"the key with a line feed", std::string(b0), "test-secret-A\n",
       "5554f1663dab3e024483068e726361e0215049e106bdd63557e10776297118f8"},
      {"a character cut in two",
       "{\"request_id\":\"req-1001\",\"event_id\":\"evt-2\",\"status\":\"processing\",\"note\":\"h\xc3\xa9llo \xf0\x9f\x98\x8a "
       "\xe2\x80\xa8\"}",
       "test-secret-A", "b7e8ab11c39c4df1798577146cc4aa4b8cdc0efb4b9681dcba4acc7ba2f8653e"},
      {"an escape in capitals", R"({"request_id":"req-1001","event_id":"evt-3","status":"processing","note":"\u001B[1m"})",
       "test-secret-A", "ee1c649d3a26a1c32eb57ad04c2d735175ff7577c5f10417cbf704a8d8387f44"},
      {"an escape in small letters", R"({"request_id":"req-1001","event_id":"evt-3","status":"processing","note":"\u001b[1m"})",
       "test-secret-A", "85a09d8d5188d0e3028151a729f2395edc10703d1b21579a7060df88d3c2e0dc"},
  };
  for (const primitive_case& c : cases) {
    const auto made = sign(plain, signed_message{"POST", "", "", {}, c.body}, make_secret(plain, "s", c.secret), at_unix(0));
    ASSERT_TRUE(made) << c.name;
    EXPECT_EQ(made->back().second, c.expected) << c.name;
  }
}

// S10: each body with its own signature, and the first body with that of the second.
TEST(FieldCases, S10EveryByteCounts) {
  const std::string time = std::to_string(b0_time);
  const std::string longer = std::string(b0) + "\n";
  ASSERT_EQ(longer.size(), 137u);
  ASSERT_EQ(with_line_breaks().size(), 151u);
  EXPECT_EQ(check(p1_headers(time, signature_of(longer, time)), longer), "valid");
  EXPECT_EQ(check(p1_headers(time, signature_of(with_line_breaks(), time)), with_line_breaks()), "valid");
  EXPECT_EQ(check(p1_headers(time, signature_of(longer, time)), b0), "signature_mismatch");
}

// S13.
TEST(FieldCases, S13SpellingAndSpacingOfHeaders) {
  const std::string time = std::to_string(b0_time);
  for (const char* name : {"x-signature", "X-SIGNATURE", "X-Signature"}) {
    const headers sent{{"x-timestamp", time}, {name, right}};
    EXPECT_EQ(check(sent), "valid") << name;
  }
  EXPECT_EQ(check({{"X-Timestamp", " \t" + time + "\t "}, {"X-Signature", "\t " + right + " \t"}}), "valid");

  // The same signed bytes in the form of a list.
  const scheme list = parse_scheme("list", R"({"signature":{"names":["x-signature"],"list":",","pair":"=","element":"v1"},
    "timestamp":{"from":"element","name":"t"},"content":[{"timestamp":true},{"lit":"."},{"body":true}]})")
                          .value();
  const auto keys = make_keys(list, {"test-secret-A"});
  for (const std::string& value :
       {"t=" + time + ", v1=" + std::string(b0_signature), "t=" + time + ",v1=" + std::string(b0_signature) + ",v0=abc",
        "v1=" + std::string(b0_signature) + " ,\tt = " + time}) {
    EXPECT_EQ(run(list, {{"x-signature", value}}, b0, keys, at_unix(b0_time)), "valid") << value;
  }
}

// S14 a and b: order does not decide.
TEST(FieldCases, S14AHeaderSentTwice) {
  const std::string time = std::to_string(b0_time);
  const std::string wrong = "sha256=" + std::string(64, '0');
  EXPECT_EQ(check({{"X-Timestamp", time}, {"X-Signature", wrong}, {"X-Signature", right}}), "signature_repeated");
  EXPECT_EQ(check({{"X-Timestamp", time}, {"X-Signature", right}, {"x-signature", wrong}}), "signature_repeated");
  EXPECT_EQ(check({{"X-Timestamp", time}, {"x-timestamp", time}, {"X-Signature", right}}), "signature_repeated");
  EXPECT_EQ(check({{"X-Timestamp", time}, {"X-Signature", right}, {"Content-Type", "a/b"}, {"Content-Type", "a/b"}}), "valid");
  // A signed id that stands twice is refused as well.
  const scheme& standard = presets().at("standard-webhooks");
  const auto key = make_secret(standard, "s", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
  headers sent{{"webhook-id", "msg_1"}};
  const auto added = sign(standard, signed_message{"POST", "", "", sent, b0}, key, at_unix(b0_time)).value();
  sent.insert(sent.end(), added.begin(), added.end());
  EXPECT_EQ(run(standard, sent, b0, keyring{{key}}, at_unix(b0_time)), "valid");
  sent.emplace_back("Webhook-Id", "msg_1");
  EXPECT_EQ(run(standard, sent, b0, keyring{{key}}, at_unix(b0_time)), "signature_repeated");
}

struct stamp_case {
  const char* name;
  std::string stamp;
  const char* expected;
};

// S15: each rightly signed with the literal stamp.
TEST(FieldCases, S15TimeStamps) {
  const auto text = [](std::int64_t offset) { return std::to_string(b0_time + offset); };
  const stamp_case cases[] = {
      {"now-299", text(-299), "valid"},
      {"now-300, exactly the tolerance", text(-300), "valid"},
      {"now-301", text(-301), "timestamp_stale"},
      {"now+300, exactly the tolerance", text(300), "valid"},
      {"now+301", text(301), "timestamp_stale"},
      {"milliseconds: seconds beyond the year 9999", text(0) + "000", "timestamp_malformed"},
      {"junk behind", text(0) + "junk", "timestamp_malformed"},
      {"empty", "", "timestamp_missing"},
      {"a plus sign", "+" + text(0), "timestamp_malformed"},
      {"a minus sign", "-" + text(0), "timestamp_malformed"},
      {"a fraction", text(0) + ".0", "timestamp_malformed"},
      {"hexadecimal", "0x6abe1d20", "timestamp_malformed"},
      {"an exponent", "1.790848800e9", "timestamp_malformed"},
      {"endless", std::string(5000, '9'), "timestamp_malformed"},
  };
  for (const stamp_case& c : cases) EXPECT_EQ(check(p1_headers(c.stamp, signature_of(b0, c.stamp))), c.expected) << c.name;
  EXPECT_EQ(check({{"X-Signature", right}}), "timestamp_missing");
}

TEST(FieldCases, S15WithMillisecondsConfiguredSecondsAreStale) {
  scheme millis = p1_scheme();
  millis.timestamp->format = timestamp_format::unix_ms;
  const auto keys = make_keys(millis, {"test-secret-A"});
  const std::string seconds = std::to_string(b0_time);
  EXPECT_EQ(run(millis, p1_headers(seconds + "000", signature_of(b0, seconds + "000")), b0, keys, at_unix(b0_time)), "valid");
  EXPECT_EQ(run(millis, p1_headers(seconds, signature_of(b0, seconds)), b0, keys, at_unix(b0_time)), "timestamp_stale");
}

TEST(FieldCases, S15AFractionOfOurSecondDoesNotCount) {
  const std::string time = std::to_string(b0_time);
  const auto late = at_unix(b0_time + 300) + std::chrono::milliseconds(999);
  EXPECT_EQ(check(p1_headers(time, right), b0, late), "valid");
  EXPECT_EQ(check(p1_headers(time, right), b0, late + std::chrono::milliseconds(1)), "timestamp_stale");
}

// S16: both while both are valid; the old one no longer once it has run out or is gone; the match is named.
TEST(FieldCases, S16RotationWithoutAGap) {
  const scheme& how = p1_scheme();
  const std::string time = std::to_string(b0_time);
  keyring keys{{make_secret(how, "new", "test-secret-A2"), make_secret(how, "old", "test-secret-A")}};
  const headers by_old = p1_headers(time, right);
  const headers by_new = p1_headers(time, signature_of(b0, time, "test-secret-A2"));
  const auto name = [&](const headers& sent) {
    const auto found = verify(how, signed_message{"POST", "", "", sent, b0}, keys, at_unix(b0_time));
    return found ? *found : std::string(code_word(found.error().code));
  };
  EXPECT_EQ(name(by_old), "old");
  EXPECT_EQ(name(by_new), "new");
  keys.secrets[1].until = at_unix(b0_time);  // exclusive
  EXPECT_EQ(name(by_old), "signature_mismatch");
  keys.secrets[1].until = at_unix(b0_time) + std::chrono::microseconds(1);
  EXPECT_EQ(name(by_old), "old");
  keys.secrets[0].from = at_unix(b0_time) + std::chrono::microseconds(1);
  EXPECT_EQ(name(by_new), "signature_mismatch");
  keys.secrets[0].from = at_unix(b0_time);  // inclusive
  EXPECT_EQ(name(by_new), "new");
  keys.secrets.clear();
  EXPECT_EQ(name(by_new), "signature_mismatch");
}

// S17: the key is the 13 bytes, never the 14 of a file with its line end.
TEST(FieldCases, S17ASecretIsItsBytes) {
  const std::string time = std::to_string(b0_time);
  EXPECT_EQ(check(p1_headers(time, signature_of(b0, time, "test-secret-A\n"))), "signature_mismatch");
  EXPECT_EQ(key_bytes(p1_scheme(), secret("test-secret-A")).value().reveal(), "test-secret-A");
}

// S18: an empty secret is refused when it is read, and matches nothing when it is there all the same.
TEST(FieldCases, S18NoSecretNoSignature) {
  for (const char* blank : {"", " ", "\t\n"}) EXPECT_FALSE(key_bytes(p1_scheme(), secret(blank)));
  EXPECT_FALSE(key_bytes(presets().at("standard-webhooks"), secret("whsec_")));
  EXPECT_FALSE(key_bytes(presets().at("standard-webhooks"), secret("whsec_no base64")));
  EXPECT_FALSE(key_bytes(presets().at("adyen-platform"), secret("abc")));
  const auto why = key_bytes(presets().at("adyen-platform"), secret("not-hex-SECRET"));
  EXPECT_EQ(why.error().detail.find("SECRET"), std::string::npos);

  // HMAC under the empty key over b0, made with openssl.
  const scheme plain = parse_scheme("plain", R"({"signature":{"names":["x-signature"]},"content":[{"body":true}]})").value();
  keyring empty{{named_secret{.name = "empty", .text = secret(""), .from = {}, .until = {}, .key = {}, .ready = {}}}};
  EXPECT_EQ(run(plain, {{"X-Signature", "b9db1317e82bf83a123f7d89cb6627215013af9c832649593304b5faf18bd6fd"}}, b0, empty,
                at_unix(b0_time)),
            "signature_mismatch");
  EXPECT_EQ(run(plain, {}, b0, empty, at_unix(b0_time)), "signature_missing");
  const std::string time = std::to_string(b0_time);
  EXPECT_EQ(check({{"X-Timestamp", time}}), "signature_missing");
  EXPECT_EQ(check(p1_headers(time, "")), "signature_missing");
}

// S19.
TEST(FieldCases, S19AlmostTheRightSignature) {
  const std::string time = std::to_string(b0_time);
  std::string last_digit_changed = right;
  last_digit_changed.back() = last_digit_changed.back() == '0' ? '1' : '0';
  std::string capitals(b0_signature);
  for (char& c : capitals) c = c >= 'a' && c <= 'f' ? static_cast<char>(c - 'a' + 'A') : c;
  EXPECT_EQ(check(p1_headers(time, "sha256=")), "signature_missing");
  EXPECT_EQ(check(p1_headers(time, right.substr(0, 7 + 8))), "signature_mismatch");
  EXPECT_EQ(check(p1_headers(time, right + "00")), "signature_mismatch");
  EXPECT_EQ(check(p1_headers(time, last_digit_changed)), "signature_mismatch");
  EXPECT_EQ(check(p1_headers(time, "sha256=" + capitals)), "valid");
  // The prefix is part of the profile, and its case too.
  EXPECT_EQ(check(p1_headers(time, std::string(b0_signature))), "signature_missing");
  EXPECT_EQ(check(p1_headers(time, "SHA256=" + std::string(b0_signature))), "signature_missing");
}

// S20: inside the window, outside it, and inside without the stamp.
TEST(FieldCases, S20ReplayInsideAndOutsideTheWindow) {
  const std::string time = std::to_string(b0_time);
  EXPECT_EQ(check(p1_headers(time, right), b0, at_unix(b0_time + 60)), "valid");
  EXPECT_EQ(check(p1_headers(time, right), b0, at_unix(b0_time + 301)), "timestamp_stale");
  EXPECT_EQ(check({{"X-Signature", right}}, b0, at_unix(b0_time + 60)), "timestamp_missing");
}

TEST(Verify, WorkIsBounded) {
  const scheme& how = presets().at("pagerduty");
  const auto keys = make_keys(how, {"test-secret-A"});
  const std::string good = "v1=d4965aba55bd17884e5b56453a42096d9cf2df96b6898129f7baacdd3cc82a7c";
  std::string many;
  for (std::size_t i = 0; i < candidates_max; ++i) many += "v1=00,";
  EXPECT_EQ(run(how, {{"x-pagerduty-signature", many + good}}, b0, keys, at_unix(0)), "signature_mismatch");
  EXPECT_EQ(run(how, {{"x-pagerduty-signature", good + "," + many}}, b0, keys, at_unix(0)), "valid");
  EXPECT_EQ(run(how, {{"x-pagerduty-signature", good + std::string(signature_header_max, ',')}}, b0, keys, at_unix(0)),
            "signature_missing");
}

TEST(Verify, NumberedHeadersMayHaveGapsButNotRepeat) {
  const scheme& how = presets().at("docusign");
  const auto keys = make_keys(how, {"test-secret-A"});
  const std::string good = to_base64(*from_hex("d4965aba55bd17884e5b56453a42096d9cf2df96b6898129f7baacdd3cc82a7c"));
  const std::string other = to_base64(std::string(32, 'x'));
  EXPECT_EQ(run(how, {{"X-DocuSign-Signature-2", other}, {"X-DocuSign-Signature-100", good}}, b0, keys, at_unix(0)), "valid");
  EXPECT_EQ(run(how, {{"X-DocuSign-Signature-101", good}}, b0, keys, at_unix(0)), "signature_missing");
  EXPECT_EQ(run(how, {{"X-DocuSign-Signature-1", good}, {"X-DocuSign-Signature-1", good}}, b0, keys, at_unix(0)),
            "signature_repeated");
}

TEST(Verify, ARepeatedSignatureHeaderCountsWhereTheProviderRepeatsIt) {
  const scheme& how = presets().at("mollie");
  const std::string good = "sha256=d4965aba55bd17884e5b56453a42096d9cf2df96b6898129f7baacdd3cc82a7c";
  const std::string other = "sha256=" + std::string(64, 'a');
  const auto keys = make_keys(how, {"test-secret-A"});
  EXPECT_EQ(run(how, {{"X-Mollie-Signature", other}, {"x-mollie-signature", good}}, b0, keys, at_unix(0)), "valid");
  EXPECT_EQ(run(how, {{"X-Mollie-Signature", good}, {"x-mollie-signature", other}}, b0, keys, at_unix(0)), "valid");
  EXPECT_EQ(run(how, {{"X-Mollie-Signature", other}, {"x-mollie-signature", other}}, b0, keys, at_unix(0)), "signature_mismatch");
}

TEST(Verify, ATimeInsideTheBodyIsReadStrictly) {
  const scheme& how = presets().at("linear");
  const auto key = make_secret(how, "s", "test-secret-A");
  const auto verdict_of = [&](std::string_view body) {
    headers sent;
    // Signed by hand: sign() would not find the time stamp in some of these.
    scheme body_only = how;
    body_only.timestamp.reset();
    sent = sign(body_only, signed_message{"POST", "", "", {}, body}, key, at_unix(b0_time)).value();
    return run(how, sent, body, keyring{{key}}, at_unix(b0_time));
  };
  const std::string now = std::to_string(b0_time) + "000";
  EXPECT_EQ(verdict_of("{\"webhookTimestamp\":" + now + "}"), "valid");
  EXPECT_EQ(verdict_of("{\"webhookTimestamp\":\"" + now + "\"}"), "valid");
  EXPECT_EQ(verdict_of("{\"webhookTimestamp\":0,\"webhookTimestamp\":" + now + "}"), "timestamp_missing");
  EXPECT_EQ(verdict_of("{\"webhookTimestamp\":" + now + "} x"), "timestamp_missing");
  EXPECT_EQ(verdict_of("{\"webhookTimestamp\":{\"a\":" + now + "}}"), "timestamp_missing");
  EXPECT_EQ(verdict_of("{\"webhookTimestamp\":" + now + ".0}"), "timestamp_malformed");
}

TEST(Verify, AnAbsentPartIsNotAnEmptyOne) {
  const scheme& how = presets().at("twitch");
  const auto key = make_secret(how, "s", "test-secret-A");
  headers with_empty_id{{"Twitch-Eventsub-Message-Id", ""}};
  const auto added = sign(how, signed_message{"POST", "", "", with_empty_id, b0}, key, at_unix(b0_time)).value();
  EXPECT_EQ(run(how, added, b0, keyring{{key}}, at_unix(b0_time)), "content_missing");
}

TEST(Verify, NoneVerifiesNothingAndNamesNoSecret) {
  const scheme how = parse_scheme("none", R"({"kind":"none"})").value();
  const auto found = verify(how, signed_message{"POST", "", "", {}, b0}, {}, at_unix(0));
  ASSERT_TRUE(found);
  EXPECT_EQ(*found, "");
}

}  // namespace
}  // namespace recibo::verify
