// Named SQL and row mapping of what was registered: registrations, their corrections, and the references of operations (R34).
#pragma once

#include "recibo/core/digest.hpp"
#include "recibo/core/ids.hpp"
#include "recibo/storage/bulk.hpp"
#include "recibo/storage/operations.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace recibo::storage {

// What was registered, as corrections have left it: whole, because a correction is written whole.
struct intent_row {
  operation_id operation;
  std::string client, action, metadata;  // metadata: JSON text
  std::optional<std::string> reference, amount, currency, account;
  std::optional<sys_micros> deadline;
  sha256_digest intent{};
};
// `corrected`: of the row that is locked; absent for what was never corrected.
void append_find_intents(checked_pipeline& to, const std::vector<std::pair<operation_id, std::int32_t>>& operations);
std::vector<intent_row> read_intents(const postgres::rows& from);
// Each is a row that is never changed: the registration itself stays as it was made.
struct new_corrections {
  bulk rows;
  new_corrections();
  void add(const intent_row& now, std::int32_t sequence, std::string_view kind, sys_micros at, std::string_view actor);
};

// Which operation each of these aliases belongs to; unknown ones are left out.
struct alias_row {
  std::string provider, alias, request_id;
  operation_id operation;
};
void append_find_aliases(checked_pipeline& to, const std::vector<alias_name>& names);
std::vector<alias_row> read_aliases(const postgres::rows& from);

struct new_registrations {
  bulk rows;
  new_registrations();
  void add(operation_id id, std::string_view client, std::string_view action, const std::optional<std::string>& reference,
           const std::optional<std::string>& amount, const std::optional<std::string>& currency,
           const std::optional<sys_micros>& deadline, std::string_view metadata, const sha256_digest& intent,
           sys_micros accepted_at, std::string_view trace_id, const std::optional<std::string>& account,
           const std::optional<delivery_id>& delivery);
};
struct new_aliases {
  bulk rows;
  new_aliases();
  void add(std::string_view provider, std::string_view alias, operation_id id, sys_micros at);
};

}  // namespace recibo::storage
