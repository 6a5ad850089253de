// Certificates made on the spot, so that none in the repository expires.
#pragma once

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <memory>
#include <stdexcept>
#include <string>

namespace recibo::http::test {

struct identity {
  std::string certificate, key;  // PEM
};

class authority {
 public:
  authority() : key_(EVP_EC_gen("P-256")), root_(make("Test Authority", key_.get(), "", 0, 3600)) {}

  // PEM, for who trusts it.
  std::string pem() const { return text(root_.get()); }
  // `names` as in subjectAltName: "DNS:ledger.test,IP:127.0.0.1". Valid from and until, in seconds from now.
  identity issue(const std::string& names, long from = -3600, long until = 3600) const {
    const std::unique_ptr<EVP_PKEY, freed> key(EVP_EC_gen("P-256"));
    const auto made = make("server", key.get(), names, from, until);
    return {text(made.get()), text(key.get())};
  }
  // Signed by itself, and nobody's authority.
  static identity self_signed(const std::string& names) {
    const authority alone;
    const auto made = alone.make("Test Authority", alone.key_.get(), names, -3600, 3600);
    return {text(made.get()), text(alone.key_.get())};
  }

 private:
  struct freed {
    void operator()(EVP_PKEY* p) const { EVP_PKEY_free(p); }
    void operator()(X509* p) const { X509_free(p); }
    void operator()(BIO* p) const { BIO_free(p); }
  };

  std::unique_ptr<X509, freed> make(const char* name, EVP_PKEY* key, const std::string& names, long from, long until) const {
    static long serial = 1;
    std::unique_ptr<X509, freed> out(X509_new());
    X509_set_version(out.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(out.get()), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(out.get()), from);
    X509_gmtime_adj(X509_getm_notAfter(out.get()), until);
    X509_set_pubkey(out.get(), key);
    entitle(X509_get_subject_name(out.get()), name);
    entitle(X509_get_issuer_name(out.get()), "Test Authority");
    extend(out.get(), NID_basic_constraints, names.empty() ? "critical,CA:TRUE" : "CA:FALSE");
    if (!names.empty()) extend(out.get(), NID_subject_alt_name, names.c_str());
    if (X509_sign(out.get(), key_.get(), EVP_sha256()) == 0) throw std::runtime_error("no certificate");
    return out;
  }
  static void entitle(X509_NAME* to, const char* name) {
    X509_NAME_add_entry_by_txt(to, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
  }
  static void extend(X509* to, int what, const char* value) {
    X509_EXTENSION* const one = X509V3_EXT_conf_nid(nullptr, nullptr, what, value);
    if (one == nullptr) throw std::runtime_error("no extension");
    X509_add_ext(to, one, -1);
    X509_EXTENSION_free(one);
  }
  static std::string drain(BIO* from) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(from, &data);
    return {data, static_cast<std::size_t>(size)};
  }
  static std::string text(X509* of) {
    const std::unique_ptr<BIO, freed> to(BIO_new(BIO_s_mem()));
    PEM_write_bio_X509(to.get(), of);
    return drain(to.get());
  }
  static std::string text(EVP_PKEY* of) {
    const std::unique_ptr<BIO, freed> to(BIO_new(BIO_s_mem()));
    PEM_write_bio_PrivateKey(to.get(), of, nullptr, nullptr, 0, nullptr, nullptr);
    return drain(to.get());
  }

  std::unique_ptr<EVP_PKEY, freed> key_;
  std::unique_ptr<X509, freed> root_;
};

}  // namespace recibo::http::test
