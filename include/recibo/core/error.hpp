// What went wrong, as a type that says what may be done about it (R16).
// Every error of Recibo is one of three kinds, each an enum with an error_category of its own, so that
// an error_code cannot be of two kinds. Foreign codes (SQLSTATE, OpenSSL, errno) become one of these
// where they enter. What was *decided* about a callback is not an error but a disposition.
#pragma once

#include <boost/system/error_code.hpp>
#include <boost/system/result.hpp>

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace recibo {

// The same input fails again. We stop and keep the reason; the sender sees 4xx.
enum class permanent {
  signature_missing = 1,   // header absent, empty or not decodable
  signature_mismatch,      // no valid secret produced it
  signature_repeated,      // a signature, timestamp or id header stands twice
  timestamp_missing,       // the scheme needs one and there is none
  timestamp_malformed,     // not strictly in the scheme's format
  timestamp_stale,         // outside the tolerance, either way
  content_missing,         // a part that the scheme signs is absent
  malformed_json,          // not JSON, or JSON that is ambiguous or cannot be represented
  malformed_field,         // a field is there and its value breaks a named rule
  missing_field,           // a required field is absent
  unknown_field,           // a field that is not in the contract
  not_found,               // no such resource
  unauthorized,            // no or unknown bearer token
  forbidden,               // the token's role or permissions do not suffice
  intent_conflict,         // same request ID, other intent (R3)
  idempotency_key_reused,  // same Idempotency-Key, other request (R3)
  illegal_transition,      // the workflow table does not allow the event in this state (R9)
  precondition_failed,     // If-Match does not hold
  unknown_provider,        // no such provider in the configuration
  unknown_workflow,        // no such workflow in the configuration
  already_resolved,        // the review has been decided (R25)
  alias_taken,             // the reference belongs to another operation of this provider (R34)
  invalid_configuration,   // the configuration is refused; the detail names file:line:column
  wrong_usage,             // a command line that cannot be understood
  check_failed,            // the thing asked for is not so (a verification, a comparison)
  schema_mismatch,         // the database schema does not suit this binary
  body_too_large,          // over limits.body
  url_refused,             // an outbound request to what is no URL for it
  address_refused,         // the host leads to no address that may be reached (K29)
  certificate_refused,     // the other side's TLS certificate does not hold
  answer_too_large,        // an answer to us is over its bound
  answer_malformed,        // an answer to us cannot be read
};

// The same input may pass later; nothing was kept. The sender sees 503 + Retry-After, or 429 over a configured rate.
enum class transient {
  database_away = 1,  // no connection, or the server is shutting down or read-only
  database_busy,      // serialization failure, deadlock, lock or statement time-out, out of resources
  queue_full,         // a bound of ours was reached
  operation_busy,     // the operation's row is locked by somebody else
  deadline_passed,    // answer_within ran out before anything was sent
  over_rate,          // over the provider's configured rate (429)
  shutting_down,      // draining
  clock_in_doubt,     // our clock and the database's disagree: time stamps cannot be judged
  not_ready,          // a part that this needs has not been started yet
  our_fault,          // a fault of ours; the sender's data is not to blame (write path, rule 6)
  resolve_failed,     // outbound: no address for the host, or nobody who knows
  connect_failed,     // outbound: no connection
  tls_failed,         // outbound: the handshake failed, for another reason than the certificate
};

// Sent, and no answer seen. Look up by key, then decide. The sender sees 503.
enum class uncertain {
  commit_unknown = 1,  // the connection was lost, or the proof was incomplete, in COMMIT
  answer_unknown,      // an outbound request was sent and no answer was read
};

const boost::system::error_category& permanent_category() noexcept;
const boost::system::error_category& transient_category() noexcept;
const boost::system::error_category& uncertain_category() noexcept;

boost::system::error_code make_error_code(permanent e) noexcept;
boost::system::error_code make_error_code(transient e) noexcept;
boost::system::error_code make_error_code(uncertain e) noexcept;

// A code and a sentence about this very case. `detail` may be shown to the caller, so it never holds
// SQL, paths, secrets or payload.
struct error {
  boost::system::error_code code;
  std::string detail;

  error() = default;
  error(boost::system::error_code c, std::string d = {}) : code(c), detail(std::move(d)) {}
  error(permanent e, std::string d = {}) : code(make_error_code(e)), detail(std::move(d)) {}
  error(transient e, std::string d = {}) : code(make_error_code(e)), detail(std::move(d)) {}
  error(uncertain e, std::string d = {}) : code(make_error_code(e)), detail(std::move(d)) {}

  bool is_permanent() const noexcept { return code.category() == permanent_category(); }
  bool is_transient() const noexcept { return code.category() == transient_category(); }
  bool is_uncertain() const noexcept { return code.category() == uncertain_category(); }
};

// Shorthands for the two most common: a rule of a field, or of the configuration, is broken.
error malformed(std::string detail);
error misconfigured(std::string detail);

// The stable snake_case word of a code, as in `code` of application/problem+json and in metric labels.
std::string_view code_word(const boost::system::error_code& code) noexcept;

template <class T>
using result = boost::system::result<T, error>;

// Found by ADL when value() is called on a result that holds an error.
[[noreturn]] void throw_exception_from_error(const error& e, const boost::source_location& at);

}  // namespace recibo

namespace boost::system {
template <>
struct is_error_code_enum<recibo::permanent> : std::true_type {};
template <>
struct is_error_code_enum<recibo::transient> : std::true_type {};
template <>
struct is_error_code_enum<recibo::uncertain> : std::true_type {};
}  // namespace boost::system
