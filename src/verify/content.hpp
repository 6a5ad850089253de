// The content that a scheme signs, as pieces that are fed one after another: never joined into one string.
#pragma once

#include "reading.hpp"

#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::verify {

// Borrows the message behind `reading`, which must outlive it.
class signed_content {
 public:
  // permanent::content_missing     a part that is not optional is absent
  // permanent::signature_repeated  a header or field that is signed stands more than once
  static result<signed_content> gather(const scheme& how, reading& from, std::string_view time);

  // The pieces, with `key` where the secret belongs. Borrows both.
  std::vector<std::string_view> with(std::string_view key) const;

 private:
  std::string_view keep(std::string text) { return owned_.emplace_back(std::move(text)); }

  std::vector<std::string_view> pieces_;
  std::vector<std::size_t> secrets_;  // places in pieces_ that the key takes
  std::deque<std::string> owned_;     // a deque, so that views into it stay
};

}  // namespace recibo::verify
