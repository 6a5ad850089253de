// The one map from error to HTTP: RFC 9457 application/problem+json (contract section 4).
#pragma once

#include "recibo/core/error.hpp"
#include "recibo/http/message.hpp"

#include <string>
#include <string_view>

namespace recibo::http {

// What is known about the request that failed; empty strings are left out.
struct problem_context {
  std::string_view request_id{}, delivery_id{}, trace_id{};
};

// Status of an error: permanent 4xx by kind, transient and uncertain 503 (429 for over_rate).
int status_of(const error& e) noexcept;

// type, title, status, detail, code, retryable, and the identities that are known. 503 and 429 carry a jittered
// Retry-After, 401 of the API carries WWW-Authenticate. The cause of a signature failure is not told outwardly:
// every one of them reads `unauthenticated`.
response problem(const error& e, const problem_context& context = {});

// For refusals that no error of ours stands behind (404, 405, 408, 413, 415, 431, 400 …). `code` is snake_case.
response problem(int status, std::string_view code, std::string detail, const problem_context& context = {});

}  // namespace recibo::http
