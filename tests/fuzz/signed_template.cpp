// `signed: "{timestamp}.{body}"`: what is accepted fits together, and printed again it means the same.
#include "config/scheme_reader.hpp"
#include "fuzz.hpp"

#include "recibo/core/json.hpp"
#include "recibo/verify/verifier.hpp"

#include <string>
#include <vector>

using namespace recibo;
using part = verify::content_part;

namespace recibo::config {
// The reader of the configuration would come with it.
std::string in_quotes(std::string_view text) { return json_string(text); }
}  // namespace recibo::config

namespace {

std::string printed(const std::vector<part>& parts) {
  std::string out;
  const auto named = [&](const char* word, const part& p) { out += std::string("{") + word + ':' + p.names.front() + '}'; };
  for (const part& p : parts) {
    if (p.what == part::source::literal) {
      for (const char c : p.names.front()) out += c == '{' || c == '}' ? std::string(2, c) : std::string(1, c);
    } else if (p.what == part::source::body) {
      out += "{body}";
    } else if (p.what == part::source::timestamp) {
      out += "{timestamp}";
    } else if (p.what == part::source::method) {
      out += "{method}";
    } else if (p.what == part::source::url) {
      out += "{url}";
    } else if (p.what == part::source::secret) {
      out += "{secret}";
    } else if (p.what == part::source::header) {
      named("header", p);
    } else if (p.what == part::source::query) {
      named("query", p);
    } else if (p.what == part::source::json) {
      named("json", p);
    } else if (p.what == part::source::form) {
      named("form", p);
    } else {
      fuzz::must(false, "a template has no other parts");
    }
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  std::vector<part> parts, again;
  if (config::parse_signed_template(text, parts)) return 0;
  const std::string once = printed(parts);
  fuzz::must(!config::parse_signed_template(once, again), "what was printed is a template");
  fuzz::must(printed(again) == once, "and it means the same");
  verify::scheme how = verify::parse_scheme("hmac", R"({"signature":{"names":["x"]},"content":[{"body":true}]})").value();
  how.content = parts;
  verify::keyring keys;
  keys.secrets.push_back({.name = "k", .text = secret("k"), .from = {}, .until = {}, .key = secret("k"), .ready = {}});
  if (!verify::check_scheme(how)) return 0;
  const std::vector<std::pair<std::string, std::string>> headers{{"x", "00"}, {"a", "b"}};
  fuzz::must(!verify::verify(how, {"POST", "https://h/", "a=b", headers, text}, keys, sys_micros{}),
             "nothing verifies without the secret");
  return 0;
}
