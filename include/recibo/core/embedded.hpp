// Files that are part of the binary (migrations, presets, the schema), put there at build time by recibo_embed of CMakeLists.txt.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>

namespace recibo {

struct embedded_file {
  // Relative to the folder that was embedded, for example "0001_operations.up.sql".
  std::string_view path;
  // The whole file; lives as long as the process.
  std::string_view content;
  embedded_file(std::string_view p, std::pair<const char*, const char*> c)
      : path(p), content(c.first, static_cast<std::size_t>(c.second - c.first)) {}
};

}  // namespace recibo
