#include "recibo/http/problem.hpp"

#include "recibo/core/json.hpp"

#include <array>
#include <random>

namespace recibo::http {
namespace {

// What an error looks like from outside.
struct shape {
  int status;
  std::string_view code;
};

shape shape_of(permanent e) noexcept {
  switch (e) {
    // Why a signature failed helps a forger more than a sender; the reason is in the metric and the log.
    case permanent::signature_missing:
    case permanent::signature_mismatch:
    case permanent::signature_repeated:
    case permanent::timestamp_missing:
    case permanent::timestamp_malformed:
    case permanent::timestamp_stale:
    case permanent::content_missing: return {401, "unauthenticated"};
    case permanent::malformed_json: return {400, "malformed_json"};
    case permanent::malformed_field: return {422, "malformed_field"};
    case permanent::missing_field: return {422, "missing_field"};
    case permanent::unknown_field: return {422, "unknown_field"};
    case permanent::not_found: return {404, "not_found"};
    case permanent::unauthorized: return {401, "unauthorized"};
    case permanent::forbidden: return {403, "forbidden"};
    case permanent::intent_conflict: return {409, "intent_conflict"};
    case permanent::idempotency_key_reused: return {422, "idempotency_key_reused"};
    case permanent::illegal_transition: return {409, "illegal_transition"};
    case permanent::precondition_failed: return {412, "precondition_failed"};
    case permanent::unknown_provider: return {404, "unknown_provider"};
    case permanent::unknown_workflow: return {422, "unknown_workflow"};
    case permanent::already_resolved: return {409, "already_resolved"};
    case permanent::alias_taken: return {409, "alias_taken"};
    case permanent::invalid_configuration: return {422, "invalid_configuration"};
    case permanent::wrong_usage: return {400, "wrong_usage"};
    case permanent::check_failed: return {422, "check_failed"};
    // Ours to mend, not the sender's: the same request will pass once it is.
    case permanent::schema_mismatch: return {503, "unavailable"};
    case permanent::body_too_large: return {413, "body_too_large"};
    // Between us and somebody else: whoever asked us has done nothing wrong.
    case permanent::url_refused:
    case permanent::address_refused:
    case permanent::certificate_refused:
    case permanent::answer_too_large:
    case permanent::answer_malformed: return {503, "unavailable"};
  }
  return {503, "unavailable"};
}

shape shape_of(transient e) noexcept {
  switch (e) {
    case transient::over_rate: return {429, "overloaded"};
    case transient::database_away:
    case transient::database_busy:
    case transient::queue_full:
    case transient::operation_busy:
    case transient::deadline_passed:
    case transient::shutting_down:
    case transient::clock_in_doubt:
    case transient::not_ready:
    case transient::our_fault:
    case transient::resolve_failed:
    case transient::connect_failed:
    case transient::tls_failed: return {503, "unavailable"};
  }
  return {503, "unavailable"};
}

shape shape_of(const error& e) noexcept {
  if (e.is_permanent()) return shape_of(static_cast<permanent>(e.code.value()));
  if (e.is_transient()) return shape_of(static_cast<transient>(e.code.value()));
  // Uncertain: a resend finds the truth (R16). A code of no kind of ours is a fault of ours.
  return {503, "unavailable"};
}

struct titled {
  std::string_view code, title;
};

// One title for each code, always the same (RFC 9457 section 3.1.3).
constexpr std::array titles{
    titled{"unauthenticated", "The signature does not verify"},
    titled{"unauthorized", "A valid bearer token is needed"},
    titled{"forbidden", "The token's role does not permit this"},
    titled{"malformed_json", "The body is not acceptable JSON"},
    titled{"malformed_field", "A field breaks a rule"},
    titled{"missing_field", "A required field is absent"},
    titled{"unknown_field", "A field is not known"},
    titled{"not_found", "There is no such resource"},
    titled{"unknown_provider", "There is no such provider"},
    titled{"unknown_workflow", "There is no such workflow"},
    titled{"unknown_operation", "There is no such operation"},
    titled{"intent_conflict", "The same request ID was registered with another intent"},
    titled{"idempotency_key_reused", "The Idempotency-Key was used for another request"},
    titled{"illegal_transition", "The state does not allow this event"},
    titled{"precondition_failed", "The resource has changed"},
    titled{"overtaken", "The operation has moved meanwhile"},
    titled{"status_unclear", "What the provider says needs a person"},
    titled{"status_unknown", "The provider did not say what is so"},
    titled{"already_resolved", "The review has been decided"},
    titled{"alias_taken", "The reference belongs to another operation"},
    titled{"conflict", "The same key was recorded with other content"},
    titled{"unprocessable", "The callback cannot be understood"},
    titled{"invalid_configuration", "The configuration is refused"},
    titled{"wrong_usage", "The request cannot be understood"},
    titled{"check_failed", "The check did not pass"},
    titled{"unavailable", "Not recorded, or not known to be: send again"},
    titled{"overloaded", "Too many requests: send again later"},
    titled{"body_too_large", "The body is over the limit"},
    titled{"header_too_large", "The header block is over the limit"},
    titled{"request_timeout", "The request took too long to arrive"},
    titled{"malformed_request", "The request is not acceptable HTTP/1.1"},
    titled{"method_not_allowed", "The resource does not have this method"},
    titled{"unsupported_media_type", "The content type or coding is not supported"},
    titled{"expectation_failed", "The expectation is not known"},
    titled{"http_version_not_supported", "Only HTTP/1.0 and HTTP/1.1 are spoken here"},
};

std::string title_of(std::string_view code) {
  for (const titled& one : titles) {
    if (one.code == code) return std::string(one.title);
  }
  // A code of a single endpoint: its words are the title.
  std::string title(code);
  for (char& c : title) {
    if (c == '_') c = ' ';
  }
  if (!title.empty() && title[0] >= 'a' && title[0] <= 'z') title[0] = static_cast<char>(title[0] - 'a' + 'A');
  return title;
}

bool retryable(int status) noexcept { return status == 503 || status == 429 || status == 408; }

// 1 to 3 seconds, so that those refused together do not come back together (K27).
std::string retry_after() {
  static thread_local std::minstd_rand random{std::random_device{}()};
  return std::to_string(std::uniform_int_distribution<int>(1, 3)(random));
}

void append_member(std::string& out, std::string_view name, std::string_view value) {
  if (value.empty()) return;
  out += ',';
  append_json_string(out, name);
  out += ':';
  append_json_string(out, value);
}

}  // namespace

int status_of(const error& e) noexcept { return shape_of(e).status; }

response problem(int status, std::string_view code, std::string detail, const problem_context& context) {
  if (detail.empty()) detail = title_of(code);
  response answer;
  answer.status = status;
  answer.content_type = "application/problem+json";
  std::string& out = answer.body;
  // A URN rather than a URL: it identifies, and promises no page.
  out += R"({"type":)";
  append_json_string(out, "urn:recibo:problem:" + std::string(code));
  append_member(out, "title", title_of(code));
  out += R"(,"status":)";
  out += std::to_string(status);
  append_member(out, "detail", detail);
  append_member(out, "code", code);
  out += retryable(status) ? R"(,"retryable":true)" : R"(,"retryable":false)";
  append_member(out, "request_id", context.request_id);
  append_member(out, "delivery_id", context.delivery_id);
  append_member(out, "trace_id", context.trace_id);
  out += '}';
  if (status == 503 || status == 429) answer.headers.emplace_back("Retry-After", retry_after());
  if (code == "unauthorized") answer.headers.emplace_back("WWW-Authenticate", "Bearer");
  return answer;
}

response problem(const error& e, const problem_context& context) {
  const auto [status, code] = shape_of(e);
  if (code == "unauthenticated") {
    return problem(status, code, "The signature is missing, wrong, or outside the tolerance.", context);
  }
  return problem(status, code, e.detail, context);
}

}  // namespace recibo::http
