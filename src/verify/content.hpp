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

  // In how many ways the content may have been written: spellings of the URL, a text that was lost. At least 1.
  std::size_t variants() const noexcept { return variants_; }
  // The pieces of one of them, with `key` where the secret belongs. Borrows both; the same storage every time.
  const std::vector<std::string_view>& with(std::string_view key, std::size_t variant = 0);

 private:
  std::string_view keep(std::string text) { return owned_.emplace_back(std::move(text)); }
  void add_spellings(const scheme& how, std::string_view url);

  std::vector<std::string_view> pieces_;
  std::vector<std::size_t> secrets_;                               // places in pieces_ that the key takes
  std::vector<std::size_t> urls_;                                  // places that a spelling of the URL takes
  std::vector<std::string_view> spellings_;                        // of the URL, the configured one first
  std::vector<std::pair<std::size_t, std::string_view>> or_with_;  // places behind which that text may have stood
  std::size_t variants_ = 1;
  std::deque<std::string> owned_;  // a deque, so that views into it stay
};

}  // namespace recibo::verify
