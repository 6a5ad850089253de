// Certificates are made here, so that none of them expires in the tree.
#include "recibo/core/tls.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

namespace recibo {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using part = tls_fault::part;

const sys_micros at = *parse_rfc3339("2026-10-01T10:00:00Z");

struct pair_of_pem {
  std::string certificate, key;
};

std::string text_of(BIO* from) {
  char* data = nullptr;
  const auto size = BIO_get_mem_data(from, &data);
  std::string out(data, static_cast<std::size_t>(size));
  BIO_free(from);
  return out;
}

// Self-signed, valid from `from` to `until`.
pair_of_pem made(sys_micros from, sys_micros until, EVP_PKEY* key = EVP_EC_gen("P-256"), const char* passphrase = nullptr) {
  const auto seconds = [](sys_micros t) {
    return std::chrono::duration_cast<std::chrono::seconds>(t.time_since_epoch()).count();
  };
  X509* one = X509_new();
  ASN1_INTEGER_set(X509_get_serialNumber(one), 1);
  ASN1_TIME_set(X509_getm_notBefore(one), seconds(from));
  ASN1_TIME_set(X509_getm_notAfter(one), seconds(until));
  X509_set_pubkey(one, key);
  X509_NAME* const name = X509_get_subject_name(one);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1, 0);
  X509_set_issuer_name(one, name);
  X509_sign(one, key, EVP_sha256());
  BIO* const certificate = BIO_new(BIO_s_mem());
  BIO* const secret_key = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(certificate, one);
  PEM_write_bio_PrivateKey(secret_key, key, passphrase ? EVP_aes_256_cbc() : nullptr, nullptr, 0, nullptr,
                           const_cast<char*>(passphrase));
  X509_free(one);
  EVP_PKEY_free(key);
  return {text_of(certificate), text_of(secret_key)};
}

tls_reading read(const std::string& certificate, const std::string& key, const std::string& client_ca = {}) {
  return read_tls({certificate, secret(key), client_ca}, at);
}

TEST(Tls, AGoodPairIsTaken) {
  const auto good = made(at - 24h, at + 90 * 24h);
  const auto r = read(good.certificate, good.key);
  ASSERT_TRUE(r.context) << r.problems.front().why;
  EXPECT_TRUE(r.warnings.empty());
  EXPECT_NE(r.context->native(), nullptr);
  EXPECT_EQ(r.context->not_after(), at + 90 * 24h);
  EXPECT_FALSE(r.context->asks_clients());
  EXPECT_TRUE(read(good.certificate, good.key, good.certificate).context->asks_clients());
}

TEST(Tls, WhatIsWrongIsSaidAtItsPlace) {
  const auto good = made(at - 24h, at + 90 * 24h), other = made(at - 24h, at + 90 * 24h);
  const auto past = made(at - 48h, at - 1h), future = made(at + 1h, at + 90 * 24h);
  const auto locked = made(at - 24h, at + 90 * 24h, EVP_EC_gen("P-256"), "word");
  const auto weak = made(at - 24h, at + 90 * 24h, EVP_RSA_gen(1024));
  const std::string damaged = good.certificate + other.certificate.substr(0, 200) + "\n-----END CERTIFICATE-----\n";
  struct row {
    std::string certificate, key, client_ca;
    part where;
    const char* why;
  };
  const row rows[] = {
      {"", good.key, "", part::certificate, "no certificate"},
      {good.key, good.key, "", part::certificate, "no certificate"},
      {damaged, good.key, "", part::certificate, "damaged"},
      {past.certificate, past.key, "", part::certificate, "expired at 2026-10-01T09:00:00"},
      {future.certificate, future.key, "", part::certificate, "not valid before 2026-10-01T11:00:00"},
      {weak.certificate, weak.key, "", part::certificate, "cannot be used"},
      {good.certificate, other.key, "", part::key, "does not belong"},
      {good.certificate, "", "", part::key, "no private key"},
      {good.certificate, good.certificate, "", part::key, "no private key"},
      {good.certificate, locked.key, "", part::key, "passphrase"},
      {good.certificate, good.key, "nothing", part::client_ca, "no certificate"},
      {good.certificate, good.key, past.certificate, part::client_ca, "expired"},
      {good.certificate, good.key, damaged, part::client_ca, "damaged"},
  };
  for (const row& r : rows) {
    const auto reading = read(r.certificate, r.key, r.client_ca);
    EXPECT_FALSE(reading.context) << r.why;
    ASSERT_EQ(reading.problems.size(), 1u) << r.why;
    EXPECT_EQ(reading.problems.front().where, r.where) << r.why;
    EXPECT_THAT(reading.problems.front().why, HasSubstr(r.why));
  }
}

TEST(Tls, WhatWillSoonBeWrongIsAWarning) {
  const auto soon = made(at - 24h, at + 3 * 24h + 1h);
  const auto r = read(soon.certificate, soon.key);
  ASSERT_TRUE(r.context);
  ASSERT_EQ(r.warnings.size(), 1u);
  EXPECT_THAT(r.warnings.front().why, HasSubstr("in 3 days"));
  // One authority of two may have gone: the other one's clients still connect.
  const auto past = made(at - 48h, at - 1h), good = made(at - 24h, at + 90 * 24h);
  const auto mixed = read(good.certificate, good.key, past.certificate + good.certificate);
  EXPECT_TRUE(mixed.context);
  ASSERT_EQ(mixed.warnings.size(), 1u);
  EXPECT_EQ(mixed.warnings.front().where, part::client_ca);
}

}  // namespace
}  // namespace recibo
