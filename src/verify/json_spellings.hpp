// One JSON document as the common serialisers write it: what a proxy or a framework makes of a body that it parses and
// writes again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace recibo::verify {

struct spelling {
  std::string_view how;  // "as Python's json.dumps writes it", a literal
  std::string text;
};

// Empty: no JSON. Members and digits stay as they are. No spelling equals the document itself, and none stands twice.
std::vector<spelling> json_spellings(std::string_view document);

}  // namespace recibo::verify
