// The shape of a value: one description decodes, validates and prints itself as JSON Schema 2020-12 (decision 17), so that
// what is documented and what is enforced cannot differ. Pure; safe from any thread.
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/core/json_value.hpp"
#include "recibo/core/json_writer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace recibo::api {

// What a text must be, beyond its length. No text may hold U+0000 or other control characters, whatever its rule.
enum class text_rule {
  line,        // any characters
  prose,       // any characters, line breaks and tabs too
  request_id,  // core/ids.hpp
  alias,       // core/ids.hpp: references, item IDs, keys
  decimal,     // core/money.hpp
  currency,    // three capital letters
  time,        // RFC 3339 with an offset
  uuid,        // of answers: never checked, printed as a format
  free,        // of answers: whatever is on record
};

struct member;

struct schema {
  enum class form {
    any,
    text,
    integer,
    boolean,
    object,
    list,
    reference,  // to a schema of the document's components
  };

  form what = form::any;
  bool nullable = false;
  text_rule rule = text_rule::line;
  // Bytes of a text, value of an integer, elements of a list.
  std::optional<std::int64_t> least, most;
  std::vector<std::string> words;  // the only texts allowed; empty: any
  bool says_something = false;     // a text that is empty or blank is refused
  std::vector<member> members;
  bool closed = false;          // other members than these are refused
  std::vector<schema> element;  // of a list: one
  std::string name;             // of the component
  std::string about;
  std::vector<std::string> together;  // members that stand together or not at all
};

struct member {
  std::string name;
  schema value;
  bool required = true;
};

schema text(std::int64_t most = 255, text_rule rule = text_rule::line);
schema text(text_rule rule);
// What a person has to say: a reason that is blank is none.
schema words(std::int64_t most, text_rule rule = text_rule::line);
// Of answers: any string.
schema string();
schema one_of(std::vector<std::string> words);
schema integer(std::int64_t least, std::int64_t most);
schema integer();
schema boolean();
schema instant();
schema any();
// Answers: more members may come with a later version.
schema object(std::vector<member> members);
// Bodies of requests: what is not named is refused.
schema closed_object(std::vector<member> members);
// An object of any members.
schema map();
schema list(schema element, std::optional<std::int64_t> most = std::nullopt);
schema component(std::string name);
schema nullable(schema of);
schema about(schema of, std::string text);

member required(std::string name, schema value);
// May be absent; null is the same as absent.
member optional(std::string name, schema value);
// Of answers: always there, perhaps null.
member or_null(std::string name, schema value);

// permanent::malformed_field, missing_field, unknown_field   the detail begins with the JSON pointer of the value
result<void> validate(const schema& by, const json_value& value, const std::string& pointer = "");
// A text from a query or header. The detail begins with `name`.
result<void> validate_text(const schema& by, std::string_view value, std::string_view name);

// As JSON Schema 2020-12; references lead to "#/components/schemas/…".
void write_schema(json_writer& out, const schema& what);

// Members of a validated body; nullptr, nullopt: absent or null.
const json_value* present(const json_value& body, std::string_view name);
std::optional<std::string> text_of(const json_value& body, std::string_view name);

}  // namespace recibo::api
