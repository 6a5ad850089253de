#include "asymmetric.hpp"

#include <openssl/bn.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <array>
#include <memory>
#include <string>

namespace recibo::verify {
namespace {

const char* md_name(hash_name how) noexcept {
  switch (how) {
    case hash_name::sha1: return "SHA1";
    case hash_name::sha256: return "SHA256";
    case hash_name::sha384: return "SHA384";
    case hash_name::sha512: return "SHA512";
  }
  return "";
}

bool suits(const public_key& key, signing_method method) noexcept {
  using kind = public_key::kind;
  switch (method) {
    case signing_method::rsa_pkcs1:
    case signing_method::rsa_pss64: return key.what() == kind::rsa;
    case signing_method::ecdsa_der:
    case signing_method::ecdsa_raw: return key.what() == kind::p256 || key.what() == kind::p384;
    case signing_method::ed25519: return key.what() == kind::ed25519;
  }
  return false;
}

// r and s at full width as the DER that OpenSSL reads; empty: of another width.
std::string der_of(const public_key& key, std::string_view raw) {
  const std::size_t width = key.what() == public_key::kind::p256 ? 32 : 48;
  if (raw.size() != 2 * width) return {};
  const auto* const bytes = reinterpret_cast<const unsigned char*>(raw.data());
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> both(ECDSA_SIG_new(), &ECDSA_SIG_free);
  BIGNUM* r = BN_bin2bn(bytes, static_cast<int>(width), nullptr);
  BIGNUM* s = BN_bin2bn(bytes + width, static_cast<int>(width), nullptr);
  if (!both || r == nullptr || s == nullptr || ECDSA_SIG_set0(both.get(), r, s) != 1) {
    BN_free(r);
    BN_free(s);
    return {};
  }
  unsigned char* out = nullptr;
  const int size = i2d_ECDSA_SIG(both.get(), &out);
  if (size <= 0) return {};
  std::string der(reinterpret_cast<char*>(out), static_cast<std::size_t>(size));
  OPENSSL_free(out);
  return der;
}

bool set_padding(EVP_PKEY_CTX* context, signing_method method) {
  switch (method) {
    case signing_method::rsa_pkcs1: return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PADDING) == 1;
    case signing_method::rsa_pss64:
      return EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 &&
             EVP_PKEY_CTX_set_rsa_pss_saltlen(context, 64) == 1;
    case signing_method::ecdsa_der:
    case signing_method::ecdsa_raw:
    case signing_method::ed25519: break;
  }
  return true;
}

const unsigned char* octets(std::string_view text) noexcept { return reinterpret_cast<const unsigned char*>(text.data()); }

std::array<std::uint32_t, 256> crc_table() noexcept {
  std::array<std::uint32_t, 256> out{};
  for (std::uint32_t i = 0; i < out.size(); ++i) {
    std::uint32_t c = i;
    for (int bit = 0; bit < 8; ++bit) c = (c & 1) != 0 ? 0xedb88320u ^ (c >> 1) : c >> 1;
    out[i] = c;
  }
  return out;
}

}  // namespace

openssl_errors::openssl_errors() noexcept { ERR_set_mark(); }
openssl_errors::~openssl_errors() { ERR_pop_to_mark(); }

bool signed_by(const public_key& key, signing_method method, hash_name hash, std::span<const std::string_view> pieces,
               std::string_view signature) {
  if (signature.empty() || !suits(key, method)) return false;
  const openssl_errors quiet;
  std::string der;
  if (method == signing_method::ecdsa_raw) {
    der = der_of(key, signature);
    if (der.empty()) return false;
    signature = der;
  }
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
  EVP_PKEY_CTX* how = nullptr;
  const bool plain = method == signing_method::ed25519;
  if (!context ||
      EVP_DigestVerifyInit_ex(context.get(), &how, plain ? nullptr : md_name(hash), nullptr, nullptr, key.handle(), nullptr) !=
          1 ||
      !set_padding(how, method)) {
    return false;
  }
  if (plain) {
    // Ed25519 reads the message twice, so it wants it in one piece.
    std::string whole;
    for (const std::string_view piece : pieces) whole += piece;
    return EVP_DigestVerify(context.get(), octets(signature), signature.size(), octets(whole), whole.size()) == 1;
  }
  for (const std::string_view piece : pieces) {
    if (EVP_DigestVerifyUpdate(context.get(), piece.data(), piece.size()) != 1) return false;
  }
  return EVP_DigestVerifyFinal(context.get(), octets(signature), signature.size()) == 1;
}

std::string crc32_decimal(std::string_view bytes) {
  static const auto table = crc_table();
  std::uint32_t crc = 0xffffffffu;
  for (const char c : bytes) crc = table[(crc ^ static_cast<std::uint8_t>(c)) & 0xff] ^ (crc >> 8);
  return std::to_string(crc ^ 0xffffffffu);
}

}  // namespace recibo::verify
