#include "recibo/record/listed.hpp"

namespace recibo::record {

sha256_digest listed_content(std::string_view key) {
  canonical content;
  content.add("recibo.event_list.1").add(key);
  return sha256(content.bytes());
}

bool same_content(const sha256_digest& one, const sha256_digest& other, std::string_view key) {
  if (one == other) return true;
  const auto listed = listed_content(key);
  return one == listed || other == listed;
}

}  // namespace recibo::record
