#include "recibo/core/digest.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace recibo {
namespace {

using namespace std::string_literals;

TEST(Digest, Sha256OfKnownTexts) {
  // FIPS 180-4 examples, from the NIST page "Cryptographic Standards and Guidelines: Example Values".
  EXPECT_EQ(to_hex(binary(sha256(""))), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(to_hex(binary(sha256("abc"))), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(binary(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"))),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(to_hex(binary(sha256(std::string(1'000'000, 'a')))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Digest, HexGoesThereAndBack) {
  const std::string bytes = "\x00\x01\x7f\x80\xff"s;
  EXPECT_EQ(to_hex(bytes), "00017f80ff");
  EXPECT_EQ(from_hex("00017F80ff"), bytes);
  EXPECT_EQ(from_hex(""), "");
  for (const char* text : {"0", "000", "0g", "0x00", " 00", "00 ", "-1", "\xc3\xbc"}) EXPECT_FALSE(from_hex(text)) << text;
}

TEST(Digest, Base64OfKnownTexts) {
  // RFC 4648 section 10.
  for (const auto& [bytes, text] : {std::pair{"", ""},
                                    {"f", "Zg=="},
                                    {"fo", "Zm8="},
                                    {"foo", "Zm9v"},
                                    {"foob", "Zm9vYg=="},
                                    {"fooba", "Zm9vYmE="},
                                    {"foobar", "Zm9vYmFy"}}) {
    EXPECT_EQ(to_base64(bytes), text);
    EXPECT_EQ(from_base64(text), bytes);
    EXPECT_EQ(from_base64url(text), bytes);
  }
  EXPECT_EQ(to_base64("\xfb\xff\xbf"), "+/+/");
  EXPECT_EQ(from_base64("+/+/"), "\xfb\xff\xbf");
  EXPECT_EQ(from_base64url("-_-_"), "\xfb\xff\xbf");
}

TEST(Digest, Base64IsStrict) {
  for (const char* text : {"Zg", "Zg=", "Zg===", "Zg==\n", " Zg==", "Zg= =", "Z", "Zh==", "Zm9=", "Zm9vYg", "====", "=",
                           "==", "=Zg=", "Zg==Zg==", "Zm-v", "Zm_v", "Zm9v\xc3\xbc"}) {
    EXPECT_FALSE(from_base64(text)) << text;
  }
}

TEST(Digest, Base64UrlMayLackItsPaddingOnly) {
  EXPECT_EQ(from_base64url("Zg"), "f");
  EXPECT_EQ(from_base64url("Zm8"), "fo");
  for (const char* text : {"Zg=", "Zg===", "Zh", "Zm9", "Z", "Zm9v=", "+/+/", "Zg =", "====", "="})
    EXPECT_FALSE(from_base64url(text)) << text;
}

TEST(Digest, EveryByteComesThroughEveryTextForm) {
  std::string bytes;
  for (int i = 0; i < 256; ++i) {
    bytes += static_cast<char>(i);
    EXPECT_EQ(from_hex(to_hex(bytes)), bytes);
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
}

TEST(Digest, RandomBytesAreManyAndDiffer) {
  EXPECT_EQ(random_bytes(0), "");
  EXPECT_EQ(random_bytes(32).size(), 32u);
  EXPECT_NE(random_bytes(32), random_bytes(32));
}

TEST(Digest, ConstantTimeComparisonComparesAll) {
  EXPECT_TRUE(equal_constant_time("", ""));
  EXPECT_TRUE(equal_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_constant_time("abc", "xbc"));
  EXPECT_FALSE(equal_constant_time("abc", "ab"));
  EXPECT_FALSE(equal_constant_time("", "a"));
  EXPECT_FALSE(equal_constant_time("a\0b"s, "a\0c"s));
}

TEST(Canonical, FieldsCarryTheirLength) {
  EXPECT_EQ(to_hex(canonical().add("ab").add("c").bytes()),
            "00000002"
            "6162"
            "00000001"
            "63");
  EXPECT_EQ(to_hex(canonical().add("").add_absent().bytes()),
            "00000000"
            "ffffffff");
  EXPECT_EQ(to_hex(canonical().add_number(-2).bytes()),
            "00000008"
            "fffffffffffffffe");
}

TEST(Canonical, TheSameJoinedTextGivesOtherBytes) {
  EXPECT_NE(canonical().add("ab").add("c").bytes(), canonical().add("a").add("bc").bytes());
  EXPECT_NE(canonical().add("a").add("").bytes(), canonical().add("").add("a").bytes());
  EXPECT_NE(canonical().add("a/b").bytes(), canonical().add("a").add("b").bytes());
  EXPECT_NE(canonical().add("").bytes(), canonical().add_absent().bytes());
  EXPECT_NE(canonical().add("\xff\xff\xff\xff").bytes(), canonical().add_absent().bytes());
}

TEST(Canonical, AnOptionalIsAFieldOrAbsent) {
  EXPECT_EQ(canonical().add(std::optional<std::string>("x")).bytes(), canonical().add("x").bytes());
  EXPECT_EQ(canonical().add(std::optional<std::string_view>("x")).bytes(), canonical().add("x"s).bytes());
  EXPECT_EQ(canonical().add(std::optional<std::string>()).bytes(), canonical().add_absent().bytes());
}

TEST(Canonical, ClearedItStartsAgain) {
  canonical c;
  c.add("before");
  c.clear();
  EXPECT_EQ(c.add("x").bytes(), canonical().add("x").bytes());
}

}  // namespace
}  // namespace recibo
