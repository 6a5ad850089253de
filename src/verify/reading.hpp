// One request, as a scheme looks at it: headers by any of several names, query and form fields decoded, JSON read once.
#pragma once

#include "recibo/core/ascii.hpp"
#include "recibo/verify/strict_json.hpp"
#include "recibo/verify/verifier.hpp"

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::verify {

// How often a name occurs, and its first value.
struct occurrence {
  int times = 0;
  std::string_view value;
};

// Fields of application/x-www-form-urlencoded, decoded; an escape that is none stays as it is, as in the URL standard's
// parser. nullopt: more than fields_max.
using fields = std::vector<std::pair<std::string, std::string>>;
std::optional<fields> decode_fields(std::string_view text);

// The query of a URL, without '?' and without a fragment.
std::string_view query_of(std::string_view url) noexcept;

// Borrows the message and the scheme.
class reading {
 public:
  reading(const scheme& how, const signed_message& message) : how_(how), message_(message) {}

  const signed_message& message() const noexcept { return message_; }
  // The first of `names` that is present counts. Values are trimmed.
  occurrence header(std::span<const std::string> names) const noexcept;
  occurrence header(std::string_view name) const noexcept;
  // Every value of that name, for schemes that repeat their signature header on purpose.
  std::vector<std::string_view> every_header(std::span<const std::string> names) const;
  occurrence query(std::span<const std::string> names);
  // Of the URL that is signed.
  occurrence url_query(std::string_view name);
  occurrence form(std::span<const std::string> names);
  // A string, number or boolean; absent where the body is not strict JSON. Relative to the present item.
  occurrence json(std::span<const std::string> names);

  // Whether the body says that it is a form, once.
  bool is_form() const noexcept;
  // Every field of the body as a form; null: more than fields_max.
  const fields* form_fields();

  // How many items the scheme's for_each finds: 1 for a scheme without one, 0 where there is no such array.
  std::size_t items();
  // The item that json() looks into, from 0.
  void at_item(std::size_t i) noexcept { item_ = i; }

 private:
  void read_body_as_json();

  const scheme& how_;
  const signed_message& message_;
  // The outer optional: whether it was decoded; the inner one: whether it could be.
  std::optional<std::optional<fields>> query_, url_query_, form_;
  std::vector<std::string_view> wanted_;    // pointers of the scheme, as it has them
  std::vector<std::string_view> pointers_;  // the same for every item, one item after the other
  std::deque<std::string> full_;            // those of them that are made here
  std::optional<json_reading> json_;
  std::optional<std::size_t> items_;
  std::size_t item_ = 0;
};

}  // namespace recibo::verify
