// Parts of a scheme that starts from nothing, shared by the files that read it.
#pragma once

#include "reader.hpp"

#include "recibo/verify/scheme.hpp"

#include <string>
#include <vector>

namespace recibo::config {

// A name in the form that its place asks for: a header in lower case, a JSON Pointer, the name of a field.
bool read_place_name(reading& r, const field& f, verify::place from, std::string& out);

// One of those, or a list of them.
bool read_place_names(reading& r, const field& f, verify::place from, std::vector<std::string>& out);

// One element of `content`.
void read_part(reading& r, const field& f, std::vector<verify::content_part>& out);

}  // namespace recibo::config
