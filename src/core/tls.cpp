#include "recibo/core/tls.hpp"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <chrono>
#include <ctime>
#include <optional>
#include <string_view>

namespace recibo {
namespace {

using part = tls_fault::part;

// Enough time for somebody to renew by hand what a robot has not renewed.
constexpr std::chrono::hours warn_before{21 * 24};
// With TLS 1.2; what TLS 1.3 has is all like this.
constexpr const char* ciphers = "ECDHE+AESGCM:ECDHE+CHACHA20";

template <auto Free>
struct freeing {
  template <class T>
  void operator()(T* what) const noexcept {
    Free(what);
  }
};
using bio = std::unique_ptr<BIO, freeing<BIO_free_all>>;
using x509 = std::unique_ptr<X509, freeing<X509_free>>;
using private_key = std::unique_ptr<EVP_PKEY, freeing<EVP_PKEY_free>>;
using context = std::unique_ptr<SSL_CTX, freeing<SSL_CTX_free>>;

bio reading_of(std::string_view text) { return bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

// The reason of OpenSSL's oldest complaint, and forgets all of them.
std::string complaint(std::string_view otherwise) {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  ERR_clear_error();
  return reason != nullptr ? reason : std::string(otherwise);
}

std::optional<sys_micros> instant(const ASN1_TIME* at) {
  std::tm parts{};
  if (ASN1_TIME_to_tm(at, &parts) != 1) return std::nullopt;
  return sys_micros(std::chrono::seconds(timegm(&parts)));
}

std::vector<x509> read_certificates(std::string_view pem) {
  std::vector<x509> out;
  const bio from = reading_of(pem);
  while (X509* one = PEM_read_bio_X509(from.get(), nullptr, nullptr, nullptr)) out.emplace_back(one);
  return out;
}

// A damaged block behind good ones must not be overlooked: reading ends well only where there is no further block.
bool ended_well() {
  const auto last = ERR_peek_last_error();
  const bool well = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
  if (well) ERR_clear_error();
  return well;
}

// Asked for a passphrase: there is nobody to ask.
int no_passphrase(char*, int, int, void*) { return -1; }

class builder {
 public:
  builder(const tls_pem& from, sys_micros now) : from_(from), now_(now), made_(SSL_CTX_new(TLS_server_method())) {}

  tls_reading build() {
    ERR_clear_error();
    if (!made_) {
      problem(part::certificate, "TLS is not available: " + complaint("OpenSSL does not say why"));
      return std::move(out_);
    }
    set_up();
    read_certificate();
    read_key();
    if (!from_.client_ca.empty()) read_client_ca();
    ERR_clear_error();
    if (out_.problems.empty())
      out_.context = std::make_shared<tls_context>(made_.release(), not_after_, !from_.client_ca.empty());
    return std::move(out_);
  }

 private:
  void problem(part where, std::string why) { out_.problems.push_back({where, std::move(why)}); }

  void set_up() {
    SSL_CTX* const c = made_.get();
    // 112 bits of security at least, whatever the machine's own configuration says.
    SSL_CTX_set_security_level(c, 2);
    SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
    SSL_CTX_set_cipher_list(c, ciphers);
    // A close without close_notify cuts nothing short that HTTP would not notice.
    SSL_CTX_set_options(
        c, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_IGNORE_UNEXPECTED_EOF);
    // Buffers are given back while a connection is idle; a write goes on from wherever the rest then lies.
    SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_num_tickets(c, 1);
    static const unsigned char whose[] = {'r', 'e', 'c', 'i', 'b', 'o'};
    SSL_CTX_set_session_id_context(c, whose, sizeof whose);
    SSL_CTX_set_alpn_select_cb(c, select_protocol, nullptr);
  }

  // RFC 7301: who offers protocols and not ours is refused; who offers none is served.
  static int select_protocol(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                             unsigned int in_size, void*) {
    static const unsigned char ours[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
    unsigned char* chosen = nullptr;
    if (SSL_select_next_proto(&chosen, out_size, ours, sizeof ours, in, in_size) != OPENSSL_NPN_NEGOTIATED)
      return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
  }

  void read_certificate() {
    auto chain = read_certificates(from_.certificate);
    if (!ended_well() || chain.empty()) {
      problem(part::certificate,
              chain.empty() ? "holds no certificate in PEM form" : "a certificate behind the first is damaged");
      ERR_clear_error();
      return;
    }
    judge_time(*chain.front());
    if (SSL_CTX_use_certificate(made_.get(), chain.front().get()) != 1) {
      problem(part::certificate, "cannot be used: " + complaint("OpenSSL does not say why"));
      return;
    }
    for (std::size_t i = 1; i < chain.size(); ++i) {
      const auto until = instant(X509_get0_notAfter(chain[i].get()));
      if (until && *until <= now_)
        out_.warnings.push_back({part::certificate, "an issuer's certificate behind the first expired at " + to_rfc3339(*until)});
      if (SSL_CTX_add1_chain_cert(made_.get(), chain[i].get()) != 1)
        problem(part::certificate, "an issuer's certificate cannot be used: " + complaint("OpenSSL does not say why"));
    }
    certificate_ = std::move(chain.front());
  }

  void judge_time(const X509& certificate) {
    const auto from = instant(X509_get0_notBefore(&certificate)), until = instant(X509_get0_notAfter(&certificate));
    if (!from || !until) return problem(part::certificate, "its validity cannot be read");
    not_after_ = *until;
    if (*from > now_) problem(part::certificate, "is not valid before " + to_rfc3339(*from));
    if (*until <= now_) return problem(part::certificate, "expired at " + to_rfc3339(*until));
    if (*until - now_ >= warn_before) return;
    const auto days = std::chrono::floor<std::chrono::days>(*until - now_).count();
    out_.warnings.push_back({part::certificate, "expires at " + to_rfc3339(*until) + ", in " + std::to_string(days) +
                                                    (days == 1 ? " day" : " days") + ": renew it, then reload"});
  }

  void read_key() {
    const bio from = reading_of(from_.key.reveal());
    const private_key key(PEM_read_bio_PrivateKey(from.get(), nullptr, no_passphrase, nullptr));
    if (!key) {
      ERR_clear_error();
      const auto holds = [&](std::string_view words) { return from_.key.reveal().find(words) != std::string_view::npos; };
      return problem(part::key, !holds("PRIVATE KEY-----") ? "holds no private key in PEM form"
                                : holds("ENCRYPTED")       ? "has a passphrase, and nobody is there to type it"
                                                           : "is damaged");
    }
    if (!certificate_) return;
    if (X509_check_private_key(certificate_.get(), key.get()) != 1) {
      ERR_clear_error();
      return problem(part::key, "does not belong to the certificate");
    }
    if (SSL_CTX_use_PrivateKey(made_.get(), key.get()) != 1)
      problem(part::key, "cannot be used: " + complaint("OpenSSL does not say why"));
  }

  void read_client_ca() {
    const auto authorities = read_certificates(from_.client_ca);
    if (!ended_well() || authorities.empty()) {
      problem(part::client_ca,
              authorities.empty() ? "holds no certificate in PEM form" : "a certificate behind the first is damaged");
      ERR_clear_error();
      return;
    }
    std::size_t expired = 0;
    for (const auto& one : authorities) {
      const auto until = instant(X509_get0_notAfter(one.get()));
      if (until && *until <= now_) {
        ++expired;
        out_.warnings.push_back({part::client_ca, "an authority expired at " + to_rfc3339(*until)});
      }
      if (X509_STORE_add_cert(SSL_CTX_get_cert_store(made_.get()), one.get()) != 1 ||
          SSL_CTX_add_client_CA(made_.get(), one.get()) != 1)
        problem(part::client_ca, "cannot be used: " + complaint("OpenSSL does not say why"));
    }
    if (expired == authorities.size()) problem(part::client_ca, "every authority has expired: no client could connect");
    SSL_CTX_set_verify(made_.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    // Each connection shows its certificate: a ticket would outlive the one that it stands for.
    SSL_CTX_set_options(made_.get(), SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(made_.get(), 0);
  }

  const tls_pem& from_;
  const sys_micros now_;
  context made_;
  x509 certificate_;
  sys_micros not_after_{};
  tls_reading out_;
};

}  // namespace

tls_context::tls_context(ssl_ctx_st* owned, sys_micros not_after, bool asks_clients)
    : owned_(owned), not_after_(not_after), asks_clients_(asks_clients) {}

tls_context::~tls_context() { SSL_CTX_free(owned_); }

tls_reading read_tls(const tls_pem& from, sys_micros now) { return builder(from, now).build(); }

}  // namespace recibo
