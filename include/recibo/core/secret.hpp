// A secret that cannot be printed: no operator<<, no implicit conversion, nothing for a formatter to find.
#pragma once

#include <string>
#include <string_view>

namespace recibo {

class secret {
 public:
  secret() = default;
  explicit secret(std::string bytes) : bytes_(std::move(bytes)) {}
  secret(const secret&) = default;
  secret(secret&&) noexcept = default;
  secret& operator=(const secret&) = default;
  secret& operator=(secret&&) noexcept = default;
  ~secret();  // wipes its memory

  // The one way to the bytes; named so that a reviewer sees each use. Borrows.
  std::string_view reveal() const noexcept { return bytes_; }
  bool empty() const noexcept { return bytes_.empty(); }

 private:
  std::string bytes_;
};

}  // namespace recibo
