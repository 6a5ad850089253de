// A signature scheme as data (R13). Everything in the HMAC family, plain hashes, shared tokens and single-signature public
// keys is one of these; the presets are rows of presets.json, which is embedded. What needs code of its own is a kind of its
// own. The fields are those of docs/signature-schemes.md.
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
  hmac,             // keyed hash over the content
  hash,             // plain digest, the secret stands inside the content
  token,            // constant-time equality with the secret
  ed25519,          // RFC 8032 over the content
  ecdsa,            // P-256, DER, over the hash of the content
  rsa,              // PKCS#1 v1.5 over the hash of the content
  plaid,            // a JWT, ES256 and nothing else, that holds the hash of the body
  aws_sns,          // certificate by URL, canonical string of some JSON members
  http_signatures,  // RFC 9421, with RFC 9530 for the body
  none,             // spelled out in the configuration: nothing is verified
};

enum class hash_name {
  sha1,    // FIPS 180-4, as the next three; where a provider has nothing else
  sha256,  // what most of them use
  sha384,  // with P-384
  sha512,  // of RSA-PSS, and a choice of schemes
};
enum class text_encoding {
  utf8,    // the text as it stands
  base64,  // for public keys: DER SubjectPublicKeyInfo, for Ed25519 also the 32 bytes
  hex,     // the same
  pem,     // PUBLIC KEY or CERTIFICATE
  html,    // text in which HTML entities stand for quotes, "<", ">" and "&": decoded (WooCommerce)
};
enum class signature_encoding {
  hex,        // either case
  base64,     // strict: its own alphabet and the right padding
  base64url,  // RFC 4648 section 5
  text,       // compared as it stands: tokens
};
enum class place {
  header,   // of the request
  json,     // a pointer into the body
  form,     // a field of the body
  element,  // beside the signature, in the same value
  claim,    // where the kind's own code finds it: a JWT's iat, RFC 9421's created
};
enum class timestamp_format {
  unix_s,    // seconds
  unix_ms,   // milliseconds
  unix_any,  // signed as text, never judged by age
  rfc3339,   // with its offset
};

struct key_rule {
  std::string strip_prefix;  // optional at the start of the secret's text, dropped
  text_encoding encoding = text_encoding::utf8;
  std::optional<hash_name> digest;  // the key is this digest of what was decoded (Braintree)
  // The secret's text has parts, and the key is made of one of them, counted from 0.
  std::string split;
  int part = 0;
  // The key is not a secret of ours but in the certificate behind the URL in this header, if its host is one of
  // `host_suffixes` or below one of them (PayPal).
  std::string certificate_url_header;
  std::vector<std::string> host_suffixes;
  // The key has the ID in this header, and is among the secrets or fetched by it (Circle).
  std::string id_header;
};

// The hash is named by the request, among those in `names` (Twilio). An absent header means scheme::hash, any other name fails.
struct hash_choice {
  std::string header;   // lower-case
  std::string element;  // the value is a list of key=value with commas, and the name stands under this key; empty: alone
  std::map<std::string, hash_name, std::less<>> names;
};

struct signature_rule {
  place from = place::header;
  std::vector<std::string> names;  // lower-case headers, first present one counts; or one pointer or field
  bool repeat = false;             // the header may occur several times, every value counts
  std::string list;                // separator of elements; empty: one value
  std::string pair;                // separator of key and value within an element; empty: no pairs
  std::string element;             // with `pair`: only elements with this key are signatures
  // With `pair`: instead of `element`, the key must equal this part of the secret that is tried (Braintree).
  std::optional<int> element_is_secret_part;
  std::string prefix;  // required, case-sensitive, stripped
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
    query,        // decoded
    json,         // a string decoded, a number as written, a boolean as its word
    form,         // decoded
    url_hubspot,  // the URL with twelve escapes of its query decoded and without a fragment (HubSpot v3)
    url_plivo,    // the URL with its query decoded and sorted, then the fields of a form that was posted (Plivo v3)
    form_sorted,  // every field of a form, by name: name and value, repeated values once and sorted (Twilio)
    body_crc32,   // CRC-32 (ISO-HDLC, as zlib's) of the raw bytes, in decimal (PayPal)
  };
  source what = source::literal;
  std::vector<std::string> names;  // literal text, header names, query name, pointer or field
  std::string before, after;
  // The piece with this text behind it is tried too: a form field may have lost the line end that was signed (Braintree).
  std::string or_with;
  bool lower = false;
  bool optional = false;
  std::optional<std::string> fallback;  // `default`
};

// Which spellings of the URL are tried beside the configured one (Twilio signs now with the port, now without).
enum class url_variant {
  no_port,
  default_port,  // 443 or 80 by the URL's own scheme
};

// A query parameter must equal the hash of the body, so that a signature over the URL covers the body (Twilio).
struct body_hash_rule {
  std::string query;
  hash_name hash = hash_name::sha256;
  signature_encoding encoding = signature_encoding::hex;
  bool unless_form = false;  // not for application/x-www-form-urlencoded, whose fields are signed themselves
};

// How a key signs under RFC 9421; the request's own `alg` decides nothing.
enum class http_algorithm {
  hmac_sha256,
  ed25519,
  ecdsa_p256_sha256,
  ecdsa_p384_sha384,
  rsa_pss_sha512,  // with a salt of 64 bytes
  rsa_v1_5_sha256,
};

// The name in RFC 9421's registry, such as "ecdsa-p256-sha256".
std::string_view to_string(http_algorithm how) noexcept;
std::optional<http_algorithm> http_algorithm_of(std::string_view name) noexcept;

struct http_signature_key {
  std::string id;      // the "keyid" of the request
  std::string secret;  // name of the secret that holds it
  http_algorithm algorithm = http_algorithm::ed25519;
  text_encoding encoding = text_encoding::pem;
};

// RFC 9421: what must be covered and who may sign.
struct http_signature_rule {
  std::vector<http_signature_key> keys;
  // Component identifiers that a signature must cover, such as "@method" or "content-digest"; with parameters in their
  // serialized form. nullopt: the method, the URL (@target-uri, or @authority with @path) and the body's digest.
  std::optional<std::vector<std::string>> required;
  // A signature over no component at all proves nothing about the request (test case B.2.1), so this is for test vectors.
  bool nothing_suffices = false;
};

struct scheme {
  std::string name;  // of the preset, or "hmac"
  scheme_kind kind = scheme_kind::hmac;
  hash_name hash = hash_name::sha256;
  std::optional<hash_choice> hash_from;
  key_rule key;
  signature_rule signature;
  std::optional<timestamp_rule> timestamp;
  std::vector<content_part> content;
  // JSON Pointer with one "*" for the elements of an array: the check runs for every element, all must pass, and there is
  // at least one. Pointers elsewhere are relative to the element then (Adyen).
  std::string for_each;
  std::vector<url_variant> url_variants;
  std::optional<body_hash_rule> body_hash;
  http_signature_rule http;
  // Where the provider's own delivery id stands, for documentation and defaults.
  std::optional<std::string> replay_header, replay_json;

  // Whether the raw body is part of what is signed, and whether this header, query or form field or JSON member is, byte
  // for byte: a header that counts only while another one is absent does not, nor does a field that is signed in lower case.
  bool covers_body() const noexcept;
  bool covers_header(std::string_view lower_case_name) const noexcept;
  bool covers_query(std::string_view name) const noexcept;
  bool covers_form(std::string_view name) const noexcept;
  bool covers_json(std::string_view pointer) const noexcept;

  // Whether the URL as the provider knows it must be configured.
  bool needs_url() const noexcept;
  // Whether keys may have to be fetched (foreign_key.hpp).
  bool needs_foreign_key() const noexcept;
  // Whether the provider's secret key makes the signature, so that nobody else (sign()) can.
  bool is_asymmetric() const noexcept;
};

// The embedded presets by name. Parsed once; thread-safe; lives as long as the process.
const std::map<std::string, scheme, std::less<>>& presets();

// One scheme from a JSON object in the form of presets.json, for tests and tools.
// permanent::invalid_configuration   an unknown key or value; the detail names it
result<scheme> parse_scheme(std::string_view name, std::string_view json);

// Whether the rules fit together: a hash or HMAC signs something, a pair has an element, a time stamp that is signed
// is defined, names are not empty. For schemes from the configuration; presets satisfy it.
// permanent::invalid_configuration   with the broken rule as its detail
result<void> check_scheme(const scheme& how);

}  // namespace recibo::verify
