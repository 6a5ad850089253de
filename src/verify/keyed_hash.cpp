#include "recibo/verify/keyed_hash.hpp"

#include "mac.hpp"

namespace recibo::verify {

std::string keyed_hash(hash_name how, std::string_view key, std::string_view text) {
  return std::string(hmac(how, key, std::span(&text, 1)).view());
}

std::string plain_hash(hash_name how, std::string_view text) { return std::string(digest(how, std::span(&text, 1)).view()); }

}  // namespace recibo::verify
