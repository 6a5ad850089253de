#include "nats_credentials.hpp"

#include "secrets.hpp"

#include "recibo/core/digest.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace recibo::config {
namespace {

// Two bytes of prefix, 32 of seed, two of checksum. A public key has one byte of prefix.
constexpr std::size_t seed_bytes = 36, key_bytes = 32, checksum_bytes = 2;
constexpr unsigned char prefix_seed = 18 << 3, prefix_user = 20 << 3;

// RFC 4648 section 6, without padding.
constexpr std::string_view base32_letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

std::optional<std::string> from_base32(std::string_view text) {
  std::string out;
  std::uint32_t kept = 0;
  int bits = 0;
  for (const char c : text) {
    const auto at = base32_letters.find(c);
    if (at == std::string_view::npos) return std::nullopt;
    kept = kept << 5 | static_cast<std::uint32_t>(at);
    bits += 5;
    if (bits < 8) continue;
    bits -= 8;
    out += static_cast<char>(kept >> bits & 0xff);
  }
  return out;
}

std::string to_base32(std::string_view bytes) {
  std::string out;
  std::uint32_t kept = 0;
  int bits = 0;
  for (const char c : bytes) {
    kept = kept << 8 | static_cast<unsigned char>(c);
    for (bits += 8; bits >= 5;) {
      bits -= 5;
      out += base32_letters[kept >> bits & 31];
    }
  }
  if (bits > 0) out += base32_letters[kept << (5 - bits) & 31];
  return out;
}

// CRC-16/XMODEM, which stands behind a key with its low byte first.
std::string checksum_of(std::string_view bytes) {
  std::uint16_t crc = 0;
  for (const char c : bytes) {
    crc = static_cast<std::uint16_t>(crc ^ static_cast<unsigned char>(c) << 8);
    for (int i = 0; i < 8; ++i) crc = static_cast<std::uint16_t>(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
  }
  return {static_cast<char>(crc & 0xff), static_cast<char>(crc >> 8)};
}

// The name of the key that a seed makes: "U…". nullopt: it is no seed of a user.
std::optional<std::string> user_of_seed(std::string_view seed) {
  auto bytes = from_base32(seed);
  if (!bytes || bytes->size() != seed_bytes) return std::nullopt;
  const std::string_view all = *bytes;
  const auto first = static_cast<unsigned char>(all[0]), second = static_cast<unsigned char>(all[1]);
  const auto kind = static_cast<unsigned char>((first & 7) << 5 | second >> 3);
  std::optional<std::string> out;
  if ((first & 0xf8) == prefix_seed && kind == prefix_user &&
      checksum_of(all.substr(0, all.size() - checksum_bytes)) == all.substr(all.size() - checksum_bytes)) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
        EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, reinterpret_cast<const unsigned char*>(all.data() + 2),
                                     key_bytes),
        &EVP_PKEY_free);
    std::string named(1 + key_bytes, static_cast<char>(prefix_user));
    std::size_t size = key_bytes;
    if (key && EVP_PKEY_get_raw_public_key(key.get(), reinterpret_cast<unsigned char*>(named.data() + 1), &size) == 1)
      out = to_base32(named + checksum_of(named));
  }
  OPENSSL_cleanse(bytes->data(), bytes->size());
  return out;
}

// What stands between the lines "-----BEGIN {what}-----" and "------END {what}------", without blanks; empty: it is not there.
std::string between(std::string_view text, std::string_view what) {
  const auto begin = text.find("BEGIN " + std::string(what));
  if (begin == std::string_view::npos) return {};
  const auto line = text.find('\n', begin);
  if (line == std::string_view::npos) return {};
  const auto end = text.find("-----", line);
  std::string out;
  for (const char c : text.substr(line, end == std::string_view::npos ? end : end - line))
    if (c != '\n' && c != '\r' && c != ' ' && c != '\t') out += c;
  return out;
}

}  // namespace

void read_nats_credentials(reading& r, const field& f, nats_target& out) {
  secret text;
  if (!read_secret_text(r, f, text) || text.empty()) return;
  const std::string jwt = between(text.reveal(), "NATS USER JWT"), seed = between(text.reveal(), "USER NKEY SEED");
  if (jwt.empty() || seed.empty()) {
    r.error(f.at, "credentials: expected what nsc writes: a block NATS USER JWT and a block USER NKEY SEED");
    return;
  }
  const auto user = user_of_seed(seed);
  if (!user) {
    r.error(f.at, "credentials: the seed is not that of a user's key (SU…)");
    return;
  }
  const auto first = jwt.find('.'), last = jwt.rfind('.');
  const auto claims = first < last ? from_base64url(std::string_view(jwt).substr(first + 1, last - first - 1)) : std::nullopt;
  const auto read = nlohmann::json::parse(claims.value_or(""), nullptr, false);
  if (!read.is_object() || !read.contains("sub") || !read["sub"].is_string()) {
    r.error(f.at, "credentials: the JWT is none");
    return;
  }
  if (read["sub"].get<std::string>() != *user) {
    r.error(f.at, "credentials: the seed is not that of the key which the JWT names");
    return;
  }
  const auto ends = read.find("exp");
  if (ends != read.end() && ends->is_number_integer() && ends->get<std::int64_t>() > 0 &&
      sys_micros(std::chrono::seconds(ends->get<std::int64_t>())) <= r.now())
    r.warn(f.at, "credentials: the JWT has expired");
  out.jwt = secret(jwt);
  out.seed = secret(seed);
}

}  // namespace recibo::config
