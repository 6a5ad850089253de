// A signature scheme as data (R13). Everything in the HMAC family, plain hashes and shared tokens is one of these;
// the presets are rows of presets.json, which is embedded. The fields are those of docs/signature-schemes.md.
#pragma once

#include "recibo/core/error.hpp"

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace recibo::verify {

enum class scheme_kind {
  hmac,   // keyed hash over the content
  hash,   // plain digest, the secret stands inside the content
  token,  // constant-time equality with the secret
  none,   // spelled out in the configuration: nothing is verified
};

enum class hash_name { sha1, sha256, sha384, sha512 };
enum class text_encoding { utf8, base64, hex };
enum class signature_encoding { hex, base64, base64url, text };
enum class place { header, json, form, element };
enum class timestamp_format {
  unix_s,    // seconds
  unix_ms,   // milliseconds
  unix_any,  // signed as text, never judged by age
  rfc3339,
};

struct key_rule {
  std::string strip_prefix;  // optional at the start of the secret's text, dropped
  text_encoding encoding = text_encoding::utf8;
};

struct signature_rule {
  place from = place::header;
  std::vector<std::string> names;  // lower-case headers, first present one counts; or one pointer or field
  bool repeat = false;             // the header may occur several times, every value counts
  std::string list;                // separator of elements; empty: one value
  std::string pair;                // separator of key and value within an element; empty: no pairs
  std::string element;             // with `pair`: only elements with this key are signatures
  std::string prefix;              // required, case-sensitive, stripped
  signature_encoding encoding = signature_encoding::hex;
  // DocuSign: one signature in each header named by this prefix and a number from 1 to `max`, gaps allowed. Instead of `names`.
  std::string numbered;
  int max = 0;
};

struct timestamp_rule {
  place from = place::header;
  std::vector<std::string> names;  // header names, or the element's key, or a JSON pointer
  timestamp_format format = timestamp_format::unix_s;
  std::optional<std::chrono::seconds> tolerance;  // nullopt: no age check
};

// One piece of the signed content. `before` and `after` surround it; an optional piece whose source is absent is
// left out with them, any other absent source fails the check.
struct content_part {
  enum class source {
    literal,    // `names[0]` itself
    body,       // the raw bytes
    timestamp,  // its text as received, never a re-formatted number
    method,
    secret,  // the key bytes of the secret that is being tried
    url,     // the public URL as configured at the provider
    header,
    query,       // decoded
    json,        // a string decoded, a number as written, a boolean as its word
    form,        // decoded
    url_hubspot  // the URL with twelve escapes of its query decoded and without a fragment (HubSpot v3)
  };
  source what = source::literal;
  std::vector<std::string> names;  // literal text, header names, query name, pointer or field
  std::string before, after;
  bool lower = false;
  bool optional = false;
  std::optional<std::string> fallback;  // `default`
};

struct scheme {
  std::string name;  // of the preset, or "hmac"
  scheme_kind kind = scheme_kind::hmac;
  hash_name hash = hash_name::sha256;
  key_rule key;
  signature_rule signature;
  std::optional<timestamp_rule> timestamp;
  std::vector<content_part> content;
  // Where the provider's own delivery id stands, for documentation and defaults.
  std::optional<std::string> replay_header, replay_json;

  // Whether the raw body is part of what is signed, and whether this header or query field is, byte for byte: a header
  // that counts only while another one is absent does not, nor does a field that is signed in lower case.
  bool covers_body() const noexcept;
  bool covers_header(std::string_view lower_case_name) const noexcept;
  bool covers_query(std::string_view name) const noexcept;
};

// The embedded presets by name, those that need public keys, certificates, several items or URL variants left out.
// Parsed once; thread-safe; lives as long as the process.
const std::map<std::string, scheme, std::less<>>& presets();

// One scheme from a JSON object in the form of presets.json, for tests and tools.
// permanent::invalid_configuration   an unknown key or value; the detail names it
result<scheme> parse_scheme(std::string_view name, std::string_view json);

// Whether the rules fit together: a hash or HMAC signs something, a pair has an element, a time stamp that is signed
// is defined, names are not empty. For schemes from the configuration; presets satisfy it.
// permanent::invalid_configuration   with the broken rule as its detail
result<void> check_scheme(const scheme& how);

}  // namespace recibo::verify
