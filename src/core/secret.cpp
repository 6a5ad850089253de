#include "recibo/core/secret.hpp"

#include <cstring>

namespace recibo {

secret& secret::operator=(const secret& other) {
  if (this != &other) {
    std::string copy = other.bytes_;
    wipe();
    bytes_ = std::move(copy);
  }
  return *this;
}

secret& secret::operator=(secret&& other) noexcept {
  if (this != &other) {
    wipe();
    bytes_ = std::move(other.bytes_);
    other.wipe();
  }
  return *this;
}

secret::~secret() { wipe(); }

void secret::wipe() noexcept {
  // Up to the capacity: a short string that was moved from keeps its characters behind a length of zero.
  bytes_.resize(bytes_.capacity());
  explicit_bzero(bytes_.data(), bytes_.size());
  bytes_.clear();
}

}  // namespace recibo
