// A secret that cannot be printed: no operator<<, no implicit conversion, nothing for a formatter to find.
#pragma once

#include <string>
#include <string_view>
#include <utility>

namespace recibo {

class secret {
 public:
  secret() = default;
  explicit secret(std::string bytes) : bytes_(std::move(bytes)) {}
  secret(const secret&) = default;
  secret(secret&&) noexcept = default;
  // Assignment wipes what was there before, destruction what is there.
  secret& operator=(const secret& other);
  secret& operator=(secret&& other) noexcept;
  ~secret();

  // The one way to the bytes; named so that a reviewer sees each use. Borrows.
  std::string_view reveal() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_.empty(); }

 private:
  void wipe() noexcept;

  std::string bytes_;
};

}  // namespace recibo
