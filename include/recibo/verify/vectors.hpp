// Files of signature test vectors (tests/data/vectors/README.md), run against the presets of this build.
#pragma once

#include "recibo/core/error.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace recibo::verify {

struct vector_outcome {
  std::string name;
  std::string expected;  // "valid" or "invalid"
  std::string found;     // "valid", "invalid: the word of why", or what keeps this build from judging it
  bool agrees() const noexcept { return std::string_view(found).substr(0, found.find(':')) == expected; }
};

// In the order of the file. Certificates come from the vector (`options.certs`), nothing is fetched; a certificate's
// validity and names are not judged then, because recorded ones have run out or are made up.
// permanent::malformed_json   no JSON array of vectors; the detail says which element is none
result<std::vector<vector_outcome>> run_vectors(std::string_view json);

}  // namespace recibo::verify
