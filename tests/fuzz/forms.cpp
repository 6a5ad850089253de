// Forms and queries: two readers of one format. Where every escape is well-formed they agree on every field, and what was
// encoded is read back.
#include "fuzz.hpp"

#include "recibo/core/url.hpp"
#include "recibo/http/message.hpp"
#include "recibo/verify/verifier.hpp"

#include <string>

using namespace recibo;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  const auto fields = http::parse_form(text);
  std::string again;
  if (fields) {
    fuzz::must(fields->size() <= text.size() + 1, "no more fields than characters");
    for (const auto& [name, value] : *fields)
      again += (again.empty() ? "" : "&") + percent_encode(name) + '=' + percent_encode(value);
    if (!fields->empty()) fuzz::must(http::parse_form(again) == fields, "what is encoded is read back");
  }
  // A scheme that signs one field and has its token in another, so that the verifier's own reader runs over the same bytes.
  static const verify::scheme how =
      verify::parse_scheme("form", R"({"signature":{"from":"form","name":"s","encoding":"text"},"content":[{"form":"p"}]})")
          .value();
  verify::keyring keys;
  keys.secrets.push_back({.name = "k", .text = secret("k"), .from = {}, .until = {}, .key = secret("k"), .ready = {}});
  const auto verdict = verify::verify(how, {"POST", "", text, {}, text}, keys, sys_micros{});
  fuzz::must(!verdict, "nothing verifies without the secret");
  http::percent_decode(text, true);
  http::percent_decode(text, false);
  return 0;
}
