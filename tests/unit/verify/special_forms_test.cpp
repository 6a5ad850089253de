// Where one provider's own way of writing decides: how WooCommerce stores a secret, how Twilio sorts.
#include "support.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/verify/keyed_hash.hpp"

namespace recibo::verify {
namespace {

using namespace testing;

TEST(SpecialForms, WooCommerceDecodesTheEntitiesOfItsSecret) {
  const scheme& woo = presets().at("woocommerce");
  struct row {
    const char *shown, *key;
  };
  constexpr row rows[] = {{"a&amp;b&lt;c&gt;d&quot;e", "a&b<c>d\"e"},
                          {"&#039;&#39;&#x27;&#X0027;", "''''"},
                          {"&#38;&#0038;&#x26;&#60;&#62;&#34;&#x22;", "&&&<>\"\""},
                          {"as typed & plain", "as typed & plain"},
                          {"once only: &amp;lt; &amp;#39;", "once only: &lt; &#39;"},
                          {"others stay: &copy; &#65; &apos; &AMP; &#; &", "others stay: &copy; &#65; &apos; &AMP; &#; &"}};
  for (const row& r : rows) {
    const headers sent{{"X-WC-Webhook-Signature", to_base64(keyed_hash(hash_name::sha256, r.key, b0))}};
    EXPECT_EQ(run(woo, sent, b0, make_keys(woo, {r.shown}), at_unix(b0_time)), "valid") << r.shown;
  }
}

// JavaScript and Java sort by UTF-16 code units: U+1F600 is D83D DE00 there, and comes before U+FF5E; in UTF-8 it comes behind.
TEST(SpecialForms, TwilioSortsByCodeUnits) {
  const scheme& twilio = presets().at("twilio");
  const std::string url = "https://hooks.example.com/in/twilio";
  const std::string body = "%EF%BD%9E=b&%F0%9F%98%80=a&B=1&_=2&a=3&a=%EF%BD%9E&a=%F0%9F%98%80";
  const std::string signed_text = url +
                                  "B1_2a3a\xF0\x9F\x98\x80"
                                  "a\xEF\xBD\x9E\xF0\x9F\x98\x80"
                                  "a\xEF\xBD\x9E"
                                  "b";
  const headers sent{{"Content-Type", "application/x-www-form-urlencoded"},
                     {"X-Twilio-Signature", to_base64(keyed_hash(hash_name::sha1, "token", signed_text))}};
  const signed_message message{"POST", url, "", sent, body};
  EXPECT_EQ(verdict(verify(twilio, message, make_keys(twilio, {"token"}), at_unix(b0_time))), "valid");
}

// Anybody may send bytes that are no UTF-8: they have one order among the others, too.
TEST(SpecialForms, TwilioSortsWhatIsNoUtf8) {
  const scheme& twilio = presets().at("twilio");
  const std::string url = "https://hooks.example.com/in/twilio";
  const std::string body = "%EEc=3&%FEb=2&%EEa=1&%FFd=4";
  const std::string signed_text = url +
                                  "\xFE"
                                  "b2\xFF"
                                  "d4\xEE"
                                  "a1\xEE"
                                  "c3";
  const headers sent{{"Content-Type", "application/x-www-form-urlencoded"},
                     {"X-Twilio-Signature", to_base64(keyed_hash(hash_name::sha1, "token", signed_text))}};
  const signed_message message{"POST", url, "", sent, body};
  EXPECT_EQ(verdict(verify(twilio, message, make_keys(twilio, {"token"}), at_unix(b0_time))), "valid");
}

}  // namespace
}  // namespace recibo::verify
