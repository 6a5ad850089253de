#include "mac.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace recibo::verify {
namespace {

constexpr std::size_t hash_count = 4, block_max = 128;

const char* openssl_name(hash_name how) noexcept {
  switch (how) {
    case hash_name::sha1: return "SHA1";
    case hash_name::sha256: return "SHA256";
    case hash_name::sha384: return "SHA384";
    case hash_name::sha512: return "SHA512";
  }
  return "";
}

constexpr std::size_t block_size(hash_name how) noexcept { return how == hash_name::sha1 || how == hash_name::sha256 ? 64 : 128; }

void must(bool fine, const char* what) {
  if (fine) return;
  std::fprintf(stderr, "recibo: %s failed in OpenSSL\n", what);
  std::abort();
}

// Never freed: it lives as long as the process, and OpenSSL takes itself down before static objects of ours.
const EVP_MD* method_of(hash_name how) {
  static const std::array<EVP_MD*, hash_count> all = [] {
    std::array<EVP_MD*, hash_count> out{};
    for (std::size_t i = 0; i < hash_count; ++i) {
      out[i] = EVP_MD_fetch(nullptr, openssl_name(static_cast<hash_name>(i)), nullptr);
      must(out[i] != nullptr, "EVP_MD_fetch");
    }
    return out;
  }();
  return all[static_cast<std::size_t>(how)];
}

struct digest_context_free {
  void operator()(EVP_MD_CTX* c) const noexcept { EVP_MD_CTX_free(c); }
};
using owned_context = std::unique_ptr<EVP_MD_CTX, digest_context_free>;

// One per hash, made when a thread first needs it.
EVP_MD_CTX* context_of_this_thread(hash_name how) {
  thread_local std::array<owned_context, hash_count> mine;
  auto& slot = mine[static_cast<std::size_t>(how)];
  if (!slot) {
    slot.reset(EVP_MD_CTX_new());
    must(slot != nullptr, "EVP_MD_CTX_new");
  }
  return slot.get();
}

void update(EVP_MD_CTX* context, std::string_view piece) {
  must(EVP_DigestUpdate(context, piece.data(), piece.size()) == 1, "EVP_DigestUpdate");
}

mac finish(EVP_MD_CTX* context) {
  mac out;
  unsigned int size = 0;
  must(EVP_DigestFinal_ex(context, out.bytes.data(), &size) == 1, "EVP_DigestFinal_ex");
  out.size = size;
  return out;
}

}  // namespace

mac digest(hash_name how, std::span<const std::string_view> pieces) {
  EVP_MD_CTX* const context = context_of_this_thread(how);
  must(EVP_DigestInit_ex2(context, method_of(how), nullptr) == 1, "EVP_DigestInit_ex2");
  for (const std::string_view piece : pieces) update(context, piece);
  return finish(context);
}

mac hmac(hash_name how, std::string_view key, std::span<const std::string_view> pieces) { return hmac_key(how, key)(pieces); }

void hmac_key::context_free::operator()(evp_md_ctx_st* c) const noexcept { EVP_MD_CTX_free(c); }

hmac_key::hmac_key(hash_name how, std::string_view key) : how_(how), inner_(EVP_MD_CTX_new()), outer_(EVP_MD_CTX_new()) {
  must(inner_ && outer_, "EVP_MD_CTX_new");
  std::array<unsigned char, block_max> block{};
  const std::size_t size = block_size(how);
  if (key.size() > size) {
    const mac shorter = digest(how, std::array{key});
    std::copy_n(shorter.bytes.begin(), shorter.size, block.begin());
  } else {
    std::copy(key.begin(), key.end(), block.begin());
  }
  const auto begin_with = [&](EVP_MD_CTX* context, unsigned char pad) {
    for (std::size_t i = 0; i < size; ++i) block[i] ^= pad;
    must(EVP_DigestInit_ex2(context, method_of(how), nullptr) == 1, "EVP_DigestInit_ex2");
    must(EVP_DigestUpdate(context, block.data(), size) == 1, "EVP_DigestUpdate");
  };
  begin_with(inner_.get(), 0x36);
  begin_with(outer_.get(), 0x36 ^ 0x5c);
  OPENSSL_cleanse(block.data(), block.size());
}

mac hmac_key::operator()(std::span<const std::string_view> pieces) const {
  EVP_MD_CTX* const context = context_of_this_thread(how_);
  must(EVP_MD_CTX_copy_ex(context, inner_.get()) == 1, "EVP_MD_CTX_copy_ex");
  for (const std::string_view piece : pieces) update(context, piece);
  const mac inside = finish(context);
  must(EVP_MD_CTX_copy_ex(context, outer_.get()) == 1, "EVP_MD_CTX_copy_ex");
  update(context, inside.view());
  return finish(context);
}

}  // namespace recibo::verify
