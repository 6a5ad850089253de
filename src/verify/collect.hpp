// Where a request's signatures stand: a header, several numbered ones, the JSON body or a form.
#pragma once

#include "reading.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace recibo::verify {

struct candidate {
  std::string bytes;     // decoded, never empty
  std::string_view key;  // of a pair, where it must equal a part of the secret
};

// What the signature's place holds: decoded signatures, and the time stamp where it is an element beside them.
struct collected {
  std::vector<candidate> candidates;
  occurrence time;
};

// Borrows the request. At most candidates_max signatures are looked at; what cannot be decoded is none.
// permanent::signature_missing   the place is not there; `candidates` may be empty all the same when it is
// permanent::signature_repeated  the header or field stands more than once, and the scheme does not say that it may
result<collected> collect(const scheme& how, reading& from);

}  // namespace recibo::verify
