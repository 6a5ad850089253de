// Strict JSON: the tree and the reader by pointers accept the same documents, but for numbers beyond a double, which only
// the tree takes; they read the same values; one canonical text.
#include "fuzz.hpp"

#include "recibo/core/json_value.hpp"
#include "recibo/core/utf8.hpp"
#include "recibo/verify/strict_json.hpp"

#include <array>

using namespace recibo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const std::array<std::string_view, 4> pointers{"", "/a", "/a/0/b", "/~1x~0"};
  const auto tree = parse_json(text);
  const auto read = verify::read_json(text, pointers);
  const bool too_large = read.broken && read.broken->detail == "a number is too large";
  fuzz::must(too_large || tree.has_value() == !read.broken.has_value(), "two readers accept the same documents");
  if (!tree || too_large) return 0;
  fuzz::must(is_utf8(text), "JSON is UTF-8");
  fuzz::must(read.values[0].has_value(), "the whole document is there");
  const json_value* a = tree->find("a");
  fuzz::must((a != nullptr) == read.values[1].has_value(), "both find a member");
  if (a != nullptr && a->is(json_value::kind::string)) fuzz::must(read.values[1]->text == a->text, "both decode a text alike");
  if (a != nullptr && a->is(json_value::kind::number)) fuzz::must(read.values[1]->text == a->text, "digits stay as they are");
  if (const auto one = canonical_json(text)) {
    const auto two = canonical_json(*one);
    fuzz::must(two && *two == *one, "the canonical text is its own");
  }
  return 0;
}
