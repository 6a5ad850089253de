// Dictionaries of RFC 8941, as Signature-Input and Content-Digest carry them: bounded, and their canonical form is their own.
#include "fuzz.hpp"

#include "verify/structured_fields.hpp"

#include <string>

using namespace recibo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto members = verify::parse_dictionary(fuzz::text_of(data, size));
  if (!members) return 0;
  fuzz::must(members->size() <= verify::sf_members_max, "no more members than are allowed");
  for (const auto& one : *members) {
    fuzz::must(one.items.size() <= verify::sf_items_max, "no more items than are allowed");
    fuzz::must(one.is_list || one.items.size() == 1, "a member that is no list is one item");
    const std::string value = verify::serialize(one);
    const auto again = verify::parse_dictionary(one.name + "=" + value);
    fuzz::must(again && again->size() == 1, "what was written is a dictionary");
    fuzz::must(verify::serialize(again->front()) == value, "and is written the same again");
  }
  return 0;
}
