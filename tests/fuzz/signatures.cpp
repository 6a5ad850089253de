// Headers, lists, pairs, time stamps and bodies of strangers, before any preset: nothing verifies without the secret, and the
// same holds for the search for a cause.
// Input: number of the preset, then the values of its headers, the query and the body, with NUL between them.
#include "fuzz.hpp"

#include "recibo/verify/diagnose.hpp"
#include "recibo/verify/signed_digest.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

using namespace recibo;
using namespace recibo::verify;

namespace {

std::vector<std::string> header_names(const scheme& how) {
  std::vector<std::string> out;
  if (how.signature.from == place::header) out = how.signature.names;
  if (!how.signature.numbered.empty()) out.push_back(how.signature.numbered + "1");
  if (how.timestamp && how.timestamp->from == place::header)
    out.insert(out.end(), how.timestamp->names.begin(), how.timestamp->names.end());
  for (const auto& part : how.content)
    if (part.what == content_part::source::header) out.insert(out.end(), part.names.begin(), part.names.end());
  return out;
}

keyring keys_of(const scheme& how) {
  keyring out;
  for (const char* text : {"whsec_ZnV6emluZyBrZXkgb2YgdGhpcnR5LXR3byBieXRlcyE=", "6675747a6b6579206f66206279746573"}) {
    named_secret one;
    one.name = "secret-" + std::to_string(out.secrets.size() + 1);
    one.text = secret(text);
    if (!prepare(how, one)) continue;
    out.secrets.push_back(std::move(one));
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  static const std::vector<const scheme*> all = [] {
    std::vector<const scheme*> out;
    for (const auto& [name, how] : presets()) out.push_back(&how);
    return out;
  }();
  const scheme& how = *all[data[0] % all.size()];
  std::string_view rest = fuzz::text_of(data + 1, size - 1);
  std::vector<std::pair<std::string, std::string>> headers;
  for (const auto& name : header_names(how)) {
    if (const std::string_view value = fuzz::take(rest); !value.empty()) headers.emplace_back(name, value);
  }
  const std::string_view query = fuzz::take(rest);
  const signed_message message{"POST", "https://hooks.example.com/in", query, headers, rest};
  static std::map<const scheme*, keyring> rings;
  auto ring = rings.find(&how);
  if (ring == rings.end()) ring = rings.emplace(&how, keys_of(how)).first;
  const keyring& keys = ring->second;
  const sys_micros now{std::chrono::seconds(1'760'000'000)};
  const auto verdict = recibo::verify::verify(how, message, keys, now);
  // The keys stand in this file: a token may be guessed here, and nowhere else.
  fuzz::must(!verdict || how.kind == scheme_kind::token, "nothing verifies without the secret");
  signed_digest(how, message);
  const auto found = look_into(how, message, now);
  for (const char c : found.content.value_or(""))
    fuzz::must(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f, "what is shown has no control characters");
  // A search costs as much as many verifications: now and then.
  if (rest.size() < 256 && rest.size() % 8 == 0) {
    const auto why = diagnose({how, message, keys, now, {}, {25, 1 << 16}});
    fuzz::must(why.verdict.has_value() == verdict.has_value(), "the diagnosis judges as the verifier does");
    fuzz::must(why.verdict.has_value() == (why.why == cause::none), "what does not verify has a cause");
  }
  return 0;
}
