// `verify` of a provider: a preset by name, or a scheme spelled out in the short or the full form of contract section 6.
#pragma once

#include "reader.hpp"
#include "secrets.hpp"

#include "recibo/config/settings.hpp"
#include "recibo/verify/keyring.hpp"
#include "recibo/verify/scheme.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace recibo::config {

// false: a problem was reported, and nothing may be concluded from `scheme`.
bool read_verify(reading& r, const field& f, std::string_view provider, verify::scheme& scheme, verify::keyring& keys,
                 key_source& fetched);

// `fetch` beside `scheme` in the section `verify`: how keys are fetched that are not among the secrets.
// false: a problem was reported.
bool read_key_source(reading& r, section& verify, const verify::scheme& scheme, key_source& out);

// `required_components` and `keys` of the scheme http-message-signatures.
bool read_http_scheme(reading& r, section& s, verify::scheme& scheme);

// Gives every entry of `keys` its secret: the one that it names, else the one at its own place in the list.
bool match_http_keys(reading& r, section& s, const std::vector<read_secret>& secrets, verify::http_signature_rule& out);

// The keys of a scheme that starts from nothing (`scheme: hmac`, `hash`, `token`, `ed25519`, `ecdsa` or `rsa`). `scheme.kind` is
// set already.
bool read_own_scheme(reading& r, section& s, verify::scheme& scheme);

// `signed: "{timestamp}.{body}"` as parts. "{{" and "}}" are literal braces. The reason when it is none.
std::optional<std::string> parse_signed_template(std::string_view text, std::vector<verify::content_part>& out);

// A header's name in lower case; empty when it is no HTTP field name.
std::string header_name(std::string_view text);

// Whether this is a JSON Pointer (RFC 6901) to something inside the document.
bool is_pointer(std::string_view text) noexcept;

}  // namespace recibo::config
