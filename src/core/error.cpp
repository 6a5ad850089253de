#include "recibo/core/error.hpp"

#include <boost/assert/source_location.hpp>

#include <stdexcept>

namespace recibo {
namespace {

std::string_view word(permanent e) noexcept {
  switch (e) {
    case permanent::signature_missing: return "signature_missing";
    case permanent::signature_mismatch: return "signature_mismatch";
    case permanent::signature_repeated: return "signature_repeated";
    case permanent::timestamp_missing: return "timestamp_missing";
    case permanent::timestamp_malformed: return "timestamp_malformed";
    case permanent::timestamp_stale: return "timestamp_stale";
    case permanent::content_missing: return "content_missing";
    case permanent::malformed_json: return "malformed_json";
    case permanent::malformed_field: return "malformed_field";
    case permanent::missing_field: return "missing_field";
    case permanent::unknown_field: return "unknown_field";
    case permanent::not_found: return "not_found";
    case permanent::unauthorized: return "unauthorized";
    case permanent::forbidden: return "forbidden";
    case permanent::intent_conflict: return "intent_conflict";
    case permanent::idempotency_key_reused: return "idempotency_key_reused";
    case permanent::illegal_transition: return "illegal_transition";
    case permanent::precondition_failed: return "precondition_failed";
    case permanent::unknown_provider: return "unknown_provider";
    case permanent::unknown_workflow: return "unknown_workflow";
    case permanent::already_resolved: return "already_resolved";
    case permanent::alias_taken: return "alias_taken";
    case permanent::invalid_configuration: return "invalid_configuration";
    case permanent::wrong_usage: return "wrong_usage";
    case permanent::check_failed: return "check_failed";
    case permanent::schema_mismatch: return "schema_mismatch";
    case permanent::body_too_large: return "body_too_large";
    case permanent::url_refused: return "url_refused";
    case permanent::address_refused: return "address_refused";
    case permanent::certificate_refused: return "certificate_refused";
    case permanent::answer_too_large: return "answer_too_large";
    case permanent::answer_malformed: return "answer_malformed";
  }
  return "permanent";
}

std::string_view word(transient e) noexcept {
  switch (e) {
    case transient::database_away: return "database_away";
    case transient::database_busy: return "database_busy";
    case transient::queue_full: return "queue_full";
    case transient::operation_busy: return "operation_busy";
    case transient::deadline_passed: return "deadline_passed";
    case transient::over_rate: return "over_rate";
    case transient::shutting_down: return "shutting_down";
    case transient::clock_in_doubt: return "clock_in_doubt";
    case transient::not_ready: return "not_ready";
    case transient::our_fault: return "our_fault";
    case transient::resolve_failed: return "resolve_failed";
    case transient::connect_failed: return "connect_failed";
    case transient::tls_failed: return "tls_failed";
  }
  return "transient";
}

std::string_view word(uncertain e) noexcept {
  switch (e) {
    case uncertain::commit_unknown: return "commit_unknown";
    case uncertain::answer_unknown: return "answer_unknown";
  }
  return "uncertain";
}

template <class Enum>
class category final : public boost::system::error_category {
 public:
  explicit category(const char* name) : name_(name) {}
  const char* name() const noexcept override { return name_; }
  std::string message(int value) const override { return std::string(word(static_cast<Enum>(value))); }

 private:
  const char* name_;
};

}  // namespace

const boost::system::error_category& permanent_category() noexcept {
  static const category<permanent> instance("recibo.permanent");
  return instance;
}

const boost::system::error_category& transient_category() noexcept {
  static const category<transient> instance("recibo.transient");
  return instance;
}

const boost::system::error_category& uncertain_category() noexcept {
  static const category<uncertain> instance("recibo.uncertain");
  return instance;
}

boost::system::error_code make_error_code(permanent e) noexcept { return {static_cast<int>(e), permanent_category()}; }
boost::system::error_code make_error_code(transient e) noexcept { return {static_cast<int>(e), transient_category()}; }
boost::system::error_code make_error_code(uncertain e) noexcept { return {static_cast<int>(e), uncertain_category()}; }

error malformed(std::string detail) { return error(permanent::malformed_field, std::move(detail)); }

error misconfigured(std::string detail) { return error(permanent::invalid_configuration, std::move(detail)); }

std::string_view code_word(const boost::system::error_code& code) noexcept {
  if (code.category() == permanent_category()) return word(static_cast<permanent>(code.value()));
  if (code.category() == transient_category()) return word(static_cast<transient>(code.value()));
  if (code.category() == uncertain_category()) return word(static_cast<uncertain>(code.value()));
  return "internal";
}

void throw_exception_from_error(const error& e, const boost::source_location&) {
  throw std::runtime_error(std::string(code_word(e.code)) + ": " + e.detail);
}

}  // namespace recibo
