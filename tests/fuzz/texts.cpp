// Small texts of strangers: instants, digits, hexadecimal, base64, identifiers. What is accepted has one spelling.
#include "fuzz.hpp"

#include "recibo/core/clock.hpp"
#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/core/json.hpp"
#include "recibo/core/money.hpp"
#include "recibo/core/utf8.hpp"

using namespace recibo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  if (const auto bytes = from_hex(text)) fuzz::must(to_hex(*bytes).size() == text.size(), "two digits a byte");
  if (const auto bytes = from_base64(text)) fuzz::must(to_base64(*bytes) == text, "base64 has one spelling");
  from_base64url(text);
  if (const auto at = parse_rfc3339(text)) {
    const auto again = parse_rfc3339(to_rfc3339(*at));
    fuzz::must(again && *again == *at, "an instant is read back");
  }
  if (const auto s = parse_unix_seconds(text)) fuzz::must(text.size() <= 17, "no more digits than fit");
  if (const auto ms = parse_unix_millis(text)) fuzz::must(text.size() <= 17, "no more digits than fit");
  if (const auto money = parse_decimal(text)) fuzz::must(parse_decimal(money->text).has_value(), "a decimal is read back");
  parse_currency(text);
  if (check_alias(text, "x") || check_request_id(text))
    fuzz::must(text.size() <= 255 && is_utf8(text), "an identifier is short text");
  fuzz::must(is_utf8(json_string(text)), "a JSON string is UTF-8 whatever it was made of");
  return 0;
}
