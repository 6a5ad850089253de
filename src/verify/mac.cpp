#include "mac.hpp"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace recibo::verify {
namespace {

constexpr std::size_t hash_count = 4;

const char* openssl_name(hash_name how) noexcept {
  switch (how) {
    case hash_name::sha1: return "SHA1";
    case hash_name::sha256: return "SHA256";
    case hash_name::sha384: return "SHA384";
    case hash_name::sha512: return "SHA512";
  }
  return "";
}

void must(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "recibo: %s failed in OpenSSL\n", what);
  std::abort();
}

struct mac_context_free {
  void operator()(EVP_MAC_CTX* c) const noexcept { EVP_MAC_CTX_free(c); }
};
struct digest_context_free {
  void operator()(EVP_MD_CTX* c) const noexcept { EVP_MD_CTX_free(c); }
};

// One keyed and one plain context per hash, made when a thread first needs it.
struct contexts {
  std::array<std::unique_ptr<EVP_MAC_CTX, mac_context_free>, hash_count> macs;
  std::array<std::unique_ptr<EVP_MD_CTX, digest_context_free>, hash_count> digests;
};

contexts& of_this_thread() {
  thread_local contexts mine;
  return mine;
}

EVP_MAC_CTX* mac_context(hash_name how) {
  auto& slot = of_this_thread().macs[static_cast<std::size_t>(how)];
  if (!slot) {
    // Never freed: it lives as long as the process, and OpenSSL takes itself down before static objects of ours.
    static EVP_MAC* const method = EVP_MAC_fetch(nullptr, "HMAC", nullptr);
    must(method != nullptr, "EVP_MAC_fetch");
    slot.reset(EVP_MAC_CTX_new(method));
    must(slot != nullptr, "EVP_MAC_CTX_new");
    std::string name = openssl_name(how);
    const OSSL_PARAM wanted[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name.data(), 0),
                                 OSSL_PARAM_construct_end()};
    must(EVP_MAC_CTX_set_params(slot.get(), wanted) == 1, "EVP_MAC_CTX_set_params");
  }
  return slot.get();
}

EVP_MD_CTX* digest_context(hash_name how) {
  auto& slot = of_this_thread().digests[static_cast<std::size_t>(how)];
  if (!slot) {
    slot.reset(EVP_MD_CTX_new());
    must(slot != nullptr, "EVP_MD_CTX_new");
    // The context keeps its own reference to the method.
    const std::unique_ptr<EVP_MD, decltype(&EVP_MD_free)> method(EVP_MD_fetch(nullptr, openssl_name(how), nullptr), &EVP_MD_free);
    must(method && EVP_DigestInit_ex(slot.get(), method.get(), nullptr) == 1, "EVP_DigestInit_ex");
  }
  return slot.get();
}

const unsigned char* bytes_of(std::string_view text) noexcept { return reinterpret_cast<const unsigned char*>(text.data()); }

}  // namespace

mac hmac(hash_name how, std::string_view key, std::span<const std::string_view> pieces) {
  EVP_MAC_CTX* context = mac_context(how);
  must(EVP_MAC_init(context, bytes_of(key), key.size(), nullptr) == 1, "EVP_MAC_init");
  for (const std::string_view piece : pieces) must(EVP_MAC_update(context, bytes_of(piece), piece.size()) == 1, "EVP_MAC_update");
  mac out;
  must(EVP_MAC_final(context, out.bytes.data(), &out.size, out.bytes.size()) == 1, "EVP_MAC_final");
  return out;
}

mac digest(hash_name how, std::span<const std::string_view> pieces) {
  EVP_MD_CTX* context = digest_context(how);
  // Without a method the context starts over with the one it has.
  must(EVP_DigestInit_ex(context, nullptr, nullptr) == 1, "EVP_DigestInit_ex");
  for (const std::string_view piece : pieces)
    must(EVP_DigestUpdate(context, piece.data(), piece.size()) == 1, "EVP_DigestUpdate");
  mac out;
  unsigned int size = 0;
  must(EVP_DigestFinal_ex(context, out.bytes.data(), &size) == 1, "EVP_DigestFinal_ex");
  out.size = size;
  return out;
}

}  // namespace recibo::verify
