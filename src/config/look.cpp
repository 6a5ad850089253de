// What files look like from outside, so that a change is noticed without reading them. Asked again and again instead of
// waiting for the kernel's notices: those do not reach through the links that Kubernetes swaps, nor over networks.
#include "recibo/config/load.hpp"
#include "recibo/core/digest.hpp"

#include <sys/stat.h>

#include <algorithm>

namespace recibo::config {
namespace {

// Whether it is a folder.
bool add_one(canonical& to, const std::filesystem::path& path) {
  struct stat found {};
  to.add(path.string());
  if (::stat(path.c_str(), &found) != 0) {
    to.add_absent();
    return false;
  }
  to.add_number(static_cast<std::int64_t>(found.st_dev)).add_number(static_cast<std::int64_t>(found.st_ino));
  to.add_number(found.st_size).add_number(found.st_mtim.tv_sec).add_number(found.st_mtim.tv_nsec);
  to.add_number(found.st_ctim.tv_sec).add_number(found.st_ctim.tv_nsec);
  return S_ISDIR(found.st_mode);
}

void add_look(canonical& to, const std::filesystem::path& path) {
  if (!add_one(to, path)) return;
  // The folder's own times tell what came and went in it; its links may lead elsewhere without it changing.
  std::vector<std::string> names;
  std::error_code bad;
  std::filesystem::directory_iterator it(path, bad);
  for (; !bad && it != std::filesystem::directory_iterator(); it.increment(bad)) names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  for (const auto& name : names) {
    if (!name.starts_with('.')) add_one(to, path / name);
  }
}

}  // namespace

std::string look_of(const std::vector<std::filesystem::path>& paths) {
  canonical all;
  for (const auto& path : paths) add_look(all, path);
  return std::string(binary(sha256(all.bytes())));
}

}  // namespace recibo::config
