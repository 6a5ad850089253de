// Reads the values that the provider's sources name from one request: JSON in one pass, the rest when first asked for.
#pragma once

#include "recibo/config/settings.hpp"
#include "recibo/core/json_value.hpp"
#include "recibo/http/message.hpp"
#include "recibo/verify/strict_json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::receive {

// The value at a JSON Pointer within a tree; nullptr: there is none.
const json_value* find_pointer(const json_value& within, std::string_view pointer) noexcept;

// As source_reader::read, of a source in JSON that is relative to `element`.
result<std::optional<verify::pointed_value>> read_element(const json_value& element, const config::source& from,
                                                          std::string_view what);

// Borrows the rules and the request.
class source_reader {
 public:
  // `element`: what sources in JSON are relative to; nullptr: the body. It is a tree of the body, so nothing is broken.
  source_reader(const config::extract& how, const http::request& from, const json_value* element = nullptr);

  // permanent::malformed_json where the body is needed as JSON and is not strict JSON. What is not ambiguous is read.
  const std::optional<error>& broken() const noexcept { return json_.broken; }

  // nullopt: absent, or null. `what` names the field in details.
  // permanent::malformed_field   repeated, or no text where `then` wants JSON, or not decodable
  // permanent::malformed_json    the text that `then` looks into is not strict JSON
  result<std::optional<verify::pointed_value>> read(const config::source& from, std::string_view what);

 private:
  using fields = std::optional<std::vector<std::pair<std::string, std::string>>>;
  result<std::optional<verify::pointed_value>> read_place(const config::source& from, std::string_view what);
  result<std::optional<verify::pointed_value>> read_header(const std::string& name, std::string_view what) const;

  const http::request& request_;
  const json_value* element_;
  std::vector<std::string_view> pointers_;
  verify::json_reading json_;
  std::optional<fields> query_, form_;  // outer: not parsed yet; inner: not well-formed
};

}  // namespace recibo::receive
