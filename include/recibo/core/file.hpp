// Files that somebody names, read as a whole and within bounds: one that never ends costs its limit and no more.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace recibo {

struct file_reading {
  enum class fault {
    none,        // `bytes` is all of it
    absent,      // nothing is there
    folder,      // a folder
    no_file,     // a device, pipe or socket, where only a file is taken
    unreadable,  // it cannot be opened, or breaks off
    too_long,    // more than what is taken
  };
  fault why = fault::none;
  std::string bytes{};
  explicit operator bool() const noexcept { return why == fault::none; }
};

// At most `most` bytes. `pipes`: what is no regular file is read too, for a command line that names /dev/stdin; not for settings,
// which are read again and must not wait for anybody.
file_reading read_file(const std::filesystem::path& path, std::size_t most, bool pipes = false);

// "does not exist", "is a folder", "is not a regular file", "cannot be read", "is longer than 64 KiB": the end of a sentence.
std::string to_string(file_reading::fault why, std::size_t most);

}  // namespace recibo
