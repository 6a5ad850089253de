#include "recibo/verify/public_key.hpp"

#include "asymmetric.hpp"
#include "host.hpp"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>

namespace recibo::verify {
namespace {

constexpr std::size_t certificates_max = 10, pem_max = 64 << 10, store_pem_max = 4 << 20;

struct x509_free {
  void operator()(X509* c) const noexcept { X509_free(c); }
};
using owned_certificate = std::unique_ptr<X509, x509_free>;

int no_certificate_password(char*, int, int, void*) { return 0; }

// Every certificate of the text, in order; empty when there are more than `most`, or something else in between.
std::vector<owned_certificate> certificates_of(std::string_view pem, std::size_t most) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> in(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())),
                                                         &BIO_free_all);
  std::vector<owned_certificate> out;
  while (in) {
    owned_certificate next(PEM_read_bio_X509(in.get(), nullptr, &no_certificate_password, nullptr));
    if (!next) break;
    if (out.size() == most) return {};
    out.push_back(std::move(next));
  }
  return out;
}

std::optional<sys_micros> instant(const ASN1_TIME* at) {
  std::tm parts{};
  if (at == nullptr || ASN1_TIME_to_tm(at, &parts) != 1) return std::nullopt;
  using namespace std::chrono;
  const auto day = sys_days(year(parts.tm_year + 1900) / month(static_cast<unsigned>(parts.tm_mon + 1)) /
                            std::chrono::day(static_cast<unsigned>(parts.tm_mday)));
  return sys_micros(day) + hours(parts.tm_hour) + minutes(parts.tm_min) + seconds(parts.tm_sec);
}

std::string_view text_of(const ASN1_STRING* from) noexcept {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(from)), static_cast<std::size_t>(ASN1_STRING_length(from))};
}

// The DNS names; the common name only where there are none (RFC 6125).
std::vector<std::string> names_of(X509* leaf) {
  std::vector<std::string> out;
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(leaf, NID_subject_alt_name, nullptr, nullptr)), &GENERAL_NAMES_free);
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()) && i < 100; ++i) {
    const GENERAL_NAME* one = sk_GENERAL_NAME_value(names.get(), i);
    if (one->type == GEN_DNS) out.emplace_back(text_of(one->d.dNSName));
  }
  if (!out.empty()) return out;
  X509_NAME* const subject = X509_get_subject_name(leaf);
  const int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
  if (at >= 0) out.emplace_back(text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  return out;
}

bool named_below(X509* leaf, const std::vector<std::string>& suffixes) {
  for (const std::string& name : names_of(leaf)) {
    for (const std::string& suffix : suffixes) {
      if (host_is_below(name, suffix)) return true;
    }
  }
  return false;
}

bool ends_in(const trust_store& trusted, const std::vector<owned_certificate>& chain, bool in_time, sys_micros now) {
  const std::unique_ptr<X509_STORE_CTX, decltype(&X509_STORE_CTX_free)> context(X509_STORE_CTX_new(), &X509_STORE_CTX_free);
  const std::unique_ptr<STACK_OF(X509), void (*)(STACK_OF(X509)*)> others(sk_X509_new_null(),
                                                                          [](STACK_OF(X509) * s) { sk_X509_free(s); });
  if (!context || !others) return false;
  for (std::size_t i = 1; i < chain.size(); ++i) {
    if (sk_X509_push(others.get(), chain[i].get()) == 0) return false;
  }
  if (X509_STORE_CTX_init(context.get(), trusted.handle(), chain.front().get(), others.get()) != 1) return false;
  X509_VERIFY_PARAM* const how = X509_STORE_CTX_get0_param(context.get());
  X509_VERIFY_PARAM_set_time(how, std::chrono::duration_cast<std::chrono::seconds>(now.time_since_epoch()).count());
  if (!in_time) X509_VERIFY_PARAM_set_flags(how, X509_V_FLAG_NO_CHECK_TIME);
  return X509_verify_cert(context.get()) == 1;
}

error refused(const char* why) { return error(permanent::signature_mismatch, why); }

}  // namespace

trust_store::~trust_store() { X509_STORE_free(handle_); }

result<std::shared_ptr<const trust_store>> trust_store::system() {
  const openssl_errors quiet;
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(), &X509_STORE_free);
  if (!store || X509_STORE_set_default_paths(store.get()) != 1)
    return misconfigured("the certificate authorities of the operating system cannot be read");
  X509_STORE_up_ref(store.get());
  return std::make_shared<const trust_store>(store.get());
}

result<std::shared_ptr<const trust_store>> trust_store::from_pem(std::string_view pem) {
  const openssl_errors quiet;
  if (pem.size() > store_pem_max) return misconfigured("the certificate authorities are too long");
  const auto all = certificates_of(pem, 1000);
  const std::unique_ptr<X509_STORE, decltype(&X509_STORE_free)> store(X509_STORE_new(), &X509_STORE_free);
  if (all.empty() || !store) return misconfigured("there is no certificate authority in PEM");
  for (const auto& one : all) {
    if (X509_STORE_add_cert(store.get(), one.get()) != 1) return misconfigured("a certificate authority cannot be used");
  }
  X509_STORE_up_ref(store.get());
  return std::make_shared<const trust_store>(store.get());
}

result<checked_certificate> check_certificate(std::string_view pem, const certificate_rules& rules, sys_micros now) {
  const openssl_errors quiet;
  if (pem.size() > pem_max) return refused("the certificate is too long");
  const auto chain = certificates_of(pem, certificates_max);
  if (chain.empty()) return refused("there is no certificate in PEM");
  X509* const leaf = chain.front().get();
  const auto from = instant(X509_get0_notBefore(leaf)), until = instant(X509_get0_notAfter(leaf));
  if (!from || !until) return refused("the certificate has no validity");
  if (rules.strict && (now < *from || now > *until)) return refused("the certificate is not valid now");
  if (rules.strict && !rules.names_below.empty() && !named_below(leaf, rules.names_below))
    return refused("the certificate is for another name");
  if (rules.trusted && !ends_in(*rules.trusted, chain, rules.strict, now))
    return refused("the certificate's chain does not end in a trusted authority");
  // Written out again, so that one place decides which keys are strong enough.
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(leaf), &der);
  if (size <= 0) return refused("the certificate has no key");
  const std::string spki(reinterpret_cast<char*>(der), static_cast<std::size_t>(size));
  OPENSSL_free(der);
  auto key = public_key_from_spki(spki);
  if (!key) return refused("the certificate's key is of no kind that is taken");
  return checked_certificate{std::move(*key), *from, *until};
}

}  // namespace recibo::verify
