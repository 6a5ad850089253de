// Shared by the tests of verify/: schemes, keyrings and requests in a line each.
#pragma once

#include "recibo/verify/verifier.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::verify::testing {

using headers = std::vector<std::pair<std::string, std::string>>;

// The scheme that the field cases use: HMAC-SHA256 in hex over "{timestamp}.{body}".
inline const scheme& p1_scheme() {
  static const scheme p1 = parse_scheme("hmac", R"({"kind":"hmac","hash":"sha256",
    "signature":{"from":"header","names":["x-signature"],"prefix":"sha256=","encoding":"hex"},
    "timestamp":{"from":"header","name":"x-timestamp","format":"unix_s","tolerance_s":300},
    "content":[{"timestamp":true},{"lit":"."},{"body":true}]})")
                               .value();
  return p1;
}

inline named_secret make_secret(const scheme& how, std::string name, std::string text) {
  named_secret out{.name = std::move(name), .text = secret(std::move(text)), .from = {}, .until = {}, .key = {}, .ready = {}};
  // One that cannot be prepared keeps an empty key, which matches nothing.
  (void)prepare(how, out);
  return out;
}

inline keyring make_keys(const scheme& how, const std::vector<std::string>& texts) {
  keyring out;
  for (std::size_t i = 0; i < texts.size(); ++i) out.secrets.push_back(make_secret(how, "s" + std::to_string(i + 1), texts[i]));
  return out;
}

inline sys_micros at_unix(std::int64_t seconds) { return sys_micros(std::chrono::seconds(seconds)); }

// The word of the failure, or "valid".
inline std::string verdict(const result<std::string>& r) { return r ? "valid" : std::string(code_word(r.error().code)); }

// The body of the field cases, 136 bytes.
inline constexpr std::string_view b0 =
    R"({"request_id":"req-1001","event_id":"evt-1","status":"succeeded","amount":"19.99","currency":"EUR","occurred_at":"2026-10-01T10:00:00Z"})";
inline constexpr std::int64_t b0_time = 1790848800;
// HMAC-SHA256 with the key "test-secret-A" over "1790848800." and b0; made with openssl.
inline constexpr std::string_view b0_signature = "cc5684abf6d671508f678dd987e3cddfc3aadd4ed43bdf9c100500f725206e52";

inline headers p1_headers(std::string time, std::string signature) {
  return {{"Content-Type", "application/json"}, {"X-Timestamp", std::move(time)}, {"X-Signature", std::move(signature)}};
}

inline std::string run(const scheme& how, const headers& sent, std::string_view body, const keyring& keys, sys_micros now) {
  return verdict(verify(how, signed_message{"POST", "", "", sent, body}, keys, now));
}

}  // namespace recibo::verify::testing
