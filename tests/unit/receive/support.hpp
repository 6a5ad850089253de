// Shared by the tests of receive/: the provider of the field cases, and requests in a line each.
#pragma once

#include "recibo/receive/extract.hpp"
#include "recibo/verify/verifier.hpp"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace recibo::receive::testing {

inline config::source json_at(std::string pointer) {
  config::source out;
  out.name = std::move(pointer);
  return out;
}

inline config::source at_place(config::source::place from, std::string name) {
  config::source out;
  out.from = from;
  out.name = std::move(name);
  return out;
}

inline config::source timed(std::string pointer, verify::timestamp_format format) {
  config::source out = json_at(std::move(pointer));
  out.format = format;
  return out;
}

// HMAC-SHA256 over "{timestamp}.{body}" with the secret test-secret-A.
inline config::provider p1() {
  config::provider out;
  out.name = "p1";
  out.verify = verify::parse_scheme("hmac", R"({"kind":"hmac","hash":"sha256",
    "signature":{"from":"header","names":["x-signature"],"prefix":"sha256=","encoding":"hex"},
    "timestamp":{"from":"header","name":"x-timestamp","format":"unix_s","tolerance_s":300},
    "content":[{"timestamp":true},{"lit":"."},{"body":true}]})")
                   .value();
  verify::named_secret key;
  key.name = "s1";
  key.text = secret("test-secret-A");
  key.key = verify::key_bytes(out.verify, key.text).value();
  out.keys.secrets.push_back(key);
  out.extract.request_id = {json_at("/request_id")};
  out.extract.idempotency_key = {json_at("/event_id")};
  out.extract.event = {json_at("/status")};
  out.extract.occurred_at = {json_at("/occurred_at")};
  out.extract.amount = {json_at("/amount")};
  out.extract.currency = {json_at("/currency")};
  out.events = {{"processing", "progress"}, {"succeeded", "complete"}, {"failed", "fail"}, {"created", "ignore"}};
  out.workflow = "fixture";
  return out;
}

inline constexpr std::string_view b0 =
    R"({"request_id":"req-1001","event_id":"evt-1","status":"succeeded","amount":"19.99","currency":"EUR","occurred_at":"2026-10-01T10:00:00Z"})";

inline http::request post(std::string body) {
  http::request out;
  out.method = "POST";
  out.target = out.path = "/callbacks/p1";
  out.headers = {{"Content-Type", "application/json"}};
  out.body = std::move(body);
  return out;
}

inline record::callback extracted(const config::provider& how, const http::request& from) {
  record::callback out;
  extract(how, from, out);
  return out;
}
inline record::callback extracted(const config::provider& how, std::string_view body) {
  return extracted(how, post(std::string(body)));
}

// The word of what makes it unprocessable, or "fine".
inline std::string fault(const record::callback& c) {
  return c.unprocessable ? std::string(code_word(c.unprocessable->code)) : "fine";
}

}  // namespace recibo::receive::testing
