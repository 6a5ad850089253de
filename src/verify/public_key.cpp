#include "recibo/verify/public_key.hpp"

#include "recibo/core/digest.hpp"
#include "recibo/verify/strict_json.hpp"

#include "asymmetric.hpp"

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <climits>

namespace recibo::verify {
namespace {

constexpr int rsa_bits_least = 2048, rsa_bits_most = 8192;

struct key_free {
  void operator()(EVP_PKEY* k) const noexcept { EVP_PKEY_free(k); }
};
using owned_key = std::unique_ptr<EVP_PKEY, key_free>;

std::optional<public_key::kind> kind_of(EVP_PKEY* key, std::string& why) {
  switch (EVP_PKEY_get_base_id(key)) {
    case EVP_PKEY_ED25519: return public_key::kind::ed25519;
    case EVP_PKEY_RSA:
    case EVP_PKEY_RSA_PSS: {
      const int bits = EVP_PKEY_get_bits(key);
      if (bits >= rsa_bits_least && bits <= rsa_bits_most) return public_key::kind::rsa;
      why = "an RSA key has 2048 to 8192 bits";
      return std::nullopt;
    }
    case EVP_PKEY_EC: {
      char name[64] = {};
      std::size_t size = 0;
      if (EVP_PKEY_get_group_name(key, name, sizeof name, &size) == 1) {
        const std::string_view curve(name, size);
        if (curve == "prime256v1" || curve == "P-256") return public_key::kind::p256;
        if (curve == "secp384r1" || curve == "P-384") return public_key::kind::p384;
      }
      why = "an elliptic key is on the curve P-256 or P-384";
      return std::nullopt;
    }
    default: break;
  }
  why = "a public key is RSA, EC or Ed25519";
  return std::nullopt;
}

result<public_key_ptr> finish(owned_key key) {
  std::string why;
  const auto what = kind_of(key.get(), why);
  if (!what) return misconfigured(why);
  return std::make_shared<const public_key>(*what, key.release());
}

// Never asks for a password at the terminal, as OpenSSL would for an encrypted block.
int no_password(char*, int, int, void*) { return 0; }

}  // namespace

public_key::~public_key() { EVP_PKEY_free(handle_); }

result<public_key_ptr> public_key_from_pem(std::string_view pem) {
  const openssl_errors quiet;
  if (pem.size() > INT_MAX) return misconfigured("the key is too long");
  if (pem.find("PRIVATE KEY-----") != std::string_view::npos)
    return misconfigured("this is a private key; only the provider has that, and here its public key belongs");
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                         &BIO_free_all);
  if (!in) return misconfigured("the key cannot be read");
  owned_key key;
  if (pem.find("-----BEGIN CERTIFICATE-----") != std::string_view::npos) {
    const std::unique_ptr<X509, decltype(&X509_free)> leaf(PEM_read_bio_X509(in.get(), nullptr, &no_password, nullptr),
                                                           &X509_free);
    if (leaf) key.reset(X509_get_pubkey(leaf.get()));
  } else {
    key.reset(PEM_read_bio_PUBKEY(in.get(), nullptr, &no_password, nullptr));
  }
  if (!key) return misconfigured("this is no public key or certificate in PEM");
  return finish(std::move(key));
}

result<public_key_ptr> public_key_from_spki(std::string_view der) {
  const openssl_errors quiet;
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const auto* const end = at + der.size();
  if (der.size() > 64 << 10) return misconfigured("the key is too long");
  owned_key key(d2i_PUBKEY(nullptr, &at, static_cast<long>(der.size())));
  if (!key || at != end) return misconfigured("this is no public key (DER SubjectPublicKeyInfo)");
  return finish(std::move(key));
}

result<public_key_ptr> public_key_from_ed25519(std::string_view bytes) {
  const openssl_errors quiet;
  if (bytes.size() != 32) return misconfigured("an Ed25519 public key has 32 bytes");
  owned_key key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
  if (!key) return misconfigured("this is no Ed25519 public key");
  return finish(std::move(key));
}

result<json_web_key> read_json_web_key(std::string_view json) {
  const openssl_errors quiet;
  constexpr std::array<std::string_view, 8> pointers{"/kty", "/crv", "/alg", "/use", "/kid", "/x", "/y", "/expired_at"};
  if (json.size() > 8 << 10) return misconfigured("the JSON Web Key is too long");
  const json_reading read = read_json(json, pointers);
  if (read.broken) return misconfigured("this is no JSON Web Key");
  const auto text = [&](std::size_t i) -> std::string_view {
    const auto& v = read.values[i];
    return v && v->kind == json_value::kind::string ? std::string_view(v->text) : std::string_view();
  };
  if (text(0) != "EC" || text(1) != "P-256" || (read.values[2] && text(2) != "ES256") || (read.values[3] && text(3) != "sig"))
    return misconfigured("the JSON Web Key is for something else than ES256 signatures");
  json_web_key out;
  out.id = text(4);
  if (out.id.empty()) return misconfigured("the JSON Web Key has no kid");
  const auto x = from_base64url(text(5)), y = from_base64url(text(6));
  if (!x || !y || x->size() != 32 || y->size() != 32) return misconfigured("the JSON Web Key has no point on P-256");
  if (const auto& expired = read.values[7]; expired && expired->kind != json_value::kind::null) {
    const auto at = parse_unix_seconds(expired->text);
    if (!at) return misconfigured("the JSON Web Key has an expired_at that is no time");
    out.expired_from = *at;
  }
  std::string point = "\x04" + *x + *y;
  std::string group = "prime256v1";
  const OSSL_PARAM parts[] = {OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group.data(), group.size()),
                              OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point.data(), point.size()),
                              OSSL_PARAM_construct_end()};
  const std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(EVP_PKEY_CTX_new_from_name(nullptr, "EC", nullptr),
                                                                            &EVP_PKEY_CTX_free);
  EVP_PKEY* made = nullptr;
  // OpenSSL refuses a point that is not on the curve here.
  const bool fine = context && EVP_PKEY_fromdata_init(context.get()) == 1 &&
                    EVP_PKEY_fromdata(context.get(), &made, EVP_PKEY_PUBLIC_KEY, const_cast<OSSL_PARAM*>(parts)) == 1;
  owned_key key(made);
  if (!fine || !key) return misconfigured("the JSON Web Key has no point on P-256");
  auto finished = finish(std::move(key));
  if (!finished) return finished.error();
  out.key = std::move(*finished);
  return out;
}

}  // namespace recibo::verify
