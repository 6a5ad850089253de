#include "recibo/core/file.hpp"

#include <algorithm>
#include <fstream>
#include <system_error>

namespace recibo {
namespace {

constexpr std::size_t piece = 64 << 10;

std::string size_text(std::size_t bytes) {
  if (bytes % (1 << 20) == 0) return std::to_string(bytes >> 20) + " MiB";
  return std::to_string(bytes >> 10) + " KiB";
}

}  // namespace

file_reading read_file(const std::filesystem::path& path, std::size_t most, bool pipes) {
  using fault = file_reading::fault;
  std::error_code bad;
  const auto status = std::filesystem::status(path, bad);
  if (!std::filesystem::exists(status)) return {fault::absent};
  if (std::filesystem::is_directory(status)) return {fault::folder};
  if (!pipes && !std::filesystem::is_regular_file(status)) return {fault::no_file};
  std::ifstream in(path, std::ios::binary);
  file_reading out;
  while (in && out.bytes.size() <= most) {
    const std::size_t had = out.bytes.size();
    out.bytes.resize(had + std::min(piece, most + 1 - had));
    in.read(out.bytes.data() + had, static_cast<std::streamsize>(out.bytes.size() - had));
    out.bytes.resize(had + static_cast<std::size_t>(in.gcount()));
  }
  if (out.bytes.size() > most) return {fault::too_long};
  if (!in.eof() || in.bad()) return {fault::unreadable};
  return out;
}

std::string to_string(file_reading::fault why, std::size_t most) {
  switch (why) {
    case file_reading::fault::none: return "can be read";
    case file_reading::fault::absent: return "does not exist";
    case file_reading::fault::folder: return "is a folder";
    case file_reading::fault::no_file: return "is not a regular file";
    case file_reading::fault::unreadable: return "cannot be read";
    case file_reading::fault::too_long: return "is longer than " + size_text(most);
  }
  return "cannot be read";
}

}  // namespace recibo
