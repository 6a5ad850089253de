#include "recibo/core/digest.hpp"

#include "recibo/core/ascii.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <cstdio>
#include <cstdlib>
#include <memory>

namespace recibo {
namespace {

// OpenSSL fails here only when the machine is out of memory or its provider is broken; nothing true can be said then.
[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "recibo: %s\n", why);
  std::abort();
}

// Fetched once: a fetch per digest, as the one-shot SHA256() of OpenSSL 3.0 does, costs more than a short digest.
const EVP_MD* sha256_method() {
  static const EVP_MD* method = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  return method;
}

struct context_free {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

constexpr std::string_view hex_digits = "0123456789abcdef";
constexpr std::string_view base64_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::string_view base64url_digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<std::int8_t, 256> values_of(std::string_view digits) {
  std::array<std::int8_t, 256> out{};
  out.fill(-1);
  for (std::size_t i = 0; i < digits.size(); ++i) out[static_cast<std::uint8_t>(digits[i])] = static_cast<std::int8_t>(i);
  return out;
}

constexpr auto base64_values = values_of(base64_digits);
constexpr auto base64url_values = values_of(base64url_digits);

// `text` without its padding.
std::optional<std::string> decode(std::string_view text, const std::array<std::int8_t, 256>& values) {
  if (text.size() % 4 == 1) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int value = values[static_cast<std::uint8_t>(c)];
    if (value < 0) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out += static_cast<char>(bits >> count & 0xff);
    }
  }
  // Two spellings of the same bytes would be two signatures for one message.
  if ((bits & ((1u << count) - 1)) != 0) return std::nullopt;
  return out;
}

// Takes away right padding; false when it is wrong for the length.
bool strip_padding(std::string_view& text) {
  if (text.size() % 4 != 0) return false;
  for (int i = 0; i < 2 && !text.empty() && text.back() == '='; ++i) text.remove_suffix(1);
  return true;
}

}  // namespace

sha256_digest sha256(std::string_view bytes) {
  thread_local const std::unique_ptr<EVP_MD_CTX, context_free> context(EVP_MD_CTX_new());
  sha256_digest out;
  if (!context || EVP_DigestInit_ex2(context.get(), sha256_method(), nullptr) != 1 ||
      EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1 ||
      EVP_DigestFinal_ex(context.get(), out.data(), nullptr) != 1) {
    give_up("SHA-256 failed in OpenSSL");
  }
  return out;
}

std::string to_hex(std::string_view bytes) {
  std::string out(bytes.size() * 2, '\0');
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto byte = static_cast<std::uint8_t>(bytes[i]);
    out[2 * i] = hex_digits[byte >> 4];
    out[2 * i + 1] = hex_digits[byte & 0x0f];
  }
  return out;
}

std::optional<std::string> from_hex(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out(text.size() / 2, '\0');
  for (std::size_t i = 0; i < out.size(); ++i) {
    const int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    out[i] = static_cast<char>(high << 4 | low);
  }
  return out;
}

std::string to_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const auto byte = [&](std::size_t k) -> std::uint32_t { return k < left ? static_cast<std::uint8_t>(bytes[i + k]) : 0; };
    const std::uint32_t bits = byte(0) << 16 | byte(1) << 8 | byte(2);
    out += base64_digits[bits >> 18 & 0x3f];
    out += base64_digits[bits >> 12 & 0x3f];
    out += left > 1 ? base64_digits[bits >> 6 & 0x3f] : '=';
    out += left > 2 ? base64_digits[bits & 0x3f] : '=';
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (!strip_padding(text)) return std::nullopt;
  return decode(text, base64_values);
}

std::string to_base64url(std::string_view bytes) {
  auto text = to_base64(bytes);
  text.erase(text.find_last_not_of('=') + 1);
  for (char& c : text) {
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  return text;
}

std::optional<std::string> from_base64url(std::string_view text) {
  if (text.ends_with('=') && !strip_padding(text)) return std::nullopt;
  return decode(text, base64url_values);
}

std::string random_bytes(std::size_t count) {
  std::string out(count, '\0');
  fill_random(reinterpret_cast<std::uint8_t*>(out.data()), count);
  return out;
}

void fill_random(std::uint8_t* to, std::size_t count) {
  // RAND_bytes takes an int; nobody here asks for more than a few thousand.
  if (count > 1u << 30 || RAND_bytes(to, static_cast<int>(count)) != 1) give_up("the random generator failed in OpenSSL");
}

bool equal_constant_time(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

canonical& canonical::add(std::string_view field) {
  // A field is part of a request, and those are bounded far below; 0xffffffff is the mark of an absent one.
  if (field.size() >= 0xffffffffu) give_up("a field has four gigabytes");
  const auto size = static_cast<std::uint32_t>(field.size());
  for (int shift = 24; shift >= 0; shift -= 8) bytes_ += static_cast<char>(size >> shift & 0xff);
  bytes_ += field;
  return *this;
}

std::string_view canonical_field(std::string_view bytes) noexcept {
  if (bytes.size() < 4) return {};
  std::uint32_t size = 0;
  for (std::size_t i = 0; i < 4; ++i) size = size << 8 | static_cast<std::uint8_t>(bytes[i]);
  return size > bytes.size() - 4 ? std::string_view() : bytes.substr(0, 4 + std::size_t{size});
}

canonical& canonical::add_absent() {
  bytes_.append(4, '\xff');
  return *this;
}

canonical& canonical::add_number(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  char text[8];
  for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(bits >> (56 - 8 * i) & 0xff);
  return add(std::string_view(text, sizeof text));
}

}  // namespace recibo
