// One request, as a scheme looks at it: headers by any of several names, query and form fields decoded, JSON read once.
#pragma once

#include "recibo/verify/strict_json.hpp"
#include "recibo/verify/verifier.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::verify {

// Without blanks and tabs at both ends (RFC 9110, section 5.5).
std::string_view trim(std::string_view text) noexcept;

// How often a name occurs, and its first value.
struct occurrence {
  int times = 0;
  std::string_view value;
};

// Borrows the message and the scheme.
class reading {
 public:
  reading(const scheme& how, const signed_message& message) : how_(how), message_(message) {}

  const signed_message& message() const noexcept { return message_; }
  // The first of `names` that is present counts. Values are trimmed.
  occurrence header(const std::vector<std::string>& names) const noexcept;
  // Every value of that name, for schemes that repeat their signature header on purpose.
  std::vector<std::string_view> every_header(const std::vector<std::string>& names) const;
  occurrence query(const std::vector<std::string>& names);
  occurrence form(const std::vector<std::string>& names);
  // A string, number or boolean; absent where the body is not strict JSON.
  occurrence json(const std::vector<std::string>& names);

 private:
  using fields = std::vector<std::pair<std::string, std::string>>;
  static occurrence find(const fields& in, const std::vector<std::string>& names) noexcept;
  void read_body_as_json();

  const scheme& how_;
  const signed_message& message_;
  std::optional<fields> query_, form_;
  std::vector<std::string_view> pointers_;
  std::optional<json_reading> json_;
};

}  // namespace recibo::verify
